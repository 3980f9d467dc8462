"""Runs over very many attributes: CPU seconds of planning, of the run and of drawing, beside those of 50 attributes.

It does not know thresholds: it prints figures. Every case has a process of its own, whose largest memory is told.
"""

import resource
from multiprocessing import get_context
from time import process_time

from curator.experiments.coded_tables import DividedTable
from curator.experiments.simulate import ExperimentSettings, prepare, stream_of_seed
from curator.experiments.simulation import simulate
from protocol.run.synthesis import synthetic_codes
from tests.benchmarks.made_tables import wide_table

_ROWS = 100_000
_CASES = (("binary", 50), ("binary", 100), ("binary", 200), ("mixed", 50), ("mixed", 100))
_MOST_CODES = {"binary": 2, "mixed": 40}


def main() -> None:
    first = 0.0
    print(f"{'attributes':16} {'privacy':8} {'plan s':>8} {'run s':>8} {'draw s':>8} {'whole':>8} {'MB':>6}")
    cases = [(kind, count, privacy) for kind, count in _CASES for privacy in ("pure", "zcdp")]
    with get_context("spawn").Pool(1, maxtasksperchild=1) as processes:
        for (kind, count, privacy), (*parts, memory) in zip(cases, processes.imap(_measured, cases), strict=True):
            first = first or sum(parts)
            figures = " ".join(f"{seconds:8.2f}" for seconds in parts)
            print(f"{count:4} {kind:11} {privacy:8} {figures} {sum(parts) / first:7.1f}x {memory:6}", flush=True)


def _measured(case: tuple[str, int, str]) -> tuple[float, float, float, int]:
    kind, count, privacy = case
    seconds = _seconds(wide_table(count, _MOST_CODES[kind], _ROWS), privacy)
    return *seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def _seconds(table: DividedTable, privacy: str) -> tuple[float, float, float]:
    stream, begun = stream_of_seed(1), process_time()
    settings = ExperimentSettings("1", 3, "recommended", "sound", "random", {"privacy": privacy})
    own, terms, identities = prepare(settings, table, stream)
    planned = process_time()
    found = simulate(terms, own, identities, stream, real_crypto=False)
    ran = process_time()
    for _ in synthetic_codes(terms, found.state.knowledge, terms.plan.rows, stream.child("rows")):
        pass
    return planned - begun, ran - planned, process_time() - ran


if __name__ == "__main__":
    main()
