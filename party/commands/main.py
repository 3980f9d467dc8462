"""`subn-party`: the data owner's command line, with its options, help texts and exit codes.

It does not know how the commands do their work.
"""

import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from party.commands import dispatch
from party.commands.exit_codes import exit_code, words
from protocol.errors import SubnError
from protocol.services.command_help import GroupedParser
from protocol.text import printable, printable_json, printable_lines

if TYPE_CHECKING:
    from party.commands.line import Seams
    from party.commands.result import Result

HOME_VARIABLE = "SUBN_PARTY_HOME"
DEFAULT_HOME = "party-home"
_CODES = (
    "exit codes: 0 done, 1 failed (curator, disk or ledger; trying again may help), 2 wrong command, settings or data, "
    "3 refused (by the curator, by your rules, or by books that were set back)"
)

_GROUPS = {
    "set up, in this order": ("init", "draft", "check", "enrol", "peers", "trust", "offer", "serve"),
    "decide": ("requests", "accept", "refuse", "page"),
    "look back": ("ledger", "audit", "compare", "export"),
    "keep it going": ("doctor", "ready", "start", "rotate"),
}
_EXAMPLES = (
    ("make a home, then write your rules in its party.toml", "subn-party init --home north"),
    (
        "join a curator, with the code that its operator gave you",
        "subn-party enrol --home north --curator https://curator.example --code CODE --name North",
    ),
    ("read and decide in a browser", "subn-party page --home north"),
    ("show what was spent, as JSON for another program", "subn-party ledger --home north --json"),
)


def main(arguments: Sequence[str] | None = None, seams: "Seams | None" = None) -> int:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # threads that share small matrices wait for each other
    chosen = make_parser().parse_args(arguments)
    chosen.seams = seams or {}
    try:
        result: Result = chosen.run(chosen)
    except (SubnError, OSError) as error:
        return complain(error, chosen.json)
    try:
        say(result, chosen.json)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return result.code


def say(result: "Result", as_json: bool) -> None:
    """Print what a command found; whatever others wrote into its lines, each is printed as one line."""
    if as_json:
        print(printable_json(result.data, indent=2))
    elif result.lines:
        print("\n".join(map(printable, result.lines)))


def complain(error: Exception, as_json: bool) -> int:
    """Print what went wrong, and return the exit code."""
    code, what = exit_code(error), words(error)
    if as_json:
        print(printable_json({"error": what, "kind": type(error).__name__, "code": code}))
    print(f"subn-party: {printable_lines(what)}", file=sys.stderr)
    return code


def make_parser() -> GroupedParser:
    parser = GroupedParser(
        groups=_GROUPS,
        examples=_EXAMPLES,
        prog="subn-party",
        description=(
            "Take part in synthetic tables of several parties' records, under your own rules. This program only makes "
            "outgoing connections, and answers only what your rules allow."
        ),
        epilog=_CODES,
    )
    groups = parser.add_commands()
    _add_joining(groups)
    _add_setting_up(groups)
    _add_taking_part(groups)
    _add_running(groups)
    _add_books(groups)
    return parser


def _add(groups: Any, name: str, family: dispatch.Family, summary: str, more: str = "") -> Any:
    command = groups.add_parser(
        name, help=summary, description=f"{summary[0].upper()}{summary[1:]}. {more}", epilog=_CODES
    )
    command.add_argument(
        "--home",
        type=Path,
        default=Path(os.environ.get(HOME_VARIABLE, DEFAULT_HOME)),
        metavar="DIR",
        help=f"this party's folder (default: ${HOME_VARIABLE}, or ./{DEFAULT_HOME})",
    )
    command.add_argument("--json", action="store_true", help="print JSON instead of text")
    command.set_defaults(command=name, run=partial(dispatch.carried_out, family))
    return command


def _add_joining(groups: Any) -> None:
    _add(
        groups,
        "init",
        dispatch.setup,
        "make this party's home: its keys and a commented party.toml",
        "Private keys are made here, readable by you alone, and never leave. Existing files are kept.",
    )
    enrol = _add(
        groups,
        "enrol",
        dispatch.setup,
        "join a curator with the one-time code of its operator",
        "The code proves the curator's key and its certificate authority, even over an untrusted network. The command "
        "shows the fingerprints of this party and of all others: compare them by telephone or mail with the people "
        "they belong to. Repeated for the same curator and name, it does nothing.",
    )
    enrol.add_argument("--curator", metavar="URL", help="address of the curator ($SUBN_PARTY_CURATOR)")
    enrol.add_argument(
        "--code", help="works once, within a day ($SUBN_PARTY_CODE, or the file that $SUBN_PARTY_CODE_FILE names)"
    )
    enrol.add_argument("--name", help="the name for which the code was made ($SUBN_PARTY_NAME)")
    recognise = _add(
        groups,
        "recognise",
        dispatch.setup,
        "pin the curator anew, after its operator has changed its key or its certificate authority",
        "The operator tells you the new pin by telephone or mail. Keys that do not match the pin are not accepted.",
    )
    recognise.add_argument("pin", metavar="PIN", help="32 digits, from `subn-curator certificate show`")
    _add(groups, "peers", dispatch.setup, "show the other parties, and whose fingerprints you have compared")
    trust = _add(
        groups,
        "trust",
        dispatch.setup,
        "note another party's fingerprint, as its data owner told you by telephone or mail",
        "The fingerprint is noted only if the curator shows the same. Runs with a party whose fingerprint is not noted "
        "need your decision; a party that comes with other keys is refused.",
    )
    trust.add_argument("name", metavar="NAME", help="the other party")
    trust.add_argument(
        "fingerprint", metavar="FINGERPRINT", help="eight groups of four digits, or twelve words; in quotes"
    )


def _add_setting_up(groups: Any) -> None:
    drafting = _add(
        groups,
        "draft",
        dispatch.drafting,
        "draft a schema from a table, on the spot, for people to finish",
        "For a table that has no schema yet. Names, kinds, formats and missing tokens are read from the table. Values "
        "and ranges are marked as to be justified from public knowledge: they come from rows, and a schema with such a "
        "mark is refused. Nothing leaves this machine.",
    )
    drafting.add_argument("dataset", metavar="DATASET", nargs="?", help="its name in party.toml (if there are several)")
    drafting.add_argument("--out", type=Path, metavar="FILE", help="the file to write (standard output)")
    check = _add(
        groups,
        "check",
        dispatch.checks,
        "check every data set against its schema, and whether the curator answers",
        "It says how files are read, and counts bad values. Nothing leaves this machine.",
    )
    check.add_argument(
        "--show-values",
        action="store_true",
        help="also show values that do not fit, with their places: on this screen, and nowhere else",
    )
    offer = _add(
        groups,
        "offer",
        dispatch.setup,
        "tell the curator which schemas you hold rows of, and how many rows",
        "Row counts are public. Repeat the offer when a table has changed.",
    )
    offer.add_argument("datasets", metavar="DATASET", nargs="*", help="names from party.toml (default: all)")
    _add(
        groups,
        "doctor",
        dispatch.doctor,
        "check everything that is needed to take part, and say how to repair what is wrong",
        "Connection, clock, certificates, disk, files, tables, ledger, audit log, rules, versions: one line each, ok, "
        "warn or bad. Exit code 1 if anything is bad. Nothing about rows leaves this machine.",
    )
    _add(
        groups,
        "rotate",
        dispatch.setup,
        "change this party's keys",
        "Stop `serve` first. The other data owners have to compare your new fingerprint.",
    )


def _add_taking_part(groups: Any) -> None:
    _add(
        groups,
        "serve",
        dispatch.serve,
        "take part in runs until stopped",
        "Makes outgoing connections only. Logs JSON lines on standard error; stops cleanly on SIGTERM and Ctrl-C.",
    )
    _add(
        groups,
        "page",
        dispatch.pages,
        "print an address that opens your pages in a browser",
        "It works once, within ten minutes, on this machine; `serve` has to be running.",
    )
    requests = _add(
        groups,
        "requests",
        dispatch.daily,
        "show the open requests: tables and cells of every step, the price, and the budget that would be left",
    )
    requests.add_argument("request", metavar="RUN", nargs="?", help="one run only")
    requests.add_argument("--all", action="store_true", help="also runs that are over")
    accept = _add(groups, "accept", dispatch.daily, "take part in a run that needs your decision")
    accept.add_argument("request", metavar="RUN")
    refuse = _add(groups, "refuse", dispatch.daily, "do not take part in a run")
    refuse.add_argument("request", metavar="RUN")
    refuse.add_argument("--reason", default="", help="sent to the curator and its operator")


def _add_running(groups: Any) -> None:
    ready = _add(
        groups,
        "ready",
        dispatch.ready,
        "ask the service whether it is ready",
        "Exit code 0 if it is; otherwise the reason, with the exit code that it would have as an error.",
    )
    ready.add_argument(
        "--wait",
        type=float,
        nargs="?",
        const=120.0,
        default=0.0,
        metavar="SECONDS",
        help="until it is ready or cannot become so by itself, at most this long (%(const)g seconds)",
    )
    _add(
        groups,
        "start",
        dispatch.start,
        "make a home, enrol, offer and serve, for containers: tried again until it succeeds",
        "Name, curator and code come from the environment, as `enrol` takes them. `ready` tells why a start fails.",
    )


def _add_books(groups: Any) -> None:
    ledger = _add(
        groups,
        "ledger",
        dispatch.daily,
        "show what was spent on every account, and each answer that cost it",
        "`ledger acknowledge` charges answers that this ledger lacks and the audit log or the curator knows, because "
        "the ledger was restored from an older copy or another copy of this home has answered; the service does not "
        "start before that.",
    )
    ledger.add_argument("action", nargs="?", choices=("show", "acknowledge"), default="show")
    ledger.add_argument("--dataset", metavar="NAME", help="show its account; charge answers of unknown runs to it")
    audit = _add(
        groups,
        "audit",
        dispatch.daily,
        "show, search or verify the log of everything that was asked, decided and sent",
    )
    audit.add_argument("action", nargs="?", choices=("show", "verify"), default="show")
    audit.add_argument("--search", default="", metavar="TEXT", help="only lines that contain this text")
    audit.add_argument("--last", type=int, default=50, metavar="N", help="show at most N lines (%(default)s)")
    compare = _add(
        groups,
        "compare",
        dispatch.pages,
        "compare the published table of a run with your own rows, for your eyes only",
        "The findings are computed and kept in this home. The only request to the curator is for the published table, "
        "as any party may fetch it. With scikit-learn (the extra `experiments`), a classifier is compared too.",
    )
    compare.add_argument("request", metavar="RUN")
    compare.add_argument("--guess", metavar="COLUMN", help="the column to predict (default: the schema's last)")
    export = _add(groups, "export", dispatch.daily, "write requests, accounts and audit log as one JSON document")
    backup = _add(
        groups,
        "backup",
        dispatch.daily,
        "copy this home into one file: ledger, audit log, keys, rules; no row of any table",
        "The service may be running.",
    )
    backup.add_argument("file", metavar="FILE", type=Path, help="a new file, which will hold secret keys")
    restore = _add(
        groups,
        "restore",
        dispatch.daily,
        "restore a backup into a new home, or into one that knows nothing more",
        "Answers given after the backup have to be charged with `ledger acknowledge` before the service starts.",
    )
    restore.add_argument("file", metavar="FILE", type=Path)
    export.add_argument("--out", type=Path, metavar="FILE", help="the file to write (default: standard output)")
