"""A party of very many rows: its Parquet file read and coded, and a run in which it takes part, by number of rows.

Run: python -m tests.benchmarks.large [--rows 100000 1000000 10000000 100000000]. The largest file takes 2 GB of disk,
and its making most of the time.

The run is of three parties, of which the two others are small, so its seconds are the large party's and the curator's:
all passes, picks and fits, without drawing. Seconds are those of processors; each number of rows has a process of its
own, whose largest memory is told. A slope is the exponent of the power that fits the seconds best.

It does not know thresholds: it prints figures.
"""

import argparse
import resource
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from time import process_time

import numpy as np

from curator.experiments.simulate import make_identities, stream_of_seed
from curator.experiments.simulation import member_of, simulate
from party.home.settings import Dataset
from party.source import load
from protocol.exact import exact
from protocol.forecast.recommendation import planned
from tests.benchmarks.rows_in import adult_schema, like_adult, written

_ROWS = (10**5, 10**6, 10**7, 10**8)
_SMALL = 1000  # rows of the other parties
_PARTIES, _EPSILON = 3, "0.8"


@dataclass(frozen=True)
class _Measured:
    rows: int
    reading: float
    running: float
    megabytes: int

    @property
    def whole(self) -> float:
        return self.reading + self.running


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=_ROWS)
    chosen, found = parser.parse_args(arguments), []
    print(f"{'rows':>12} {'read s':>8} {'run s':>8} {'whole s':>8} {'MB':>6}")
    with get_context("spawn").Pool(1, maxtasksperchild=1) as processes:
        for one in processes.imap(_measured, sorted(chosen.rows)):
            print(
                f"{one.rows:12,} {one.reading:8.2f} {one.running:8.2f} {one.whole:8.2f} {one.megabytes:6}", flush=True
            )
            found.append(one)
    for name in ("reading", "running", "whole"):
        print(f"slope of {name}: {_slope([one.rows for one in found], [getattr(one, name) for one in found]):.2f}")


def _measured(rows: int) -> _Measured:
    schema = adult_schema()
    with tempfile.TemporaryDirectory() as folder:
        written(Path(folder), "adult", like_adult, rows, kinds=("parquet",))
        dataset = Dataset.model_validate({"source": "adult.parquet", "schema": "s", "epsilon_total": "1"})
        begun = process_time()
        codes = load(Path(folder), dataset, schema)
        read = process_time()
    stream = stream_of_seed(1)
    own = [codes, *([column[:_SMALL] for column in codes] for _ in range(_PARTIES - 1))]
    identities = make_identities(_PARTIES, stream)
    members = [member_of(f"party-{k}", len(columns[0]), identities[k]) for k, columns in enumerate(own)]
    terms = planned("large", schema, members, exact(_EPSILON), "recommended", "sound", noise="distributed")
    simulate(terms, own, identities, stream)
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    return _Measured(rows, read - begun, process_time() - read, megabytes)


def _slope(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0]) if len(sizes) > 1 else float("nan")


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
