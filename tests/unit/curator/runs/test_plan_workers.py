"""Plans worked out in processes of their own: the same answers, and limits of time, memory and number."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread, Timer
from time import monotonic, sleep

import psutil
import pytest

from curator.errors import Abandoned, Busy
from curator.interface import PlanRequest
from curator.runs.plan_workers import MOST, MOST_WAITING, PlanWorkers
from curator.runs.planning import Wanted, work_out_here
from protocol.errors import PlanError, PriceError
from protocol.tables.schema import Schema
from tests.support.small_runs import MIXED, members

NOT_YET = Event()
# 400 columns of many sizes: the search for views of all their pairs takes a quarter of a minute and 400 MB.
WIDE = Schema.parse(
    {"attributes": [{"name": f"a{n}", "kind": "integer", "min": 1, "max": 2 + n % 19} for n in range(400)]}
)
MANY = Schema.parse({"attributes": [{"name": f"a{n}", "kind": "integer", "min": 0, "max": 1} for n in range(1000)]})


def wanted(schema: Schema = MIXED, **wishes: object) -> Wanted:
    request = PlanRequest.model_validate({"schema": schema.hash, "epsilon": "1"} | wishes)
    return Wanted(run="draft", request=request, schema_text=schema.to_json(), members=tuple(members((300, 200, 100))))


@pytest.fixture(scope="module")
def workers() -> Iterator[PlanWorkers]:
    found = PlanWorkers()
    yield found
    found.close()


def wait(condition: Callable[[], bool]) -> None:
    deadline = monotonic() + 10
    while not condition():
        assert monotonic() < deadline
        sleep(0.02)


def children() -> set[int]:
    return {child.pid for child in psutil.Process().children()}


@pytest.mark.parametrize("wishes", [{}, {"privacy": "zcdp", "epsilon": "4/5"}, {"method": "dp-ccbn", "noise": "local"}])
def test_another_process_works_out_the_same_plan(workers: PlanWorkers, wishes: dict[str, object]) -> None:
    found, expected = workers(wanted(**wishes), NOT_YET), work_out_here(wanted(**wishes), NOT_YET)
    assert found.forecast == expected.forecast
    assert found.terms.plan_hash == expected.terms.plan_hash == found.forecast.plan_hash
    assert found.terms.steps == expected.terms.steps


@pytest.mark.parametrize(
    ("wishes", "kind", "words"),
    [
        ({"insiders": 5}, PlanError, "leave nobody to protect"),
        ({"split": ["1", "1", "1", "1"]}, PriceError, "more than epsilon"),
    ],
)
def test_a_refusal_is_the_same_too(
    workers: PlanWorkers, wishes: dict[str, object], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        workers(wanted(**wishes), NOT_YET)


def test_a_plan_that_takes_too_long_is_given_up_and_its_process_ended() -> None:
    before, workers = children(), PlanWorkers(seconds=2)
    began = monotonic()
    with pytest.raises(PlanError, match=r"could not be worked out: it took too long\. Leave attributes or values out"):
        workers(wanted(WIDE, update="joint"), NOT_YET)
    assert monotonic() - began < 5
    assert children() == before


def test_a_plan_that_nobody_waits_for_is_given_up() -> None:
    before, workers, abandoned = children(), PlanWorkers(), Event()
    Timer(1.0, abandoned.set).start()
    began = monotonic()
    with pytest.raises(Abandoned):
        workers(wanted(WIDE, update="joint"), abandoned)
    assert monotonic() - began < 3
    assert children() == before


def test_a_plan_that_takes_too_much_memory_costs_a_refusal() -> None:
    workers = PlanWorkers(most_bytes=200 << 20)
    try:
        assert workers(wanted(), NOT_YET).terms.plan.parties == 3
        with pytest.raises(PlanError, match="too much memory"):
            workers(wanted(MANY, preset="paper"), NOT_YET)
        assert workers(wanted(), NOT_YET).terms.plan.parties == 3
    finally:
        workers.close()


def test_a_worker_that_was_killed_is_replaced(workers: PlanWorkers) -> None:
    workers(wanted(), NOT_YET)
    for pid in workers.pids:
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(PlanError, match="the process ended"):
        workers(wanted(), NOT_YET)
    assert workers(wanted(), NOT_YET).forecast.price


def test_no_more_than_so_many_are_worked_out_and_wait() -> None:
    before, workers, abandoned, long = children(), PlanWorkers(), Event(), wanted(WIDE, update="joint")
    found: list[type[Exception]] = []

    def ask() -> None:
        try:
            workers(long, abandoned)
        except (Abandoned, Busy) as error:
            found.append(type(error))

    threads = [Thread(target=ask) for _ in range(MOST + MOST_WAITING + 3)]
    for thread in threads:
        thread.start()
    try:
        wait(lambda: len(found) == 3 and len(children() - before) == MOST)
        assert found == [Busy] * 3
    finally:
        abandoned.set()
        for thread in threads:
            thread.join(5)
    assert sorted(kind.__name__ for kind in found) == ["Abandoned"] * (MOST + MOST_WAITING) + ["Busy"] * 3
    assert children() == before


def test_workers_are_told_no_secret_of_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUBN_CURATOR_MASTER_KEY", "ab" * 32)
    workers = PlanWorkers()
    try:
        workers(wanted(), NOT_YET)
        (pid,) = workers.pids
        assert b"MASTER_KEY" not in Path(f"/proc/{pid}/environ").read_bytes()
    finally:
        workers.close()
