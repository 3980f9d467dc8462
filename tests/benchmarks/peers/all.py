"""Runs the central methods one after another; appends what they reach to results.jsonl, and runs nothing twice.

    python -m tests.benchmarks.peers.all --python build/peers/bin/python [adult nltcs ...]

It does not know dp-subn's own runs (`tests.benchmarks.utility`).
"""

import argparse
import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from curator.experiments.evaluation import evaluate
from tests.benchmarks.utility_data import evaluation_of, source_of, tasks_of

HERE = Path(__file__).parent
RESULTS = HERE / "results.jsonl"
DELTA = "1e-9"
EPSILONS = ("0.2", "0.8", "1.6")
METHODS = ("mst", "privbayes", "aim")


def settings(data: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Cheap ones first; AIM may take a quarter of an hour for each."""
    for seed, method, name, epsilon in product((1, 2, 3), METHODS, data, EPSILONS):
        yield {"data": name, "method": method, "epsilon": epsilon, "delta": DELTA, "seed": seed}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", type=Path, required=True, help="the interpreter that has the peers' packages")
    parser.add_argument("data", nargs="*", default=["adult", "nltcs"])
    chosen = parser.parse_args()
    done = [json.loads(line)["settings"] for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []
    for one in settings(chosen.data):
        if one not in done:
            result = {"settings": one} | measure(chosen.python, one)
            with RESULTS.open("a", encoding="utf-8") as file:
                file.write(json.dumps(result) + "\n")
            print(json.dumps(result), flush=True)


def measure(python: Path, one: dict[str, Any]) -> dict[str, Any]:
    source = source_of(one["data"])
    with TemporaryDirectory() as folder:
        out = Path(folder) / "synthetic.csv"
        options = {name: one[name] for name in ("method", "epsilon", "delta", "seed")}
        options |= {"data": source.table, "schema": source.schema, "out": out}
        command = [python, "-W", "ignore", HERE / "run.py", *(f"--{name}={value}" for name, value in options.items())]
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        ran = subprocess.run(command, env=os.environ | threads, capture_output=True, text=True, check=True)
        cost = json.loads(ran.stdout.splitlines()[-1])
        reports = [evaluate(evaluation_of(one["data"], out, *task)) for task in tasks_of(one["data"])]
    distances = {f"{report['ways']}-way": report["average"] for report in reports[0]["distances"]}
    wrong = [rates for report in reports for rates in report["classification"]]
    return cost | {"distances": distances, "classification": wrong}


if __name__ == "__main__":
    main()
