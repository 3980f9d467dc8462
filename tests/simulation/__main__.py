"""A long search for schedules that fail: `make faults SCHEDULES=20000 MINUTES=60 WORKERS=2 SEED=0`.

It does not know what a schedule does. It prints every failure in its simplest form, and at the end what the search has
come by.
"""

import argparse
import os
import sys
import time
from collections import ChainMap
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import islice, takewhile
from multiprocessing import get_context

from tests.simulation.schedules import WAYS, Schedule, all_kinds, drawn
from tests.simulation.trial import Failed, Tally, judge, simplest, tally, usual
from tests.simulation.world import staged

_BATCH = 20  # schedules of one kind of run, one after the other in one process
_SOME = 20  # batches between two lines that tell how far the search is
_ENOUGH = 5  # failures


def main() -> int:
    wanted = _arguments()
    began, total, failures = time.monotonic(), Tally(), []
    # A fork keeps what has been set up, and the hashes of states mean the same in all processes.
    with staged(), ProcessPoolExecutor(wanted.workers, get_context("fork")) as pool:
        counts = {way: usual(way) for way in WAYS}
        batches = islice(_batches(wanted.seed), -(-wanted.schedules // _BATCH))
        waiting = {pool.submit(_batch, way, start, began + 60 * wanted.minutes) for way, start in batches}
        for number, done in enumerate(as_completed(waiting), start=1):
            found, failed = done.result()
            total.take_in(found)
            failures += failed
            for failure in failed:
                print(failure, flush=True)
            if number % _SOME == 0:
                print(f"{total.trials} schedules after {time.monotonic() - began:.0f} s", flush=True)
            if len(failures) >= _ENOUGH:
                pool.shutdown(wait=False, cancel_futures=True)
                break
        _tell(total, time.monotonic() - began, wanted.workers, all_kinds(ChainMap(*map(dict, counts.values()))))
    return 1 if failures else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make faults")
    parser.add_argument("--schedules", type=int, default=20_000)
    parser.add_argument("--minutes", type=float, default=120)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**9, help="the number of the first schedules")
    return parser.parse_args()


def _batches(seed: int) -> Iterator[tuple[str, int]]:
    """Batches of every kind of run, by turns: more of those that take little time."""
    starts = dict.fromkeys(WAYS, seed)
    while True:
        for way, often in ((way, kind.often) for way, kind in WAYS.items()):
            for _ in range(often):
                yield way, starts[way]
                starts[way] += _BATCH


def _batch(way: str, start: int, until: float) -> tuple[Tally, list[str]]:
    """Judge the schedules of these numbers, unless the time is over."""
    if time.monotonic() >= until:
        return Tally(), []
    failed: list[Schedule] = []
    numbers = takewhile(lambda _: time.monotonic() < until, range(start, start + _BATCH))
    found = tally((drawn(way, number, usual(way)) for number in numbers), failed.append)
    return found, [_explained(schedule) for schedule in failed]


def _explained(schedule: Schedule) -> str:
    simple = simplest(schedule)
    try:
        judge(simple)
    except Failed as failure:
        return f"FAILED: {failure}\nsimplest form of number {schedule.seed}"
    return f"FAILED once, and not again: {schedule}"


def _tell(total: Tally, seconds: float, workers: int, kinds: set[str]) -> None:
    rate = total.trials / seconds
    print(f"{total.trials} schedules in {seconds:.0f} s on {workers} processes: {rate:.1f} a second")
    print(f"{len(total.states)} states seen; runs {', '.join(f'{end} {n}' for end, n in total.ends.most_common())}")
    happened = sum(total.faults.values())
    print(f"{happened} faults happened, of {len(kinds & total.faults.keys())} of {len(kinds)} kinds:")
    for kind in sorted(kinds | total.faults.keys()):
        print(f"  {total.faults[kind]:7} {kind}")


if __name__ == "__main__":
    sys.exit(main())
