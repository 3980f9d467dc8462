"""Runs over very many attributes: CPU seconds of planning, of the run and of drawing, beside those of 50 attributes.

It does not know thresholds: it prints figures. Everything is measured in one process, so that the ratios hold on any
machine.
"""

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
    print(f"{'attributes':16} {'privacy':8} {'plan s':>8} {'run s':>8} {'draw s':>8} {'whole':>8}")
    for kind, count in _CASES:
        table = wide_table(count, _MOST_CODES[kind], _ROWS)
        for privacy in ("pure", "zcdp"):
            planning, running, drawing = _seconds(table, privacy)
            whole = planning + running + drawing
            first = first or whole
            figures = f"{planning:8.2f} {running:8.2f} {drawing:8.2f} {whole / first:7.1f}x"
            print(f"{count:4} {kind:11} {privacy:8} {figures}", flush=True)


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
