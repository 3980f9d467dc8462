"""A curator of this version goes on with a run that one of an earlier version began, and asks the same again."""

import sqlite3
from contextlib import closing

import numpy as np
import pytest
from sqlalchemy import update

from curator.store.migrations import MIGRATIONS, migrate
from curator.store.tables import make_engine, runs
from protocol.errors import CURATOR
from protocol.messages.tasks import decode
from protocol.run.kept_knowledge import knowledge_from_bytes, knowledge_to_bytes
from protocol.stages import knowledge
from tests.support.curator_runs import state

PICKING = {"method": "dp-subn", "noise": "distributed", "epsilon": "50"}


@pytest.mark.parametrize("revision", range(1, len(MIGRATIONS)))
def test_a_store_of_every_earlier_revision_goes_on_with_its_run(desk, revision):
    run = until_asked_about_a_model(desk)
    before = asked(desk)
    desk.store.close()
    set_back(desk.home / "curator.db", revision)
    desk.open()
    assert asked(desk) == before
    desk.finish(run)


def test_parties_are_asked_the_same_by_a_version_that_fits_otherwise(desk, monkeypatch):
    run = until_asked_about_a_model(desk)
    before = asked(desk)
    fitted = knowledge.Guide.of

    def otherwise(model, tables):
        found = fitted(model, tables)
        weights = np.frombuffer(found.blob, dtype=np.uint64) + 1
        return knowledge.Guide(found.tables, found.cliques, found.parents, weights.tobytes())

    monkeypatch.setattr(knowledge.Guide, "of", otherwise)
    desk.restart()
    assert asked(desk) == before
    with desk.store.writing() as db:
        db.execute(update(runs).values(knowledge=None))
    desk.restart()
    assert asked(desk) != before, "the other version does fit otherwise"
    monkeypatch.undo()
    desk.restart()
    assert asked(desk) == before
    desk.finish(run)


@pytest.mark.parametrize(
    "wishes",
    [
        PICKING,
        {"method": "guided", "epsilon": "50"},
        {"method": "privbayes"},
        {"method": "jtree"},
        {"method": "dp-ccbn"},
        {"method": "independent"},
    ],
    ids=lambda wishes: wishes["method"],
)
def test_what_is_kept_is_all_that_is_known(desk, wishes):
    """At every step: what the store holds is read back as it was written, and the run goes on from it."""
    run = desk.run(**wishes)
    kept = []
    while state(desk, run)[0] not in ("finished", "failed"):
        with desk.store.reading() as db:
            kept.append(db.execute(runs.select()).mappings().one()["knowledge"])
        if kept[-1] is not None:
            assert knowledge_to_bytes(knowledge_from_bytes(kept[-1])) == kept[-1]
        desk.restart()
        if not answer_once(desk):
            desk.orchestrator.tick()
    assert state(desk, run) == ("finished", None)
    assert len(set(kept)) > 2
    with desk.store.reading() as db:
        assert db.execute(runs.select()).mappings().one()["knowledge"] is None


def test_what_another_format_holds_is_worked_out_from_the_answers(desk):
    run = until_asked_about_a_model(desk)
    before = asked(desk)
    with desk.store.writing() as db:
        db.execute(update(runs).values(knowledge=b'{"format":99}'))
    desk.restart()
    assert asked(desk) == before
    desk.finish(run)


def until_asked_about_a_model(desk):
    """Let the parties answer until one of them is asked to compare its rows with a model."""
    run = desk.run(**PICKING)
    while not any(getattr(task, "cliques", ()) for task in map(task_of, asked(desk).values())):
        assert answer_once(desk)
    return run


def asked(desk):
    found = {party.name: desk.orchestrator.inbox(party.name) for party in desk.parties}
    return {name: task[1] for name, task in found.items() if task is not None}


def task_of(body):
    return decode(body, CURATOR)


def answer_once(desk):
    """Let one party answer. Return whether one was asked."""
    for party in desk.parties:
        found = desk.orchestrator.inbox(party.name)
        if found is not None:
            desk.deliver(party, party.handle(*found))
            return True
    return False


def set_back(file, revision):
    """Make the store what a program of an earlier revision would have left: its tables, with the rows that it knew."""
    newer = file.with_suffix(".newer")
    file.rename(newer)
    for left in file.parent.glob("curator.db-*"):
        left.unlink()
    engine = make_engine(f"sqlite:///{file}")
    migrate(engine, MIGRATIONS[:revision])
    engine.dispose()
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("ATTACH ? AS newer", (str(newer),))
        for (table,) in db.execute("SELECT name FROM main.sqlite_schema WHERE type = 'table'").fetchall():
            columns = ", ".join(row[1] for row in db.execute(f"PRAGMA main.table_info({table})"))
            rows = (
                f"SELECT {columns} FROM newer.{table} WHERE name != 'version'"
                if table == "meta"
                else (f"SELECT {columns} FROM newer.{table}")
            )
            db.execute(f"INSERT INTO main.{table} ({columns}) {rows}")
    newer.unlink()
