"""`subn simulate` and `subn sample-data`: trying the system out in one process.

It does not know how an experiment runs (`experiment`).
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from curator.experiments.partition import WAYS
from curator.experiments.sample_data import write_sample
from curator.experiments.simulate import Request, Settings, run_experiment
from curator.operator.plan_options import add_plan_options, wishes
from curator.operator.progress import error_range
from protocol.errors import PlanError


def add_simulate_options(simulate: argparse.ArgumentParser) -> None:
    simulate.description = (
        "Divide a table among parties, run the protocol between them in one process, and write the synthetic "
        "table (synthetic.csv) and what was done and spent (manifest.json). For trying things out: whoever runs "
        "it sees all rows."
    )
    simulate.epilog = "Exit codes: 0 done, 1 failed, 2 the command, the schema, the data or the plan cannot work."
    files = simulate.add_argument_group("files")
    files.add_argument("--data", type=Path, required=True, metavar="T.csv[.gz]", help="the table, with a header row")
    files.add_argument("--schema", type=Path, required=True, metavar="S.json", help="its public schema")
    files.add_argument("--out", type=Path, required=True, metavar="DIR", help="where the results go")
    files.add_argument("--json", action="store_true", help="print the manifest instead of a summary")
    add_plan_options(simulate.add_argument_group("the plan (defaults come from the preset)"))
    world = simulate.add_argument_group("the made-up world")
    add_division_options(world)
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


def add_division_options(group: Any) -> None:
    group.add_argument("--parties", type=int, metavar="K", help="number of parties (3, or what the column says)")
    group.add_argument(
        "--partition",
        default="random",
        metavar=WAYS,
        help="who holds which rows: as it falls, as a column of the file says, shares of the rows in an attribute's "
        "order, or one party with this share of them, as 0.8 (%(default)s)",
    )


def settings_of(chosen: argparse.Namespace) -> Settings:
    return Settings(
        epsilon=chosen.epsilon,
        parties=chosen.parties,
        method=chosen.method,
        preset=chosen.preset,
        partition=chosen.partition,
        wishes=wishes(chosen),
    )


def add_sample_data_options(sample: argparse.ArgumentParser) -> None:
    sample.description = (
        "Write schema.json, one CSV file per made-up hospital, and all.csv, which holds all their rows with the "
        "hospital's name in a first column."
    )
    sample.add_argument("--out", type=Path, required=True, metavar="DIR", help="where the files go")
    sample.add_argument("--parties", type=int, default=3, metavar="K", help="number of hospitals (%(default)s)")
    sample.add_argument("--rows", type=int, default=20_000, metavar="N", help="rows of each (%(default)s)")
    sample.add_argument("--seed", type=int, default=1, metavar="N", help="same seed, same patients (%(default)s)")
    sample.set_defaults(run=_sample_data)


def _simulate(chosen: argparse.Namespace) -> int:
    request = Request(
        data=chosen.data,
        schema=chosen.schema,
        out=chosen.out,
        settings=settings_of(chosen),
        seed=chosen.seed,
        real_crypto=chosen.crypto == "real",
        evaluate=chosen.evaluate,
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
        spent = f"spent {party['spent']} of {manifest['epsilon']}"
        delta = f", delta {party['delta']}" if party["delta"] != "0" else ""
        lines.append(f"{party['name']}: {party['rows']:,} rows, {spent}{delta}")
    expected = manifest["predicted"]
    if "evaluation" in manifest:
        found = f"average error of all pairs of attributes: {manifest['evaluation']['average_2way_distance']:.4f}"
        lines.append(f"{found}, predicted {_predicted(expected)}")
    else:
        lines.append(f"average error of all pairs of attributes, predicted: {_predicted(expected)}")
    lines.append(f"wrote {out / 'synthetic.csv'} and {out / 'manifest.json'} in {manifest['seconds']:.1f} s")
    return "\n".join(lines)


def _predicted(expected: dict[str, Any]) -> str:
    return f"not: {expected['why']}" if expected["error"] is None else error_range(expected)
