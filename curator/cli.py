"""`subn`: the operator's command line.

It does not know how the commands do their work.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from curator.experiment import Request, run_experiment
from curator.sample_files import write_sample
from protocol.errors import OperatorError, PlanError
from protocol.exact import exact

USAGE_ERROR = 2


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    chosen = parser.parse_args(arguments)
    try:
        return int(chosen.run(chosen))
    except OperatorError as error:
        print(f"subn: {error}", file=sys.stderr)
        return USAGE_ERROR
    except OSError as error:
        print(f"subn: {error.filename or 'a file'}: {error.strerror}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="subn",
        description="Publish one synthetic table of many parties' records under differential privacy.",
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_simulate(commands)
    _add_sample_data(commands)
    return parser


def _add_simulate(commands: Any) -> None:
    simulate = commands.add_parser(
        "simulate",
        help="run the whole protocol in one process over one table, divided among made-up parties",
        description=(
            "Divide a table among parties, run the protocol between them in one process, and write the synthetic "
            "table (synthetic.csv) and what was done and spent (manifest.json). For trying things out: whoever runs "
            "it sees all rows."
        ),
        epilog="Exit codes: 0 done, 1 failed, 2 the command, the schema, the data or the plan cannot work.",
    )
    files = simulate.add_argument_group("files")
    files.add_argument("--data", type=Path, required=True, metavar="T.csv[.gz]", help="the table, with a header row")
    files.add_argument("--schema", type=Path, required=True, metavar="S.json", help="its public schema")
    files.add_argument("--out", type=Path, required=True, metavar="DIR", help="where the results go")
    files.add_argument("--json", action="store_true", help="print the manifest instead of a summary")
    _add_plan_options(simulate.add_argument_group("the plan (defaults come from the preset)"))
    world = simulate.add_argument_group("the made-up world")
    world.add_argument("--parties", type=int, metavar="K", help="number of parties (3, or what the column says)")
    world.add_argument(
        "--partition", default="random", metavar="random|file:COLUMN", help="who holds which rows (%(default)s)"
    )
    world.add_argument(
        "--crypto",
        choices=("real", "none"),
        default="real",
        help="none leaves the cryptography out and keeps the noise's distribution (%(default)s)",
    )
    world.add_argument("--seed", type=int, metavar="N", help="repeat an experiment; with --crypto none only")
    world.add_argument(
        "--evaluate", action="store_true", help="measure the error against the real rows; never publish that figure"
    )
    simulate.set_defaults(run=_simulate)


def _fraction(text: str) -> Any:
    try:
        return exact(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _fractions(text: str) -> Any:
    return tuple(_fraction(part) for part in text.split(","))


def _add_sample_data(commands: Any) -> None:
    sample = commands.add_parser(
        "sample-data",
        help="write made-up hospitals' tables and their schema, for trying things out",
        description=(
            "Write schema.json, one CSV file per made-up hospital, and all.csv, which holds all their rows with the "
            "hospital's name in a first column."
        ),
    )
    sample.add_argument("--out", type=Path, required=True, metavar="DIR", help="where the files go")
    sample.add_argument("--parties", type=int, default=3, metavar="K", help="number of hospitals (%(default)s)")
    sample.add_argument("--rows", type=int, default=20_000, metavar="N", help="rows of each (%(default)s)")
    sample.add_argument("--seed", type=int, default=1, metavar="N", help="same seed, same patients (%(default)s)")
    sample.set_defaults(run=_sample_data)


_PLAN_OPTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("--insiders", {"type": int, "metavar": "T", "help": "curious parties that may pool what they know (1)"}),
    ("--noise", {"choices": ("selected", "distributed", "local"), "help": "whose noise stays in the sums"}),
    ("--update", {"choices": ("accumulate", "replace", "joint"), "help": "how phase 3 updates the network"}),
    ("--rounds", {"type": int, "metavar": "R", "help": "rounds of --update joint"}),
    ("--encoding", {"choices": ("native", "binary", "gray", "hierarchical"), "help": "attributes to variables"}),
    ("--score", {"choices": ("I", "F", "R"), "help": "how phase 2 scores a parent set"}),
    ("--choice", {"choices": ("permute-and-flip", "exponential"), "help": "how phase 2 picks one"}),
    ("--split", {"type": _fractions, "metavar": "E1,E2,E3,E4", "help": "epsilon's parts, exact"}),
    ("--theta", {"type": _fraction, "metavar": "X", "help": "information over noise in a table"}),
    ("--degree", {"type": int, "metavar": "D", "help": "largest number of parents, instead of theta's"}),
    ("--rows", {"type": int, "metavar": "N", "help": "rows of the synthetic table (as many as the real ones)"}),
    ("--key-bits", {"type": int, "metavar": "B", "help": "size of the Paillier key (3072)"}),
)


def _add_plan_options(group: Any) -> None:
    group.add_argument("--epsilon", required=True, metavar="E", help="what each party spends at most: 0.8 or 4/5")
    methods = ("dp-subn", "dp-ccbn", "independent")
    group.add_argument("--method", choices=methods, default="dp-subn", help="(%(default)s)")
    group.add_argument("--preset", choices=("recommended", "paper"), default="recommended", help="(%(default)s)")
    for name, settings in _PLAN_OPTIONS:
        group.add_argument(name, **settings)


def _wish_names() -> list[str]:
    return [name.removeprefix("--").replace("-", "_") for name, _ in _PLAN_OPTIONS]


def _simulate(chosen: argparse.Namespace) -> int:
    request = Request(
        data=chosen.data,
        schema=chosen.schema,
        out=chosen.out,
        epsilon=chosen.epsilon,
        parties=chosen.parties,
        method=chosen.method,
        preset=chosen.preset,
        partition=chosen.partition,
        seed=chosen.seed,
        real_crypto=chosen.crypto == "real",
        evaluate=chosen.evaluate,
        wishes={name: getattr(chosen, name) for name in _wish_names()},
    )
    manifest = run_experiment(request, _show_progress)
    print(json.dumps(manifest, indent=1, ensure_ascii=False) if chosen.json else _summary(manifest, chosen.out))
    return 0


def _sample_data(chosen: argparse.Namespace) -> int:
    if chosen.parties < 1 or chosen.rows < 1:
        raise PlanError(f"{chosen.parties} hospitals of {chosen.rows} rows: at least 1 of each is needed")
    write_sample(chosen.out, chosen.parties, chosen.rows, chosen.seed)
    print(f"wrote {chosen.parties} hospitals of {chosen.rows:,} rows to {chosen.out}")
    return 0


def _show_progress(step: str, party: str) -> None:
    end = "\r" if sys.stderr.isatty() else "\n"
    print(f"{step}: {party}".ljust(60), file=sys.stderr, end=end, flush=True)


def _summary(manifest: dict[str, Any], out: Path) -> str:
    lines = [f"{'phase':14} {'seconds':>8} {'cells':>10} {'ciphertexts':>12} {'bytes':>12}"]
    for phase in manifest["phases"]:
        figures = f"{phase['seconds']:8.2f} {phase['cells']:10,} {phase['ciphertexts']:12,} {phase['bytes']:12,}"
        lines.append(f"{phase['name']:14} {figures}")
    for party in manifest["parties"]:
        lines.append(f"{party['name']}: {party['rows']:,} rows, spent {party['spent']} of {manifest['epsilon']}")
    if "evaluation" in manifest:
        lines.append(f"average error of all pairs of attributes: {manifest['evaluation']['average_2way_distance']:.4f}")
    lines.append(f"wrote {out / 'synthetic.csv'} and {out / 'manifest.json'} in {manifest['seconds']:.1f} s")
    return "\n".join(lines)
