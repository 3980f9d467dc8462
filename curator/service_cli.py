"""`subn-curator`: setting a curator up and serving it.

It does not know how requests are answered (`api`) or operators' commands (`subn`).
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from crypto.randomness import Stream
from crypto.signing import fingerprint
from curator.directory import Directory
from curator.errors import SettingsError, StoreUnavailable
from curator.keys import CuratorKeys
from curator.settings import Settings, system_clock
from curator.store import Store
from protocol.command_help import GroupedParser
from protocol.errors import SubnError

FAILED, USAGE_ERROR = 1, 2
Command = Callable[[Settings, argparse.Namespace], int]

_GROUPS = {
    "set up and serve": ("init", "serve", "ready"),
    "let people and parties in": ("operator-key", "code"),
}
_EXAMPLES = (
    ("a home with keys, and the first operator's key, shown once", "subn-curator init --home curator"),
    ("serve parties and operators", "subn-curator serve --home curator --port 8460"),
    ("a one-time code with which a party enrols", "subn-curator code North --home curator"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = _parser().parse_args(arguments)
    try:
        settings = Settings.read(
            home=chosen.home, host=getattr(chosen, "host", None), port=getattr(chosen, "port", None)
        )
        return int(chosen.run(settings, chosen))
    except SubnError as error:
        print(f"subn-curator: {error}", file=sys.stderr)
        return FAILED if isinstance(error, StoreUnavailable) else USAGE_ERROR
    except OSError as error:
        print(f"subn-curator: {error.filename or 'a file'}: {error.strerror}", file=sys.stderr)
        return FAILED


def _parser() -> GroupedParser:
    parser = GroupedParser(
        groups=_GROUPS,
        examples=_EXAMPLES,
        prog="subn-curator",
        description="Run a curator. Every setting can also be given as SUBN_CURATOR_NAME in the environment.",
        epilog="Exit codes: 0 done, 1 failed, 2 the command or the settings cannot work.",
    )
    commands = parser.add_commands()
    _command(commands, "init", "make the home directory, its keys, and a first operator's key", _init)
    serve = _command(commands, "serve", "serve parties and operators", _serve)
    serve.add_argument("--host", metavar="ADDRESS", help="where to listen (127.0.0.1)")
    serve.add_argument("--port", type=int, metavar="N", help="where to listen (8460); 0 takes a free one")
    ready = _command(commands, "ready", "ask the service whether it is at work: exit code 0 or 1", _ready)
    ready.add_argument("--port", type=int, metavar="N", help="where it listens (8460)")
    keys = commands.add_parser("operator-key", help="add, list and revoke operators' keys")
    actions = keys.add_subparsers(required=True, metavar="ACTION")
    _command(actions, "add", "make a key; it is printed this once", _add_key).add_argument("label")
    _command(actions, "list", "labels of the keys that are valid", _list_keys)
    _command(actions, "revoke", "make a key invalid at once", _revoke_key).add_argument("label")
    code = _command(commands, "code", "make a one-time code with which a party of this name enrols", _code)
    code.add_argument("name", metavar="NAME")
    return parser


def _command(commands: Any, name: str, text: str, run: Command) -> Any:
    parser = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
    parser.add_argument("--home", type=Path, metavar="DIR", help="the curator's home directory (curator-home)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)
    return parser


def _init(settings: Settings, chosen: argparse.Namespace) -> int:
    if (settings.home / "keys").exists():
        raise SettingsError(f"{settings.home} has been set up already: its keys are kept, nothing was done")
    settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    keys = CuratorKeys.create(settings.home, Stream.system())
    operator_key = _directory(settings).new_operator_key("first", Stream.system())
    public = keys.signing.public
    found = {
        "home": str(settings.home),
        "operator_key": operator_key,
        "curator_key": public.hex(),
        "fingerprint": fingerprint(public),
    }
    return _say(
        chosen,
        found,
        f"{settings.home} is ready; start it with: subn-curator serve --home {settings.home}\n"
        f"fingerprint, for the parties to compare: {found['fingerprint']}\n"
        f"operator's key, shown this once (put it into a file for subn --key-file):\n{operator_key}",
    )


def _serve(settings: Settings, _chosen: argparse.Namespace) -> int:
    # Imported here, because the other commands should answer at once.
    from curator.logs import log_to_standard_error
    from curator.serving import listening, serve

    with listening(settings.host, settings.port) as listener:
        log_to_standard_error()
        serve(settings, listener)
    return 0


def _ready(settings: Settings, chosen: argparse.Namespace) -> int:
    from curator.ready import ask

    is_ready, found = ask(settings)
    _say(chosen, found, ": ".join(found.values()))
    return 0 if is_ready else FAILED


def _add_key(settings: Settings, chosen: argparse.Namespace) -> int:
    key = _directory(settings).new_operator_key(chosen.label, Stream.system())
    return _say(chosen, {"label": chosen.label, "operator_key": key}, key)


def _list_keys(settings: Settings, chosen: argparse.Namespace) -> int:
    found = [
        {"label": key.label, "created": _time(key.created), "id": key.hash[:12]}
        for key in _directory(settings).operator_keys()
    ]
    return _say(chosen, found, "\n".join(f"{key['id']}  {key['created']}  {key['label']}" for key in found))


def _revoke_key(settings: Settings, chosen: argparse.Namespace) -> int:
    _directory(settings).revoke_operator_key(chosen.label)
    return _say(chosen, {"revoked": chosen.label}, f"the key {chosen.label!r} is invalid now")


def _code(settings: Settings, chosen: argparse.Namespace) -> int:
    code, expires = _directory(settings).new_code(chosen.name, Stream.system())
    found = {"name": chosen.name, "code": code, "expires": _time(expires)}
    return _say(chosen, found, f"{code}\nvalid once, for {chosen.name}, until {found['expires']}")


def _directory(settings: Settings) -> Directory:
    """Of a home that `init` has made: no other command leaves an empty database in a mistyped place."""
    if not (settings.home / "keys").is_dir():
        raise SettingsError(f"{settings.home} is no curator's home: run `subn-curator init --home {settings.home}`")
    return Directory(Store.open(settings.store_url), system_clock)


def _time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="seconds")


def _say(chosen: argparse.Namespace, found: Any, words: str) -> int:
    print(json.dumps(found, ensure_ascii=False) if chosen.json else words, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
