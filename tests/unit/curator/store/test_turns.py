"""Turns at the store: what waits together is stored together, and whoever is refused disturbs nobody else."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, insert, select
from sqlalchemy.exc import IntegrityError

from curator.errors import Conflict, StoreUnavailable
from curator.store.store import Store
from curator.store.tables import meta
from curator.store.turns import Turns


@pytest.fixture
def store(tmp_path: Path) -> Any:
    opened = Store.open(f"sqlite:///{tmp_path / 'curator.db'}")
    yield opened
    opened.close()


def put(name: str, error: Exception | None = None) -> Any:
    def change(db: Any) -> str:
        db.execute(insert(meta).values(name=name, value="x"))
        if error is not None:
            raise error
        return name

    return change


def names(store: Store) -> set[str]:
    with store.reading() as db:
        return {name for name in db.execute(select(meta.c.name)).scalars() if name.startswith("own ")}


def together(store: Store, *changes: Any) -> list[Any]:
    """Carry the changes out while a turn is taken, so that all of them wait; return their results and errors."""
    found: list[Any] = [None] * len(changes)

    def carry_out(place: int) -> None:
        try:
            found[place] = store.write(changes[place])
        except Exception as error:
            found[place] = error

    threads = [threading.Thread(target=carry_out, args=(place,)) for place in range(len(changes))]
    turns: Any = store.turns
    with turns.own():
        for place, thread in enumerate(threads):
            thread.start()
            while turns.waiting <= place:
                pass
    for thread in threads:
        thread.join()
    return found


def test_changes_that_wait_are_committed_once(store: Store) -> None:
    commits: list[Any] = []
    event.listen(store.engine, "commit", commits.append)
    assert together(store, *(put(f"own {number}") for number in range(20))) == [f"own {n}" for n in range(20)]
    assert len(commits) == 1
    assert names(store) == {f"own {number}" for number in range(20)}


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("error", [Conflict("no"), None])
def test_a_refused_change_is_undone_alone(store: Store, place: int, error: Conflict | None) -> None:
    store.write(put("own known"))
    changes = [put("own a"), put("own b")]
    changes.insert(place, put("own known" if error is None else "own c", error))
    found = together(store, *changes)
    assert isinstance(found.pop(place), IntegrityError if error is None else Conflict)
    assert found == ["own a", "own b"]
    assert names(store) == {"own known", "own a", "own b"}


def test_a_change_that_the_database_cannot_take_undoes_all_and_everybody_learns_it(store: Store) -> None:
    def broken(db: Any) -> None:
        db.exec_driver_sql("ROLLBACK")  # as SQLite does by itself when the disk is full
        db.exec_driver_sql("INSERT INTO nowhere VALUES (1)")

    found = together(store, put("own a"), broken, put("own b"))
    assert [type(one) for one in found] == [StoreUnavailable] * 3
    assert len(set(map(id, found))) == 3
    assert names(store) == set()
    assert store.write(put("own c")) == "own c"


@contextmanager
def full_disk(store: Store) -> Iterator[None]:
    """No commit succeeds."""

    def full(_connection: Any) -> None:
        raise StoreUnavailable("the disk is full")

    event.listen(store.engine, "commit", full)
    yield
    event.remove(store.engine, "commit", full)


def test_a_commit_that_fails_is_everybodys(store: Store) -> None:
    with full_disk(store):
        found = together(store, put("own a"), put("own b"))
    assert [str(one) for one in found] == ["the disk is full"] * 2
    assert names(store) == set()


def test_a_refusal_that_rests_on_what_is_not_stored_in_the_end_is_taken_back(store: Store) -> None:
    """Whoever is refused because of another one in its batch would stop for good, although that one was not stored."""
    with full_disk(store):
        found = together(store, put("own a"), put("own a"))
    assert [str(one) for one in found] == ["the disk is full"] * 2


def test_a_full_disk_in_a_shared_transaction_is_not_taken_for_damage(store: Store) -> None:
    """SQLite ends the whole transaction by itself, so that no single change can be undone."""
    with store.reading() as db:
        pages = db.exec_driver_sql("PRAGMA page_count").scalar_one()

    def large(db: Any) -> None:
        db.exec_driver_sql(f"PRAGMA max_page_count = {pages + 100}")
        db.execute(insert(meta).values(name="own large", value="x" * 10_000_000))

    found = together(store, put("own a"), large, put("own b"))
    assert [type(one) for one in found] == [StoreUnavailable] * 3
    assert all("disk" in str(one) and "damaged" not in str(one) for one in found)
    assert names(store) == set()


def test_a_change_alone_that_is_refused_leaves_nothing(store: Store) -> None:
    with pytest.raises(Conflict):
        store.write(put("own a", Conflict("no")))
    assert names(store) == set()


def test_whoever_waits_too_long_gives_up_and_is_not_carried_out_later() -> None:
    turns, done = Turns(0.05), []
    with turns.own(), pytest.raises(StoreUnavailable, match="has been busy for"):
        turns.shared("late", lambda waiting: done.extend(waiting))
    assert turns.shared("next", lambda waiting: done.extend(one.what for one in waiting)) is None
    assert done == ["next"]


def test_many_threads_get_what_they_asked_for(store: Store) -> None:
    found: dict[int, Any] = {}

    def work(number: int) -> None:
        for round_ in range(10):
            name = f"own {number} {round_}"
            if number % 3:
                found[number, round_] = store.write(put(name)) == name
            else:
                with store.writing() as db:
                    put(name)(db)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(names(store)) == 120
    assert all(found.values())
