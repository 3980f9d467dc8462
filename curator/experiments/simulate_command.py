"""`subn simulate` and `subn sample-data`: try the system out in one process.

It does not know how an experiment runs (`curator.experiments.simulate`), and imports that only to run it.
"""

import argparse
import sys
from pathlib import Path
from time import monotonic
from typing import Any

from curator.experiments.division_options import add_division_options
from curator.operator.plan_options import add_plan_options, wishes
from curator.operator.progress import error_range
from curator.rendering.output import say
from protocol.errors import PlanError
from protocol.text import printable


def add_simulate_options(simulate: argparse.ArgumentParser) -> None:
    simulate.description = (
        "Divide a table among parties, run the protocol between them in one process, and write the synthetic "
        "table (synthetic.csv) and a record of the run and its costs (manifest.json). For trying things out: anyone "
        "who runs it sees all rows."
    )
    simulate.epilog = "Exit codes: 0 done, 1 failed, 2 the command, the schema, the data or the plan cannot work."
    files = simulate.add_argument_group("files")
    files.add_argument("--data", type=Path, required=True, metavar="T.csv[.gz]", help="the table, with a header row")
    files.add_argument("--schema", type=Path, required=True, metavar="S.json", help="its public schema")
    files.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for the results")
    files.add_argument("--json", action="store_true", help="print the manifest instead of a summary")
    add_plan_options(simulate.add_argument_group("the plan (defaults come from the preset)"))
    world = simulate.add_argument_group("the made-up world")
    add_division_options(world)
    world.add_argument(
        "--crypto",
        choices=("real", "none"),
        default="real",
        help="`none` leaves out the cryptography but keeps the distribution of the noise (%(default)s)",
    )
    world.add_argument("--seed", type=int, metavar="N", help="seed of a repeatable experiment; only with --crypto none")
    world.add_argument(
        "--evaluate", action="store_true", help="measure the error against the real rows; never publish the result"
    )
    simulate.set_defaults(run=_simulate)


def add_sample_data_options(sample: argparse.ArgumentParser) -> None:
    sample.description = (
        "Write schema.json, one CSV file per made-up hospital, and all.csv, which holds all their rows with the "
        "hospital's name in a first column."
    )
    sample.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for the files")
    sample.add_argument("--parties", type=int, default=3, metavar="K", help="number of hospitals (%(default)s)")
    sample.add_argument("--rows", type=int, default=20_000, metavar="N", help="rows of each hospital (%(default)s)")
    sample.add_argument("--seed", type=int, default=1, metavar="N", help="same seed, same patients (%(default)s)")
    sample.add_argument(
        "--messy",
        action="store_true",
        help="exports as hospitals make them, each in its own way, with a data dictionary and the truth (truth.json)",
    )
    sample.set_defaults(run=_sample_data)


def _simulate(chosen: argparse.Namespace) -> int:
    from curator.experiments.simulate import Experiment, run_experiment, settings_of
    from protocol.services.reading_line import ReadingLine

    experiment = Experiment(
        data=chosen.data,
        schema=chosen.schema,
        out=chosen.out,
        settings=settings_of(chosen, wishes(chosen)),
        seed=chosen.seed,
        real_crypto=chosen.crypto == "real",
        evaluate=chosen.evaluate,
    )
    watch = ReadingLine(sys.stderr.write, monotonic) if sys.stderr.isatty() else None
    manifest = run_experiment(experiment, _show_progress, watch)
    return say(chosen, manifest, *_summary(manifest, chosen.out), indent=1)


def _sample_data(chosen: argparse.Namespace) -> int:
    if chosen.parties < 1 or chosen.rows < 1:
        raise PlanError(f"{chosen.parties} hospitals of {chosen.rows} rows: at least 1 of each is needed")
    if chosen.messy:
        from curator.experiments.messy_data import write_messy

        names = write_messy(chosen.out, chosen.parties, chosen.rows, chosen.seed)
        print(
            printable(f"wrote {', '.join(names)}, dictionary.csv, schema.json, all.csv and truth.json to {chosen.out}")
        )
        return 0
    from curator.experiments.sample_data import write_sample

    write_sample(chosen.out, chosen.parties, chosen.rows, chosen.seed)
    print(printable(f"wrote {chosen.parties} hospitals of {chosen.rows:,} rows to {chosen.out}"))
    return 0


def _show_progress(step: str, party: str) -> None:
    end = "\r" if sys.stderr.isatty() else "\n"
    print(printable(f"{step}: {party}").ljust(60), file=sys.stderr, end=end, flush=True)


def _summary(manifest: dict[str, Any], out: Path) -> list[str]:
    lines = [f"{'stage':14} {'seconds':>8} {'cells':>10} {'ciphertexts':>12} {'bytes':>12}"]
    for phase in manifest["phases"]:
        figures = f"{phase['seconds']:8.2f} {phase['cells']:10,} {phase['ciphertexts']:12,} {phase['bytes']:12,}"
        lines.append(f"{phase['name']:14} {figures}")
    for party in manifest["parties"]:
        spent = f"spent {party['spent']} of {manifest['epsilon']}"
        delta = f", delta {party['delta']}" if party["delta"] != "0" else ""
        lines.append(f"{party['name']}: {party['rows']:,} rows, {spent}{delta}")
    expected = manifest["predicted"]
    measured = manifest.get("evaluation", {})
    if "average_1way_distance" in measured:
        lines.append(f"error of the single attribute, which has no pairs: {measured['average_1way_distance']:.4f}")
    elif measured:
        found = f"average error of all pairs of attributes: {measured['average_2way_distance']:.4f}"
        lines.append(f"{found}, predicted {_predicted(expected)}")
    else:
        lines.append(f"average error of all pairs of attributes, predicted: {_predicted(expected)}")
    lines += [f"{one['severity']}: {one['text']}" for one in manifest["advice"]]
    lines.append(f"wrote {out / 'synthetic.csv'} and {out / 'manifest.json'} in {manifest['seconds']:.1f} s")
    return lines


def _predicted(expected: dict[str, Any]) -> str:
    return f"not: {expected['why']}" if expected["error"] is None else error_range(expected)
