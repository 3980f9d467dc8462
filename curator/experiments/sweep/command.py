"""`subn sweep` on the command line.

It does not know how runs are made (`curator.experiments.sweep.runner`) or drawn (`curator.experiments.sweep.figures`).
"""

import argparse
import os
import sys
from pathlib import Path
from time import monotonic
from typing import TextIO

from curator.experiments.sweep.figures import draw, means, require_matplotlib, write_means
from curator.experiments.sweep.results import RESULTS
from protocol.errors import OperatorError
from protocol.text import printable

_BAR = 30


def add_sweep_options(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Run every combination that a grid file lists, several at once, without cryptography and with the noise's "
        "true distribution; measure each synthetic table against the real rows; write every result "
        f"({RESULTS}), means with standard errors (means.csv) and figures. A stopped sweep resumes where "
        "it was when it is started again. Figures need the extra `experiments`. The "
        "measurements contain no noise: never publish them for private rows."
    )
    parser.epilog = "Exit codes: 0 done, 1 failed, 2 the grid, a schema or a table cannot work."
    parser.add_argument("--grid", type=Path, required=True, metavar="G.toml", help="what to run; see the README")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for results and figures")
    parser.add_argument(
        "--workers", type=int, default=os.cpu_count() or 1, metavar="N", help="runs at once (%(default)s)"
    )
    parser.set_defaults(run=_sweep)


def _sweep(chosen: argparse.Namespace) -> int:
    if chosen.workers < 1:
        raise OperatorError(f"--workers is {chosen.workers}: at least 1 is needed")
    from curator.experiments.sweep.grid import read_grid  # imports numpy, for which no help should wait
    from curator.experiments.sweep.runner import run_sweep

    require_matplotlib()  # before the first run, not after the last
    grid = read_grid(chosen.grid)
    records = run_sweep(grid, chosen.out, chosen.workers, Bar(sys.stderr).show)
    found = means(records)
    write_means(chosen.out / "means.csv", found)
    figures = draw(found, chosen.out)
    refused = sorted({record["outcome"]["refused"] for record in records if "refused" in record["outcome"]})
    lines = [f"refused: {sentence}" for sentence in refused]
    lines.append(f"wrote {len(records):,} results, means.csv and {len(figures)} figures to {chosen.out}")
    print("\n".join(map(printable, lines)))
    return 0


class Bar:
    """A progress bar: updated in place on a terminal, else one line for every run."""

    def __init__(self, out: TextIO) -> None:
        self._out, self._began, self._first = out, monotonic(), -1

    def show(self, done: int, total: int, what: str) -> None:
        if self._first < 0:
            self._first = done
        if not self._out.isatty():
            print(printable(f"{done}/{total} {what or 'were there'}"), file=self._out, flush=True)
            return
        filled = _BAR * done // max(1, total)
        line = f"{'█' * filled}{'░' * (_BAR - filled)} {done}/{total}{self._left(done, total)}"
        print(f"\r\x1b[2K{printable(line)}", file=self._out, end="\n" if done == total else "", flush=True)

    def _left(self, done: int, total: int) -> str:
        made = done - self._first
        if not made or done == total:
            return ""
        seconds = int((monotonic() - self._began) / made * (total - done))
        return f", {seconds // 60}:{seconds % 60:02d} left"
