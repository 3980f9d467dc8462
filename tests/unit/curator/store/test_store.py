"""The store on SQLite: what is confirmed stays, what fails leaves nothing, and older databases become this one."""

import sqlite3
import sys

import pytest
from sqlalchemy import insert, inspect, select, text
from sqlalchemy.exc import IntegrityError

from curator.errors import SettingsError, StoreUnavailable
from curator.settings import Settings
from curator.store.migrations import MIGRATIONS, migrate
from curator.store.store import Store
from curator.store.tables import make_engine, meta, metadata


@pytest.fixture
def url(tmp_path) -> str:
    return f"sqlite:///{tmp_path / 'curator.db'}"


@pytest.fixture
def store(url):
    opened = Store.open(url)
    yield opened
    opened.close()


def put(store: Store, name: str, value: str = "x") -> None:
    with store.writing() as db:
        db.execute(insert(meta).values(name=name, value=value))


def names(store: Store) -> set[str]:
    with store.reading() as db:
        return set(db.execute(select(meta.c.name)).scalars()) - {"version"}


def test_what_is_confirmed_is_there_after_a_restart(url, store):
    put(store, "a")
    again = Store.open(url)
    assert names(again) == {"a"}
    again.close()


def test_what_fails_leaves_nothing(store):
    def half() -> None:
        with store.writing() as db:
            db.execute(insert(meta).values(name="a", value="x"))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        half()
    assert names(store) == set()


def test_a_contradiction_stays_a_contradiction(store):
    put(store, "a")
    with pytest.raises(IntegrityError):
        put(store, "a")


def test_confirmed_means_on_the_disk(store):
    with store.reading() as db:
        found = {name: db.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("journal_mode", "synchronous")}
        assert found == {"journal_mode": "wal", "synchronous": 2}
        assert db.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1


def test_a_full_disk_is_told_and_passes(store, tmp_path):
    with store.reading() as db:
        pages = db.exec_driver_sql("PRAGMA page_count").scalar()
    with store.writing() as db:
        db.exec_driver_sql(f"PRAGMA max_page_count={pages + 2}")
    with pytest.raises(StoreUnavailable, match="database or disk is full"):
        put(store, "big", "x" * 100_000)
    assert names(store) == set()
    with store.writing() as db:
        db.exec_driver_sql("PRAGMA max_page_count=1000000")
    put(store, "big", "x" * 100_000)
    assert names(store) == {"big"}


def test_errors_do_not_repeat_what_was_to_be_stored(store):
    with pytest.raises(StoreUnavailable) as error, store.writing() as db:
        db.execute(text("INSERT INTO nowhere VALUES (:secret)"), {"secret": "hunter2"})
    assert "hunter2" not in str(error.value)
    assert "hunter2" not in str(error.value.__cause__)


@pytest.mark.parametrize("wrong", ["curator.db", "fortran://x", "mysql://root@localhost/x"])
def test_a_url_of_something_else_is_refused(wrong):
    with pytest.raises(SettingsError, match="names no SQLite or PostgreSQL database"):
        Store.open(wrong)


def test_a_driver_that_is_not_installed_is_named(monkeypatch):
    """The image had none, and its error spoke of the URL."""
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(SettingsError, match="the Python package psycopg is not installed: install dp-subn") as error:
        Store.open("postgresql://subn:hunter2@database/subn")
    assert "hunter2" not in str(error.value)


def test_the_file_in_the_home_can_be_named_as_compose_does(tmp_path):
    found = Settings.read({"SUBN_CURATOR_DATABASE_URL": "sqlite", "SUBN_CURATOR_HOME": str(tmp_path)})
    assert found.store_url == f"sqlite:///{tmp_path / 'curator.db'}"


def test_a_place_without_a_folder_is_unavailable(tmp_path):
    with pytest.raises(StoreUnavailable, match="unable to open database file"):
        Store.open(f"sqlite:///{tmp_path / 'nowhere' / 'curator.db'}")


def test_check_says_whether_the_store_answers(store, tmp_path):
    store.check()
    store.close()
    (tmp_path / "curator.db").write_bytes(b"this is no database" * 1000)
    (tmp_path / "curator.db-wal").unlink(missing_ok=True)
    with pytest.raises(StoreUnavailable, match="not a database") as error:
        store.check()
    assert "restore the newest backup" in str(error.value)
    assert "lost here" in str(error.value)


def test_a_database_that_only_waits_says_that_nothing_confirmed_is_lost(tmp_path):
    with pytest.raises(StoreUnavailable) as error:
        Store.open(f"sqlite:///{tmp_path / 'nowhere' / 'curator.db'}")
    assert "what was confirmed is stored: check its disk and connection" in str(error.value)


def test_a_database_without_its_tables_is_no_matter_of_waiting(store):
    with pytest.raises(StoreUnavailable, match="is not the one that this program made"), store.reading() as db:
        db.execute(text("SELECT * FROM nowhere"))


# Migrations


def assert_tables_are_those_of_the_code(engine) -> None:
    found = inspect(engine)
    assert set(found.get_table_names()) == set(metadata.tables)
    for name, table in metadata.tables.items():
        columns = {column["name"]: column for column in found.get_columns(name)}
        assert set(columns) == set(table.columns.keys()), name
        for column in table.columns:
            stored = columns[column.name]
            assert stored["type"].python_type == column.type.python_type, (name, column.name)
            assert stored["nullable"] == column.nullable or column.primary_key, (name, column.name)
        assert set(found.get_pk_constraint(name)["constrained_columns"]) == {c.name for c in table.primary_key}
        assert {index["name"] for index in found.get_indexes(name) if not index.get("unique")} == {
            index.name for index in table.indexes
        }
        foreign = {(key["constrained_columns"][0], key["referred_table"]) for key in found.get_foreign_keys(name)}
        assert foreign == {(key.parent.name, key.column.table.name) for key in table.foreign_keys}


def test_an_empty_database_gets_the_tables_of_the_code(url):
    engine = make_engine(url)
    migrate(engine)
    assert_tables_are_those_of_the_code(engine)
    engine.dispose()


@pytest.mark.parametrize("version", range(1, len(MIGRATIONS)))
def test_an_older_database_keeps_what_is_in_it(url, version):
    engine = make_engine(url)
    migrate(engine, MIGRATIONS[:version])
    with engine.begin() as db:
        db.execute(text("INSERT INTO schemas (hash, title, text, created) VALUES ('h', 'title', '{}', 5)"))
        db.execute(
            text("INSERT INTO parties (name, signing_key, exchange_key, enrolled) VALUES ('p', x'01', x'02', 7)")
        )
    migrate(engine)
    assert_tables_are_those_of_the_code(engine)
    with engine.connect() as db:
        assert db.execute(text("SELECT name, enrolled, last_seen FROM parties")).one() == ("p", 7, None)
        assert db.execute(text("SELECT hash FROM schemas")).scalar_one() == "h"
    engine.dispose()


def test_migrating_twice_changes_nothing(url):
    engine = make_engine(url)
    migrate(engine)
    migrate(engine)
    with engine.connect() as db:
        assert db.execute(text("SELECT value FROM meta WHERE name = 'version'")).scalar_one() == str(len(MIGRATIONS))
    engine.dispose()


def test_a_migration_that_fails_leaves_the_version_before(url):
    engine = make_engine(url)

    def broken(db):
        db.execute(text("CREATE TABLE half (x TEXT)"))
        raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        migrate(engine, (*MIGRATIONS, broken))
    with engine.connect() as db:
        assert db.execute(text("SELECT value FROM meta WHERE name = 'version'")).scalar_one() == str(len(MIGRATIONS))
    assert not inspect(engine).has_table("half")
    engine.dispose()


def test_a_database_of_a_later_version_is_refused_and_left_alone(url, tmp_path):
    Store.open(url).close()
    with sqlite3.connect(tmp_path / "curator.db") as db:
        db.execute("UPDATE meta SET value = '99' WHERE name = 'version'")
    db.close()
    with pytest.raises(SettingsError, match=f"of version 99, this curator knows {len(MIGRATIONS)}: start a newer"):
        Store.open(url)
