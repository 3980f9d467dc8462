"""Many parties, many runs at once, and many runs in a row: nobody is left behind, and nothing grows that should not.

`make soak` runs it at full size: SOAK_PARTIES at SOAK_AT_ONCE runs, then SOAK_RUNS in a row.
"""

import os
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.end_to_end.cluster import Cluster, cluster
from tests.support.small_runs import BITS

MANY = int(os.environ.get("SOAK_PARTIES", "12"))
AT_ONCE = int(os.environ.get("SOAK_AT_ONCE", "6"))
IN_A_ROW = int(os.environ.get("SOAK_RUNS", "60"))
RULES = {"accept": "auto", "epsilon_per_run": "1", "smallest_insiders": 0}
FEW = ("party-1", "party-2", "party-3")
FORGOTTEN = "nonces"  # rows that are kept for some minutes alone: they are as many as came lately
GROWTH = 1.10  # of memory, from the first half of the runs in a row to the second


@dataclass(frozen=True)
class Look:
    """What a process holds."""

    memory: int  # bytes
    handles: int
    threads: int

    @classmethod
    def at(cls, pid: int) -> "Look":
        process = psutil.Process(pid)
        return cls(process.memory_info().rss, process.num_fds(), process.num_threads())


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    names = [f"party-{number + 1}" for number in range(MANY)]
    with cluster(tmp_path_factory.mktemp("crowd"), BITS) as found:
        found.add(*names, rules=RULES)
        found.acquaint(*names)
        found.enrol(*names)
        found.serve(*names)
        yield found


def pids(home: Cluster) -> dict[str, int]:
    return {"curator": home.curator.process.pid} | {name: home.sites[name].running.process.pid for name in FEW}


def test_many_parties_in_many_runs_at_once(crowd: Cluster) -> None:
    names, began = list(crowd.sites), time.monotonic()
    runs = [crowd.begin(*names, epsilon="1", method="guided") for _ in range(AT_ONCE)]
    for run in runs:
        crowd.until(run, "finished", patience=600)
        assert set(crowd.run(run)["spent"].values()) == {"1"}
    looked = Look.at(crowd.curator.process.pid)
    print(
        f"\n{AT_ONCE} runs of {MANY} parties at once: {time.monotonic() - began:.0f} s, curator "
        f"{looked.memory / 2**20:.0f} MiB, {looked.handles} handles, {looked.threads} threads"
    )
    for name in names:
        assert crowd.sites[name].account()["spent"] == str(AT_ONCE)


def rows_of(home: Path) -> dict[str, int]:
    """The rows of every table of a database."""
    with sqlite3.connect(f"file:{home}?mode=ro", uri=True) as db:
        names = [name for (name,) in db.execute("select name from sqlite_master where type = 'table'")]
        return {name: db.execute(f'select count(*) from "{name}"').fetchone()[0] for name in names}


def test_runs_in_a_row_leave_nothing_but_their_rows(crowd: Cluster) -> None:
    stores = {"curator": crowd.folder / "curator" / "curator.db", FEW[0]: crowd.sites[FEW[0]].home / "ledger.db"}
    looks: dict[str, list[Look]] = {name: [] for name in pids(crowd)}
    rows: list[dict[str, dict[str, int]]] = []
    began = time.monotonic()
    for number in range(IN_A_ROW):
        crowd.finished(*FEW, epsilon="1/1000", method="guided", noise="local", insiders=0)
        if number % max(1, IN_A_ROW // 20) == 0 or number == IN_A_ROW - 1:
            for name, pid in pids(crowd).items():
                looks[name].append(Look.at(pid))
            rows.append({name: rows_of(path) for name, path in stores.items()})
    seconds = time.monotonic() - began
    print(f"\n{IN_A_ROW} runs of {len(FEW)} parties in a row: {seconds:.0f} s")
    for name, found in looks.items():
        first, last = found[len(found) // 2], found[-1]
        print(
            f"{name}: {found[0].memory / 2**20:.0f}, {first.memory / 2**20:.0f}, {last.memory / 2**20:.0f} MiB at the "
            f"beginning, half-way and at the end; {first.handles} and {last.handles} handles, {last.threads} threads"
        )
        assert last.memory <= GROWTH * first.memory
        assert last.handles <= first.handles + 4
        assert last.threads <= first.threads + 4
    for name in stores:
        check_rows(name, [one[name] for one in rows])


def check_rows(name: str, found: list[dict[str, int]]) -> None:
    """A run adds as many rows at the end as in the middle."""
    middle = len(found) // 2
    for table in found[-1]:
        early, late = (b[table] - a[table] for a, b in ((found[0], found[middle]), (found[middle], found[-1])))
        print(f"{name}, {table}: {found[-1][table]:,} rows, {early:,} in the first half and {late:,} in the second")
        if table == FORGOTTEN:
            most = [max(one[table] for one in half) for half in (found[: middle + 1], found[middle:])]
            assert most[1] <= 1.5 * most[0] + 50
            continue
        assert late <= 1.2 * early + 50
