"""Totals over runs: each ended run is counted once, and figures do not depend on restarts or a full disk."""

from fractions import Fraction

import pytest

from curator.operations import run_totals
from curator.operations.run_totals import RunFigures
from curator.store.run_records import correct
from curator.store.tables import runs
from tests.support.curator import Desk
from tests.support.curator_runs import without_room


@pytest.fixture
def desk(tmp_path):
    found = Desk(tmp_path)
    found.finish(found.run("first", noise="distributed", method="dp-ccbn"))
    found.finish(found.run("second", noise="distributed", epsilon="1/3"))
    found.run("third", noise="distributed", epsilon="1/3")
    found.answer_one(found.parties[0])
    yield found
    found.store.close()


@pytest.fixture
def read(monkeypatch):
    """The runs that are read one by one."""
    found, add = [], run_totals.count_run

    def added(figures, db, record, end):
        found.append(record.state)
        add(figures, db, record, end)

    monkeypatch.setattr(run_totals, "count_run", added)
    return found


def test_an_ended_run_is_read_once_also_by_a_process_that_has_just_begun(desk, read):
    figures = RunFigures(desk.store).read(desk.clock())
    assert sorted(read) == ["finished", "finished", "joining"]
    assert set(figures.charges.values()) == {1 + Fraction(1, 3)}
    read.clear()
    desk.restart()
    again = RunFigures(desk.store)
    assert again.read(desk.clock()) == figures
    assert read == ["joining"]
    read.clear()
    desk.finish(next(iter(desk.orchestrator.live)))
    again.read(desk.clock())
    ended = again.read(desk.clock())
    assert len(read) == 1
    assert sum(ended.states.values()) == 3
    assert set(ended.charges.values()) == {1 + Fraction(2, 3)}


def _forget(desk):
    """Make the store as it was before its runs were counted."""
    with desk.store.writing() as db:
        db.execute(runs.update().values(counted=0))
        correct(db, run_totals.TOTALS, "{}")


def test_where_nothing_can_be_stored_the_figures_are_the_same(desk, read, monkeypatch):
    expected = RunFigures(desk.store).read(desk.clock())
    _forget(desk)
    without_room(desk, monkeypatch)
    read.clear()
    assert RunFigures(desk.store).read(desk.clock()) == expected
    assert len(read) == 3


def test_many_ends_are_counted_in_portions(desk, monkeypatch):
    expected = RunFigures(desk.store).read(desk.clock())
    _forget(desk)
    monkeypatch.setattr(run_totals, "AT_ONCE", 1)
    assert RunFigures(desk.store).read(desk.clock()) == expected
