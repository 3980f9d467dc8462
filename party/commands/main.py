"""`subn-party`: the data owner's command line. This module holds the words and the exit codes.

It does not know how the commands do their work.
"""

import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from party.commands import dispatch
from party.errors import Declined, LedgerError, PolicyRefusal, RolledBack, TalkError, Untrusted
from protocol.errors import OperatorError, SubnError
from protocol.services.command_help import GroupedParser
from protocol.text import printable, printable_json, printable_lines

if TYPE_CHECKING:
    from party.commands.line import Seams
    from party.commands.result import Result

HOME_VARIABLE = "SUBN_PARTY_HOME"
DEFAULT_HOME = "party-home"
DONE, FAILED, USAGE, REFUSED = 0, 1, 2, 3
_CODES = (
    "exit codes: 0 done, 1 failed (curator, disk or ledger; trying again may help), 2 the command, the settings or the "
    "data cannot work, 3 refused (by the curator, by your rules, or by a ledger that was set back)"
)

_GROUPS = {
    "set up, in this order": ("init", "check", "enrol", "peers", "trust", "offer", "serve"),
    "decide": ("requests", "accept", "refuse", "page"),
    "look back": ("ledger", "audit", "compare", "export"),
    "keep it going": ("doctor", "ready", "rotate"),
}
_EXAMPLES = (
    ("make a home, then say in party.toml what may leave it", "subn-party init --home north"),
    (
        "join a curator, with the code that its operator gave you",
        "subn-party enrol --home north --curator https://curator.example --code CODE --name North",
    ),
    ("read and decide in a browser", "subn-party page --home north"),
    ("what was spent, as JSON for another program", "subn-party ledger --home north --json"),
)


def main(arguments: Sequence[str] | None = None, seams: "Seams | None" = None) -> int:
    chosen = _parser().parse_args(arguments)
    chosen.seams = seams or {}
    try:
        result: Result = chosen.run(chosen)
    except (SubnError, OSError) as error:
        return _complain(error, chosen.json)
    try:
        _say(result, chosen.json)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return result.code


def _say(result: "Result", as_json: bool) -> None:
    if as_json:
        print(printable_json(result.data, indent=2))
    elif result.lines:
        print("\n".join(map(printable, result.lines)))


def _complain(error: Exception, as_json: bool) -> int:
    code = _code(error)
    what = str(error)
    if isinstance(error, OSError):
        what = f"{error.filename or 'a file'}: {error.strerror}"
    elif isinstance(error, Declined):
        what = f"the curator refuses: {error}"
    if as_json:
        print(printable_json({"error": what, "kind": type(error).__name__, "code": code}))
    print(f"subn-party: {printable_lines(what)}", file=sys.stderr)
    return code


def _code(error: Exception) -> int:
    if isinstance(error, Declined | Untrusted | PolicyRefusal | RolledBack):
        return REFUSED
    if isinstance(error, OperatorError):
        return USAGE
    assert isinstance(error, TalkError | LedgerError | SubnError | OSError)
    return FAILED


def _parser() -> GroupedParser:
    parser = GroupedParser(
        groups=_GROUPS,
        examples=_EXAMPLES,
        prog="subn-party",
        description=(
            "Take part in synthetic tables of several parties' records, on your own terms: this program asks nothing "
            "of your network but a way out, and answers nothing that your rules do not allow."
        ),
        epilog=_CODES,
    )
    groups = parser.add_commands()
    _add_joining(groups)
    _add_setting_up(groups)
    _add_taking_part(groups)
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
        "Private keys are made here, readable for you alone, and never leave. Files that are there are kept.",
    )
    enrol = _add(
        groups,
        "enrol",
        dispatch.setup,
        "join a curator with the one-time code of its operator",
        "The code proves the curator's key and its certificate authority, whoever stands in between. Shows the "
        "fingerprints of this party and of all others: compare them by voice or mail with the people they belong to. "
        "Done again for the same curator and name, it does nothing.",
    )
    enrol.add_argument("--curator", metavar="URL", help="where it is ($SUBN_PARTY_CURATOR)")
    enrol.add_argument(
        "--code", help="good once and for a day ($SUBN_PARTY_CODE, or the file that $SUBN_PARTY_CODE_FILE names)"
    )
    enrol.add_argument("--name", help="the name for which it was made ($SUBN_PARTY_NAME)")
    recognise = _add(
        groups,
        "recognise",
        dispatch.setup,
        "pin the curator anew, when its operator has changed its key or its certificate authority",
        "The operator tells you the new pin by voice or mail; what the curator shows is taken only if it fits.",
    )
    recognise.add_argument("pin", metavar="PIN", help="32 digits, from `subn-curator certificate show`")
    _add(groups, "peers", dispatch.setup, "show the other parties, and whose fingerprints you have compared")
    trust = _add(
        groups,
        "trust",
        dispatch.setup,
        "note another party's fingerprint, as its data owner told you by voice or mail",
        "It is noted only if it is the one that the curator shows. Runs with a party whose fingerprint is not noted "
        "wait for your word; a party that comes with other keys is refused.",
    )
    trust.add_argument("name", metavar="NAME", help="the other party")
    trust.add_argument(
        "fingerprint", metavar="FINGERPRINT", help="eight groups of four digits, or twelve words; in quotes"
    )


def _add_setting_up(groups: Any) -> None:
    _add(
        groups,
        "check",
        dispatch.setup,
        "read every data set against its schema and say all that does not fit, and see if the curator answers",
        "Counts of bad values are shown to you only; nothing leaves this machine.",
    )
    offer = _add(
        groups,
        "offer",
        dispatch.setup,
        "tell the curator which schemas you hold rows of, and how many rows",
        "Row counts are public. Offer again when a table has changed.",
    )
    offer.add_argument("datasets", metavar="DATASET", nargs="*", help="names from party.toml (default: all)")
    _add(
        groups,
        "doctor",
        dispatch.doctor,
        "look at everything that is needed to take part, and say how to mend what is wrong",
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
        "Only calls out. Logs JSON lines on standard error; stops cleanly on SIGTERM and Ctrl-C.",
    )
    _add(
        groups,
        "page",
        dispatch.pages,
        "print an address that opens the pages of this party in a browser",
        "It works once, within ten minutes, on this machine; `serve` has to be running.",
    )
    _add(groups, "ready", dispatch.ready, "ask the service whether it is at work: exit code 0 or 1")
    requests = _add(
        groups,
        "requests",
        dispatch.daily,
        "show who asks for what: tables and cells of every phase, the price, and what would be left",
    )
    requests.add_argument("request", metavar="RUN", nargs="?", help="one run only")
    requests.add_argument("--all", action="store_true", help="also runs that are over")
    accept = _add(groups, "accept", dispatch.daily, "take part in a run that waits for your word")
    accept.add_argument("request", metavar="RUN")
    refuse = _add(groups, "refuse", dispatch.daily, "do not take part in a run")
    refuse.add_argument("request", metavar="RUN")
    refuse.add_argument("--reason", default="", help="told to the curator and its operator")


def _add_books(groups: Any) -> None:
    ledger = _add(
        groups,
        "ledger",
        dispatch.daily,
        "show what was spent on every data set, and each answer that cost it",
        "`ledger acknowledge` charges answers that the curator holds and this ledger has forgotten, because it was "
        "restored from a backup; the service does not start before.",
    )
    ledger.add_argument("action", nargs="?", choices=("show", "acknowledge"), default="show")
    ledger.add_argument("--dataset", metavar="NAME", help="show this one; charge what belongs to no known run to it")
    audit = _add(
        groups,
        "audit",
        dispatch.daily,
        "show, search or verify the log of everything that was asked, decided and sent",
    )
    audit.add_argument("action", nargs="?", choices=("show", "verify"), default="show")
    audit.add_argument("--search", default="", metavar="TEXT", help="only lines that hold this text")
    audit.add_argument("--last", type=int, default=50, metavar="N", help="at most so many lines (%(default)s)")
    compare = _add(
        groups,
        "compare",
        dispatch.pages,
        "compare the published table of a run with your own rows, for your eyes only",
        "Worked out and kept in this home. The curator is asked for the published table, as any party may, and for "
        "nothing else. With scikit-learn (the extra `experiments`) a classifier is compared too.",
    )
    compare.add_argument("request", metavar="RUN")
    compare.add_argument("--guess", metavar="COLUMN", help="what the classifier guesses (the schema's last column)")
    export = _add(groups, "export", dispatch.daily, "write requests, accounts and audit log as one JSON document")
    backup = _add(
        groups,
        "backup",
        dispatch.daily,
        "copy this home into one file: ledger, audit log, keys, rules; no row of any table",
        "May run while the service serves.",
    )
    backup.add_argument("file", metavar="FILE", type=Path, help="a new file; it will hold secret keys")
    restore = _add(
        groups,
        "restore",
        dispatch.daily,
        "bring a backup back, into a new home or one that knows nothing more",
        "What was spent after the backup was made is charged with `ledger acknowledge`, before anything is served.",
    )
    restore.add_argument("file", metavar="FILE", type=Path)
    export.add_argument("--out", type=Path, metavar="FILE", help="where to (default: standard output)")
