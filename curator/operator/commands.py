"""`subn plan|run|runs|watch|wait|cancel|get|parties|schemas`: work with a curator from the command line.

It does not know HTTP (`curator.operator.client`) or how progress is drawn (`curator.operator.progress`).
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from curator.errors import CuratorUnreachable
from curator.operator.line import Command, action, command
from curator.operator.plan_options import add_plan_options, as_json, wishes
from curator.operator.progress import Screen, describe_curve, describe_plan, describe_run
from curator.rendering.output import say
from curator.results import multiple_tables
from protocol.errors import OperatorError
from protocol.messages.run_states import ENDS
from protocol.text import printable, printable_json

if TYPE_CHECKING:
    from curator.operator.client import CuratorClient

EXIT_CODES = {"finished": 0, "failed": 1, "cancelled": 3, "refused": 3, "timed_out": 4}
TIMED_OUT = 4
ADVISED_AGAINST = 3  # a plan that is refused unless the operator says --anyway
RESULTS = (
    *("manifest.json", "table.csv", "schema.json", "codebook.csv", "codebook.html"),
    *("network.json", "tables.json", "report.json", "report.html", "table.parquet"),
)
_POLL_SECONDS = 0.5
_MOST_COPIES = 1000
_EXIT_CODES_TEXT = "Exit codes: 0 finished, 1 failed, 2 usage, 3 cancelled or refused, 4 timed out."


def add_operator_options(name: str, parser: argparse.ArgumentParser) -> None:
    _OPTIONS[name](parser)


def _plan_options(parser: argparse.ArgumentParser) -> None:
    _planning_options(parser, _plan)
    parser.add_argument("--curve", action="store_true", help="also the predicted error of the same plan by epsilon")
    parser.epilog = "Exit codes: 0 planned, 1 failed, 2 usage or no such plan, 3 advice says stop (--anyway: 0)."


def _planning_options(parser: argparse.ArgumentParser, run: Command) -> None:
    command(parser, run)
    parser.add_argument("--schema", required=True, metavar="S.json|HASH", help="a schema's file or its hash")
    parser.add_argument(
        "--party", action="append", metavar="NAME", help="a party; repeat for more (all that offer rows)"
    )
    add_plan_options(parser.add_argument_group("the plan (defaults come from the preset)"))
    parser.add_argument(
        "--anyway", action="store_true", help="start the plan although advice says stop; the plan records the advice"
    )


def _run_options(parser: argparse.ArgumentParser) -> None:
    _planning_options(parser, _run)
    for option, text in (
        ("--join-seconds", "for all parties to join"),
        ("--step-seconds", "for all answers to a step"),
    ):
        parser.add_argument(option, type=int, metavar="N", help=f"how long to wait {text} (the curator's setting)")
    parser.add_argument(
        "--idempotency-key", metavar="TEXT", help="a repeated key with the same plan gives the same run (random)"
    )


def _runs_options(parser: argparse.ArgumentParser) -> None:
    command(parser, _list_runs)


def _watch_options(parser: argparse.ArgumentParser) -> None:
    command(parser, _watch).add_argument("id", metavar="RUN")
    parser.epilog = _EXIT_CODES_TEXT


def _wait_options(parser: argparse.ArgumentParser) -> None:
    command(parser, _wait).add_argument("id", metavar="RUN")
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help="wait at most this long (no limit)")
    parser.epilog = _EXIT_CODES_TEXT


def _cancel_options(parser: argparse.ArgumentParser) -> None:
    command(parser, _cancel).add_argument("id", metavar="RUN")
    parser.add_argument("--reason", metavar="TEXT", help="the reason shown to the parties")


def _get_options(get: argparse.ArgumentParser) -> None:
    command(get, _get).add_argument("id", metavar="RUN")
    get.add_argument(
        "--file",
        action="append",
        choices=RESULTS,
        metavar="NAME",
        help=f"repeat; {', '.join(RESULTS)} (all but the last)",
    )
    get.add_argument(
        "--out", type=Path, default=Path(), metavar="DIR", help="folder for the files (the current folder)"
    )
    get.add_argument(
        "--rows", type=int, metavar="N", help="draw a new table with N rows instead of the published table"
    )
    get.add_argument(
        "--copies",
        type=int,
        metavar="M",
        help="draw M new tables (copy-1.csv, ...) from the published model, at no cost in privacy",
    )
    get.add_argument(
        "--spreadsheet-safe",
        action="store_true",
        help="write a copy of each CSV file too (table.spreadsheet.csv) in which no cell is a formula",
    )


def _parties_options(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    action(actions, "list", "all parties, their keys' fingerprints and what they offer", _list_parties)
    for name, text, run in (
        ("code", "make a one-time code with which a party of this name enrols", _party_code),
        ("revoke", "revoke a party; its runs fail", _revoke_party),
    ):
        action(actions, name, text, run).add_argument("name", metavar="NAME")


_OPTIONS: dict[str, Callable[[argparse.ArgumentParser], None]] = {
    "plan": _plan_options,
    "run": _run_options,
    "runs": _runs_options,
    "watch": _watch_options,
    "wait": _wait_options,
    "cancel": _cancel_options,
    "get": _get_options,
    "parties": _parties_options,
}


def _body(client: "CuratorClient", chosen: argparse.Namespace) -> dict[str, Any]:
    body = {"schema": _schema_hash(client, chosen.schema), "parties": chosen.party, "epsilon": chosen.epsilon}
    body |= {"method": chosen.method, "preset": chosen.preset} | as_json(wishes(chosen))
    return body | ({"anyway": True} if chosen.anyway else {})


def _run_body(client: "CuratorClient", chosen: argparse.Namespace) -> dict[str, Any]:
    waiting = {name: getattr(chosen, name) for name in ("join_seconds", "step_seconds")}
    return _body(client, chosen) | {name: seconds for name, seconds in waiting.items() if seconds is not None}


def _schema_hash(client: "CuratorClient", given: str) -> str:
    if len(given) == 64 and not Path(given).exists():
        return given
    from curator.operator.schema_files import schema_text  # imports numpy, for which no other command should wait

    return str(client.add_schema(schema_text(Path(given)))["hash"])


def _plan(client: "CuratorClient", chosen: argparse.Namespace) -> int:
    plan = client.plan(_body(client, chosen), chosen.curve)
    say(chosen, plan, *describe_plan(plan), *(describe_curve(plan) if chosen.curve else ()))
    is_stopped = any(one["severity"] == "stop" for one in plan["advice"])
    return ADVISED_AGAINST if is_stopped and not chosen.anyway else 0


def _run(client: "CuratorClient", chosen: argparse.Namespace) -> int:
    key = chosen.idempotency_key or _new_key()
    run = client.create_run(_run_body(client, chosen), key)
    return say(chosen, run, run["run"], f"follow it with: subn watch {run['run']}")


def _new_key() -> str:
    from crypto.randomness import Stream  # imports numpy, for which no other command should wait

    return Stream.system().take(16).hex()


def _watch(client: "CuratorClient", chosen: argparse.Namespace) -> int:
    screen = Screen(sys.stdout)
    for event in client.events(chosen.id):
        if chosen.json:
            print(printable_json(event), flush=True)
        else:
            screen.show(client.run(chosen.id))
    return _end(chosen, client.run(chosen.id))


def _wait(client: "CuratorClient", chosen: argparse.Namespace) -> int:
    deadline = None if chosen.timeout is None else monotonic() + chosen.timeout
    while (run := _state(client, chosen.id, deadline))["state"] not in ENDS:
        if deadline is not None and monotonic() >= deadline:
            late = f"run {chosen.id} is still {run['state']} after {chosen.timeout:g} s"
            print(f"subn: {printable(late)}", file=sys.stderr)
            return TIMED_OUT
        sleep(_POLL_SECONDS)
    return _end(chosen, run)


def _state(client: "CuratorClient", run: str, deadline: float | None) -> dict[str, Any]:
    """Return the run. A curator that is down for a moment, as in a restart, does not end the waiting."""
    patience = monotonic() + 60 if deadline is None else deadline
    while True:
        try:
            return client.run(run)
        except CuratorUnreachable:
            if monotonic() >= patience:
                raise
            sleep(_POLL_SECONDS)


def _end(chosen: argparse.Namespace, run: dict[str, Any]) -> int:
    say(chosen, run, describe_run(run))
    return EXIT_CODES[run["state"]]


def _list_runs(client: "CuratorClient", chosen: argparse.Namespace) -> int:
    runs = client.runs()
    lines = [
        f"{run['run']}  {run['created'][:19]}  {run['method']}, epsilon {run['epsilon']}, {run['parties']} parties: "
        + run["state"].replace("_", " ")
        for run in runs
    ]
    return say(chosen, runs, *(lines or ["no run yet: subn run"]))


def _cancel(client: "CuratorClient", chosen: argparse.Namespace) -> int:
    run = client.cancel(chosen.id, chosen.reason)
    return say(chosen, run, describe_run(run))


def _get(client: "CuratorClient", chosen: argparse.Namespace) -> int:
    if chosen.copies is not None:
        return _get_copies(client, chosen)
    chosen.out.mkdir(parents=True, exist_ok=True)
    names = chosen.file or (_published(client, chosen) if chosen.rows is None else ("table.csv",))
    for name in names:
        client.download(chosen.id, name, chosen.out / name, chosen.rows if name.startswith("table.") else None)
    paths = _with_safe_copies(chosen, [chosen.out / name for name in names])
    return say(chosen, {"files": paths}, *paths)


def _with_safe_copies(chosen: argparse.Namespace, paths: Sequence[Path]) -> list[str]:
    """Return the files, with a copy of each CSV file for spreadsheets if it was asked for."""
    found = list(map(str, paths))
    for path in paths:
        if chosen.spreadsheet_safe and path.suffix == ".csv":
            from curator.results.csv_files import write_for_spreadsheets  # takes long to import

            write_for_spreadsheets(path, copy := path.with_suffix(".spreadsheet.csv"))
            found.append(str(copy))
    return found


def _published(client: "CuratorClient", chosen: argparse.Namespace) -> list[str]:
    """Return the names of all published files; a run of an older program has fewer."""
    from protocol.outside_json import LARGEST_FILE, read_json  # takes long to import

    client.download(chosen.id, "manifest.json", chosen.out / "manifest.json")
    outputs = read_json((chosen.out / "manifest.json").read_bytes(), LARGEST_FILE)["manifest"]["outputs"]
    return [name for name in RESULTS[:-1] if name == "manifest.json" or name in outputs]


def _get_copies(client: "CuratorClient", chosen: argparse.Namespace) -> int:
    """Download several tables, each drawn from fresh randomness."""
    if not 1 <= chosen.copies <= _MOST_COPIES or chosen.file:
        raise OperatorError(
            f"--copies takes 1 to {_MOST_COPIES}, and cannot be combined with --file: it draws tables as CSV"
        )
    chosen.out.mkdir(parents=True, exist_ok=True)
    client.download(chosen.id, "manifest.json", chosen.out / "manifest.json")
    from protocol.outside_json import LARGEST_FILE, read_json  # takes long to import

    plan = read_json((chosen.out / "manifest.json").read_bytes(), LARGEST_FILE)["manifest"]["plan"]
    rows = chosen.rows or plan["rows"]
    paths = [chosen.out / f"copy-{number}.csv" for number in range(1, chosen.copies + 1)]
    for path in paths:
        client.download(chosen.id, "table.csv", path, rows)
    rule = multiple_tables.rule(sum(member["rows"] for member in plan["members"]), rows)
    files = _with_safe_copies(chosen, paths)
    lines = [*files, multiple_tables.PURPOSE, rule, multiple_tables.CONDITION]
    return say(chosen, {"files": files, "rows": rows, "rule": rule}, *lines)


def _list_parties(client: "CuratorClient", chosen: argparse.Namespace) -> int:
    parties = client.parties()
    lines = [
        f"{party['name']}{' (revoked)' if party['revoked'] else ''}: {party['fingerprint']}, "
        + (", ".join(f"{o['dataset']} {o['rows']:,} rows" for o in party["offers"]) or "no rows offered")
        for party in parties
    ]
    return say(chosen, parties, *(lines or ["no party has enrolled yet: subn parties code NAME"]))


def _party_code(client: "CuratorClient", chosen: argparse.Namespace) -> int:
    code = client.code(chosen.name)
    careful = [f"careful: this name can be taken for {other}, which has enrolled" for other in code["alike"]]
    return say(chosen, code, code["code"], f"valid once, for {chosen.name}, until {code['expires']}", *careful)


def _revoke_party(client: "CuratorClient", chosen: argparse.Namespace) -> int:
    client.revoke(chosen.name)
    return say(chosen, {"revoked": chosen.name}, f"{chosen.name} is revoked")
