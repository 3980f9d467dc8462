"""The operator's pages and lists with very many runs, metrics after a restart, and what an open page costs a curator.

It does not know thresholds: it prints figures.
"""

import tempfile
import time
from pathlib import Path
from statistics import median
from threading import Thread

import httpx

from curator.operations.run_totals import RunFigures
from curator.store import run_records
from curator.store.store import Store
from curator.store.tables import events, members, replies, runs
from tests.support.api import served
from tests.support.curator import Desk

_RUNS, _PAGES, _SECONDS, _EVENTS_EVERY = 5000, 10, 20.0, 0.2
_TIMES, _BY_KEY = 10, ("/v1/runs", "/v1/parties", "/metrics")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        desk = Desk(Path(folder))
        ended, run = desk.run("ended", noise="distributed"), desk.run(noise="distributed")
        desk.finish(ended)
        _copies(desk, ended)
        _scrapes(desk)
        with served(desk) as (url, key), httpx.Client(base_url=url, timeout=600) as http:
            http.post("/sign-in", data={"key": key})
            bearer = {"Authorization": f"Bearer {key}"}
            print(f"\n{'page':28} {'first ms':>10} {'median ms':>10} {'worst ms':>10} {'kB':>8}")
            for path in (
                "/runs",
                f"/runs/{run}",
                "/plan",
                "/parties",
                "/schemas",
                "/v1/runs",
                "/v1/parties",
                "/metrics",
            ):
                _time(http, path, bearer if path in _BY_KEY else {})
            idle = _moving(desk, run, http, 0)
            busy = _moving(desk, run, http, _PAGES)
        print(f"\na run with an event every {_EVENTS_EVERY} s: {100 * (busy - idle) / _PAGES:.2f} % of a processor per "
              f"open page ({_PAGES} pages, {_SECONDS:.0f} s; without any {100 * idle:.2f} %)")  # fmt: skip
        desk.store.close()


def _copies(desk: Desk, run: str) -> None:
    """Thousands of copies of an ended run in the store, with its answers and events."""
    with desk.store.writing() as db:
        for table, column in ((runs, "id"), (members, "run"), (replies, "run"), (events, "run")):
            rows = [dict(row) for row in db.execute(table.select().where(table.c[column] == run)).mappings()]
            for number in range(_RUNS):
                own = {column: f"00000000000{number:04}-copy"}
                key = {"idempotency_key": f"copy {number}"} if table is runs else {}
                db.execute(table.insert(), [row | own | key for row in rows])


def _scrapes(desk: Desk) -> None:
    """The runs' part of the metrics: when nothing was counted before, and by a process that has just begun."""
    for what in ("the first time ever", "the first time after a restart"):
        store = Store.open(desk.settings.store_url)
        begun = time.perf_counter()
        RunFigures(store).read(desk.clock())
        print(f"totals of {_RUNS:,} runs, {what}: {1000 * (time.perf_counter() - begun):,.0f} ms")
        store.close()


def _time(http: httpx.Client, path: str, headers: dict[str, str]) -> None:
    took, size = [], 0
    for _ in range(_TIMES):
        begun = time.perf_counter()
        size = len(http.get(path, headers=headers).raise_for_status().content)
        took.append(1000 * (time.perf_counter() - begun))
    name = path.replace(path[6:], "...") if path.startswith("/runs/") else path
    print(f"{name:28} {took[0]:10.1f} {median(took):10.1f} {max(took):10.1f} {size / 1000:8.1f}")


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
