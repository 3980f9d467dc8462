"""`subn sweep`: make all runs of a grid, several at once, and save each result as soon as it is known.

It does not know what a run does (`curator.experiments.sweep.run`) or how results are drawn
(`curator.experiments.sweep.figures`).
"""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from importlib.metadata import version
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any

from curator.experiments.sweep.grid import Cell, Grid
from curator.experiments.sweep.results import RESULTS, Results
from curator.experiments.sweep.run import measure

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_QUEUED_EACH = 2  # runs handed to every worker at a time

Progress = Callable[[int, int, str], None]  # runs done, runs in all, description of the last run


def run_sweep(grid: Grid, out: Path, workers: int, progress: Progress) -> list[dict[str, Any]]:
    """Make the runs that the results file lacks. Return the records of all runs, in the order of the grid."""
    out.mkdir(parents=True, exist_ok=True)
    keys = {cell: grid.key(cell) for cell in grid.cells}
    with Results(out / RESULTS) as results:
        missing = [cell for cell in grid.cells if keys[cell] not in results.found]
        done = len(grid.cells) - len(missing)
        progress(done, len(grid.cells), "")
        for cell, outcome in _outcomes(grid, missing, workers):
            results.append(_record(keys[cell], cell, outcome))
            done += 1
            progress(done, len(grid.cells), describe(cell))
        # The label comes from the grid, not from the result: it may have been renamed since.
        return [results.found[keys[cell]] | {"label": cell.label} for cell in grid.cells]


def describe(cell: Cell) -> str:
    return f"{cell.data}: {', '.join(f'{name} {value}' for name, value in cell.options)}, seed {cell.seed}"


def _record(key: str, cell: Cell, outcome: dict[str, Any]) -> dict[str, Any]:
    settings = {"data": cell.data, "options": dict(cell.options), "seed": cell.seed}
    return {"key": key, **settings, "outcome": outcome, "dp-subn": version("dp-subn")}


def _outcomes(grid: Grid, cells: Sequence[Cell], workers: int) -> Iterator[tuple[Cell, dict[str, Any]]]:
    if workers == 1 or len(cells) < 2:
        return ((cell, measure(grid.sources[cell.data], cell)) for cell in cells)
    return _outcomes_of_pool(grid, cells, workers)


def _outcomes_of_pool(grid: Grid, cells: Sequence[Cell], workers: int) -> Iterator[tuple[Cell, dict[str, Any]]]:
    """Yield outcomes as runs finish. Few runs are queued, so that a failed or interrupted sweep ends soon."""
    for name in _THREADS:
        os.environ.setdefault(name, "1")  # inherited by the workers; there is already one worker per core
    remaining = iter(cells)
    with ProcessPoolExecutor(workers, get_context("spawn"), _die_with_parent) as pool:
        running: dict[Future[dict[str, Any]], Cell] = {}
        try:
            while True:
                while len(running) < workers * _QUEUED_EACH and (cell := next(remaining, None)) is not None:
                    running[pool.submit(measure, grid.sources[cell.data], cell)] = cell
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    yield running.pop(future), future.result()
        finally:
            for future in running:
                future.cancel()


def _die_with_parent() -> None:
    """End this worker when its sweep has been killed: it would wait for work forever."""
    parent = parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
