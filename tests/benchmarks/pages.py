"""The operator's pages: how long a full list of runs takes, and what an open page of a moving run costs the curator.

It does not know thresholds: it prints figures.
"""

import tempfile
import time
from pathlib import Path
from statistics import median
from threading import Thread

import httpx

from curator.store import run_records
from tests.support.api import served
from tests.support.curator import Desk

_RUNS, _PAGES, _SECONDS, _EVENTS_EVERY = 500, 10, 20.0, 0.2
_TIMES = 20


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        desk = Desk(Path(folder))
        run = desk.run(noise="distributed")
        _copies(desk, run)
        with served(desk) as (url, key), httpx.Client(base_url=url, timeout=60) as http:
            http.post("/sign-in", data={"key": key})
            print(f"{'page':28} {'median ms':>10} {'worst ms':>10} {'kB':>8}")
            for path in ("/runs", f"/runs/{run}", "/plan", "/parties"):
                _time(http, path)
            idle = _moving(desk, run, http, 0)
            busy = _moving(desk, run, http, _PAGES)
        print(f"\na run with an event every {_EVENTS_EVERY} s: {100 * (busy - idle) / _PAGES:.2f} % of a processor per "
              f"open page ({_PAGES} pages, {_SECONDS:.0f} s; without any {100 * idle:.2f} %)")  # fmt: skip
        desk.store.close()


def _copies(desk: Desk, run: str) -> None:
    """Half a thousand more runs in the store."""
    with desk.store.writing() as db:
        row = dict(db.execute(run_records.runs.select().where(run_records.runs.c.id == run)).mappings().one())
        ended = row | {"state": "cancelled", "culprit": "operator", "reason": "not needed any more"}
        copies = [ended | {"id": f"00000000000{n:04}-copy", "idempotency_key": f"copy {n}"} for n in range(_RUNS)]
        db.execute(run_records.runs.insert(), copies)


def _time(http: httpx.Client, path: str) -> None:
    took, size = [], 0
    for _ in range(_TIMES):
        begun = time.perf_counter()
        size = len(http.get(path).raise_for_status().content)
        took.append(1000 * (time.perf_counter() - begun))
    print(f"{path.replace(path[6:], '...') if path.count('/') > 1 else path:28} {median(took):10.1f} {max(took):10.1f} "
          f"{size / 1000:8.1f}")  # fmt: skip


def _moving(desk: Desk, run: str, http: httpx.Client, pages: int) -> float:
    """The share of a processor that this process takes, without what the pages' readers take."""
    readers = [_Reader(http, run) for _ in range(pages)]
    for reader in readers:
        reader.start()
    time.sleep(2)
    begun, used = time.perf_counter(), time.process_time() - sum(reader.used for reader in readers)
    while time.perf_counter() - begun < _SECONDS:
        with desk.store.writing() as db:
            run_records.add_event(db, run, desk.clock(), "answered", step="joining", party="party-1", bytes=1)
        desk.orchestrator.changed(run)
        time.sleep(_EVENTS_EVERY)
    took = time.perf_counter() - begun
    share = (time.process_time() - sum(reader.used for reader in readers) - used) / took
    for reader in readers:
        reader.stopped = True
    return share


class _Reader(Thread):
    """Somebody who looks at the run."""

    def __init__(self, http: httpx.Client, run: str) -> None:
        super().__init__(daemon=True)
        self._http, self._run, self.used, self.stopped = http, run, 0.0, False

    def run(self) -> None:
        with (
            httpx.Client(base_url=self._http.base_url, cookies=self._http.cookies, timeout=60) as http,
            http.stream("GET", f"/runs/{self._run}/live") as stream,
        ):
            for _ in stream.iter_raw():
                self.used = time.thread_time()
                if self.stopped:
                    return


if __name__ == "__main__":
    main()
