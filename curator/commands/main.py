"""`subn-curator`: setting a curator up and serving it.

It does not know how requests are answered (`curator.app`) or operators' commands (`subn`).
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from crypto.randomness import Stream
from crypto.signing import fingerprint
from curator.accounts.registry import Registry
from curator.clock import system_clock
from curator.commands.certificate import add_certificate_options, make_certificates, renew_certificate, show_certificate
from curator.commands.doctor import doctor
from curator.errors import SettingsError, StoreUnavailable
from curator.home.certificates import Certificates
from curator.home.keys import CuratorKeys
from curator.rendering.output import say
from curator.settings import Settings
from curator.store.run_records import SIGNING_KEY, correct
from curator.store.store import Store
from protocol.errors import SubnError
from protocol.messages.pins import joined, pin_of
from protocol.services.command_help import GroupedParser
from protocol.text import printable, printable_lines

FAILED, USAGE_ERROR = 1, 2
Command = Callable[[Settings, argparse.Namespace], int]

_GROUPS = {
    "set up and serve": ("init", "serve", "ready", "certificate", "rotate", "doctor"),
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
        names = ("home", "host", "port", "plain_http", "behind_proxy")
        overriding: dict[str, object] = {name: getattr(chosen, name, None) for name in names}
        settings = Settings.read(os.environ, **overriding)
        return int(chosen.run(settings, chosen))
    except SubnError as error:
        print(f"subn-curator: {printable_lines(str(error))}", file=sys.stderr)
        return FAILED if isinstance(error, StoreUnavailable) else USAGE_ERROR
    except OSError as error:
        print(f"subn-curator: {printable(str(error.filename or 'a file'))}: {error.strerror}", file=sys.stderr)
        return FAILED


def _parser() -> GroupedParser:
    parser = GroupedParser(
        groups=_GROUPS,
        examples=_EXAMPLES,
        prog="subn-curator",
        description="Run a curator. Every setting can also be given as SUBN_CURATOR_NAME in the environment.",
        epilog="Exit codes: 0 done, 1 failed, 2 the command or the settings cannot work.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {version('dp-subn')}")
    commands = parser.add_commands()
    text = "make the home directory, its keys and certificates, and a first operator's key"
    add_certificate_options(_command(commands, "init", text, _init))
    serve = _command(commands, "serve", "serve parties and operators, by TLS", _serve)
    serve.add_argument("--host", metavar="ADDRESS", help="where to listen (127.0.0.1)")
    serve.add_argument("--port", type=int, metavar="N", help="where to listen (8460); 0 takes a free one")
    serve.add_argument(
        "--plain-http", action="store_true", default=None, help="without TLS; only at a loopback address"
    )
    serve.add_argument(
        "--behind-proxy",
        metavar="ADDRESSES",
        help="a proxy in front speaks TLS: addresses or networks it connects from, with commas between them",
    )
    certificate = commands.add_parser("certificate", help="show and renew what the server proves itself with")
    shown = certificate.add_subparsers(required=True, metavar="ACTION")
    _command(shown, "show", "names, remaining days, and the pin that parties check the curator with", show_certificate)
    text = "a new certificate under the same CA, which a running server takes up; parties need not do anything"
    add_certificate_options(_command(shown, "renew", text, renew_certificate))
    ready = _command(commands, "ready", "ask the service whether it is at work: exit code 0 or 1", _ready)
    ready.add_argument("--port", type=int, metavar="N", help="where it listens (8460)")
    text = "make a new signing key; restart the service, and tell every party the new pin to recognise it by"
    _command(commands, "rotate", text, _rotate)
    text = "look at everything that the service needs, and say how to mend what is wrong; exit code 1 if it is bad"
    looks = _command(commands, "doctor", text, doctor)
    looks.add_argument("--port", type=int, metavar="N", help="where the service listens (8460)")
    keys = commands.add_parser("operator-key", help="add, list and revoke operators' keys")
    actions = keys.add_subparsers(required=True, metavar="ACTION")
    _command(actions, "add", "make a key; it is printed this once", _add_key).add_argument("label")
    _command(actions, "list", "labels of the keys that are valid", _list_keys)
    _command(actions, "revoke", "make a key invalid at once", _revoke_key).add_argument("label")
    backup = _command(commands, "backup", "copy this home into one file: database, keys, results", _backup)
    backup.add_argument("file", metavar="FILE", type=Path, help="a new file; it will hold secret keys")
    restore = _command(commands, "restore", "bring a backup back, into a home that knows nothing more", _restore)
    restore.add_argument("file", metavar="FILE", type=Path)
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
    certificates = make_certificates(settings, chosen)
    keys = CuratorKeys.create(settings.home, Stream.system())
    operator_key = _registry(settings).new_operator_key("first", Stream.system())
    public = keys.signing.public
    found = {
        "home": str(settings.home),
        "operator_key": operator_key,
        "curator_key": public.hex(),
        "fingerprint": fingerprint(public),
        "pin": pin_of(public, certificates.ca),
        "names": certificates.shown().names,
        "ca_file": str(certificates.ca_file) if certificates.ca else None,
    }
    trusted = [f"operators' commands trust it with SUBN_CA_FILE={found['ca_file']}"] if certificates.ca else []
    return say(
        chosen,
        found,
        f"{settings.home} is ready; start it with: subn-curator serve --home {settings.home}",
        f"its certificate is good for {', '.join(certificates.shown().names)}",
        *trusted,
        "operator's key, shown this once (put it into a file for subn --key-file):",
        operator_key,
    )


def _serve(settings: Settings, _chosen: argparse.Namespace) -> int:
    # Imported here, because the other commands should answer at once.
    from curator.operations.logs import log_to_standard_error
    from curator.server import listening, serve

    _require_home(settings)
    _require_database(settings)
    with listening(settings.host, settings.port) as listener:
        log_to_standard_error()
        serve(settings, listener)
    return 0


def _ready(settings: Settings, chosen: argparse.Namespace) -> int:
    from curator.commands.ready import ask

    is_ready, found = ask(settings)
    say(chosen, found, ": ".join(found.values()))
    return 0 if is_ready else FAILED


def _add_key(settings: Settings, chosen: argparse.Namespace) -> int:
    key = _registry(settings).new_operator_key(chosen.label, Stream.system())
    return say(chosen, {"label": chosen.label, "operator_key": key}, key)


def _list_keys(settings: Settings, chosen: argparse.Namespace) -> int:
    found = [
        {"label": key.label, "created": _time(key.created), "id": key.hash[:12]}
        for key in _registry(settings).operator_keys()
    ]
    return say(chosen, found, *(f"{key['id']}  {key['created']}  {key['label']}" for key in found))


def _revoke_key(settings: Settings, chosen: argparse.Namespace) -> int:
    _registry(settings).revoke_operator_key(chosen.label)
    return say(chosen, {"revoked": chosen.label}, f"the key {chosen.label!r} is invalid now")


def _rotate(settings: Settings, chosen: argparse.Namespace) -> int:
    """Runs that are under way go on when parties have recognised the new key; nothing that is published changes."""
    _require_home(settings)
    store = Store.open(settings.store_url)
    try:
        public = CuratorKeys.rotate(settings.home).signing.public
        with store.writing() as db:  # after a kill in between the service does not start: done again, it does
            correct(db, SIGNING_KEY, public.hex())
    finally:
        store.close()
    found = {"curator_key": public.hex(), "pin": pin_of(public, Certificates(settings.home).ca)}
    return say(
        chosen,
        found,
        "a new signing key lies in the home: restart the service now; parties wait until each has run",
        f"subn-party recognise {found['pin']}",
        "Tell them the pin by voice or mail. Codes that were not used are void.",
    )


def _code(settings: Settings, chosen: argparse.Namespace) -> int:
    registry, keys = _registry(settings), CuratorKeys.load(settings.home, settings.master_key)
    secret, expires = registry.new_code(chosen.name, Stream.system())
    code = joined(secret, pin_of(keys.signing.public, Certificates(settings.home).ca))
    found = {"name": chosen.name, "code": code, "expires": _time(expires), "alike": registry.names_like(chosen.name)}
    careful = [f"careful: this name can be taken for {other}, which has enrolled" for other in found["alike"]]
    return say(chosen, found, code, f"valid once, for {chosen.name}, until {found['expires']}", *careful)


def _backup(settings: Settings, chosen: argparse.Namespace) -> int:
    from curator.home import backup

    _require_home(settings)
    made = backup.make(settings, chosen.file)
    where = "" if made["database"] == "inside" else "; the database is elsewhere: back it up with its own tool, first"
    return say(
        chosen,
        {"written": str(chosen.file), **made},
        f"written to {chosen.file}: {len(made['files'])} files{where}",
        "it holds the curator's secret keys: keep it where nobody else reads",
    )


def _restore(settings: Settings, chosen: argparse.Namespace) -> int:
    from curator.home import backup

    found = backup.restore(settings, chosen.file)
    words = f"{settings.home} is as it was at {found['made']}; parties answer again what it has forgotten"
    return say(chosen, {"restored": str(settings.home), **found}, words)


def _registry(settings: Settings) -> Registry:
    _require_home(settings)
    return Registry(Store.open(settings.store_url), system_clock)


def _require_home(settings: Settings) -> None:
    """That `init` has made: no other command leaves an empty database in a mistyped place."""
    if not (settings.home / "keys").is_dir():
        raise SettingsError(f"{settings.home} is no curator's home: run `subn-curator init --home {settings.home}`")


def _require_database(settings: Settings) -> None:
    """Refuse to serve from an empty file in place of the one that knows all parties and runs."""
    file = settings.home / "curator.db"
    if not settings.database_url and (not file.exists() or not file.stat().st_size):
        raise SettingsError(
            f"{file} is absent or empty: restore the newest backup (`subn-curator restore FILE` into a new home); "
            "`subn-curator operator-key add LABEL` makes an empty database, which knows no party and no run"
        )


def _time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="seconds")


if __name__ == "__main__":
    sys.exit(main())
