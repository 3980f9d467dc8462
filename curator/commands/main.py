"""`subn-curator`: set up a curator and serve it.

It does not know how requests are answered (`curator.app`) or operators' commands (`subn`).
"""

import os
import re
import sys
from argparse import ArgumentTypeError
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from curator.commands import dispatch
from curator.errors import StoreUnavailable
from protocol.errors import SubnError
from protocol.services.command_help import GroupedParser
from protocol.text import printable, printable_lines

FAILED, USAGE_ERROR = 1, 2

_GROUPS = {
    "set up and serve": ("init", "serve", "ready", "certificate", "rotate", "doctor"),
    "let people and parties in": ("operator-key", "code"),
    "keep its home": ("backup", "restore", "archive"),
}
_EXAMPLES = (
    ("a home with keys, and the first operator's key, shown once", "subn-curator init --home curator"),
    ("serve parties and operators", "subn-curator serve --home curator --port 8460"),
    ("a one-time code with which a party enrols", "subn-curator code North --home curator"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # threads that share small matrices wait for each other
    chosen = make_parser().parse_args(arguments)
    try:
        return int(chosen.run(chosen))
    except SubnError as error:
        print(f"subn-curator: {printable_lines(str(error))}", file=sys.stderr)
        return FAILED if isinstance(error, StoreUnavailable) else USAGE_ERROR
    except OSError as error:
        print(f"subn-curator: {printable(str(error.filename or 'a file'))}: {error.strerror}", file=sys.stderr)
        return FAILED


def make_parser() -> GroupedParser:
    parser = GroupedParser(
        groups=_GROUPS,
        examples=_EXAMPLES,
        prog="subn-curator",
        description="Run a curator. Every setting can also be given as SUBN_CURATOR_NAME in the environment.",
        epilog="Exit codes: 0 done, 1 failed, 2 the command or the settings cannot work.",
    )
    commands = parser.add_commands()
    text = "make the home directory, its keys and certificates, and a first operator's key"
    _command(commands, "init", text, dispatch.home, add_options=dispatch.certificate_options)
    serve = _command(commands, "serve", "serve parties and operators, by TLS", dispatch.serve)
    serve.add_argument("--host", metavar="ADDRESS", help="where to listen (127.0.0.1)")
    serve.add_argument("--port", type=int, metavar="N", help="where to listen (8460); 0 takes a free one")
    serve.add_argument(
        "--plain-http", action="store_true", default=None, help="without TLS; only at a loopback address"
    )
    serve.add_argument(
        "--behind-proxy",
        metavar="ADDRESSES",
        help="a proxy handles TLS: the addresses or networks from which it connects, with commas between them",
    )
    certificate = commands.add_parser("certificate", help="show and renew the server's certificate")
    shown = certificate.add_subparsers(required=True, metavar="ACTION")
    _command(
        shown, "show", "names, remaining days, and the pin by which parties check the curator", dispatch.certificate
    )
    text = "make a new certificate under the same CA; a running server uses it, and parties need not do anything"
    _command(shown, "renew", text, dispatch.certificate, add_options=dispatch.certificate_options)
    ready = _command(commands, "ready", "ask the service whether it is at work: exit code 0 or 1", dispatch.ready)
    ready.add_argument("--port", type=int, metavar="N", help="where it listens (8460)")
    text = "until it is at work, at most this long (%(const)g seconds)"
    ready.add_argument("--wait", type=float, nargs="?", const=120.0, default=0.0, metavar="SECONDS", help=text)
    text = "make a new signing key; restart the service, and tell every party the new pin to recognise it by"
    _command(commands, "rotate", text, dispatch.home)
    text = "check everything that the service needs, and explain how to repair faults; exit code 1 for a fault"
    looks = _command(commands, "doctor", text, dispatch.doctor)
    looks.add_argument("--port", type=int, metavar="N", help="where the service listens (8460)")
    keys = commands.add_parser("operator-key", help="add, list and revoke operators' keys")
    actions = keys.add_subparsers(required=True, metavar="ACTION")
    _command(actions, "add", "make a key; it is printed only once", dispatch.operator_key).add_argument("label")
    _command(actions, "list", "labels of the keys that are valid", dispatch.operator_key)
    _command(actions, "revoke", "make a key invalid at once", dispatch.operator_key).add_argument("label")
    _add_keeping(commands)
    code = _command(commands, "code", "make a one-time code with which a party of this name enrols", dispatch.home)
    code.add_argument("name", metavar="NAME")
    return parser


def _add_keeping(commands: Any) -> None:
    backup = _command(commands, "backup", "copy this home into one file: database, keys, results", dispatch.home)
    backup.add_argument("file", metavar="FILE", type=Path, help="a new file; it will hold secret keys")
    restore = _command(commands, "restore", "restore a backup, into a home that knows nothing more", dispatch.home)
    restore.add_argument("file", metavar="FILE", type=Path)
    text = "move the published files of old runs into archives; signed manifests stay, with receipts, prices and events"
    archive = _command(commands, "archive", text, dispatch.home)
    archive.add_argument(
        "--older-than",
        type=_age,
        required=True,
        metavar="DAYS",
        help="runs that finished more than so many days ago, as 90 or 90d",
    )
    archive.add_argument("--to", type=Path, required=True, metavar="DIR", help="a folder for one .tar.gz of each run")


def _age(text: str) -> int:
    """Read a number of days as milliseconds."""
    found = re.fullmatch(r"([0-9]{1,5})d?", text, re.ASCII)
    if found is None:
        raise ArgumentTypeError(f"{text!r} is no number of days: expected 90d, for example")
    return int(found[1]) * 24 * 3600 * 1000


def _command(commands: Any, name: str, text: str, family: dispatch.Family, **more: Any) -> Any:
    parser = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.", **more)
    parser.add_argument("--home", type=Path, metavar="DIR", help="the curator's home directory (curator-home)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(command=name, run=partial(dispatch.carried_out, family))
    return parser


if __name__ == "__main__":
    sys.exit(main())
