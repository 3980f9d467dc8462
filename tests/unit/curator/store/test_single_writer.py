"""Two curators never serve one database: the second is refused, and one that lost its lock writes nothing more."""

import os
import signal
import subprocess
import sys

import pytest
from sqlalchemy import create_engine, text

from curator.errors import Displaced, SettingsError
from curator.store import single_writer
from curator.store.run_records import remember
from curator.store.store import Store
from tests.support.postgres import postgres_server

HOLD = """
import sys, time
from curator.store.store import Store
store = Store.open(sys.argv[1])
store.serve_alone("the other's token")
print("serving", flush=True)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def server():
    with postgres_server() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path, server) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'curator.db'}"
    _execute(server, "DROP DATABASE IF EXISTS alone WITH (FORCE)", "CREATE DATABASE alone")
    return server.replace("/postgres?", "/alone?")


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(single_writer, "PATIENCE", 0.1)


def write(store: Store, name: str) -> None:
    with store.writing() as db:
        remember(db, name, "x")


def test_a_second_curator_is_refused_and_the_first_goes_on(url, impatient):
    first, second = Store.open(url), Store.open(url)
    first.serve_alone("one")
    with pytest.raises(SettingsError, match=f"process {os.getpid()} on .* serves this database already: stop it first"):
        second.serve_alone("two")
    first.check_alone()
    write(first, "a")
    write(second, "b")  # a command beside the service: it is not the one that serves
    second.close()
    first.close()


def test_a_successor_starts_at_once(url, impatient):
    for token in ("one", "two"):
        store = Store.open(url)
        store.serve_alone(token)
        write(store, token)
        store.close()


def test_a_killed_curator_is_succeeded_at_once(url):
    with subprocess.Popen([sys.executable, "-c", HOLD, url], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "serving\n"
        store = Store.open(url)
        other.send_signal(signal.SIGSTOP)  # hanging is not dead
        with pytest.raises(SettingsError, match=f"process {other.pid} on"):
            store.serve_alone("mine")
        other.send_signal(signal.SIGKILL)
        store.serve_alone("mine")
        write(store, "a")
        store.close()


def test_who_lost_the_lock_writes_nothing_more(server, url, impatient):
    """PostgreSQL ends a session, or a lock file is removed by hand: then another one can begin to serve."""
    first, second = Store.open(url), Store.open(url)
    first.serve_alone("one")
    _cut_sessions(url)
    second.serve_alone("two")
    with pytest.raises(Displaced, match="another curator serves this database now"):
        write(first, "a")
    with pytest.raises(Displaced, match="serves this database now"):
        first.check_alone()
    write(second, "a")
    second.check_alone()
    second.close()
    first.close()


def test_who_lost_the_lock_to_nobody_takes_it_again(url, impatient):
    first, second = Store.open(url), Store.open(url)
    first.serve_alone("one")
    _cut_sessions(url)
    first.check_alone()
    if url.startswith("postgresql"):
        with pytest.raises(SettingsError, match="serves this database already"):
            second.serve_alone("two")
    write(first, "a")
    second.close()
    first.close()


def _cut_sessions(url: str) -> None:
    if url.startswith("sqlite"):
        os.rename(url.removeprefix("sqlite:///") + ".lock", url.removeprefix("sqlite:///") + ".gone")
        return
    _execute(url, "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objid = 5824902")


def _execute(url: str, *statements: str) -> None:
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT")
    with engine.connect() as db:
        for statement in statements:
            db.execute(text(statement))
    engine.dispose()
