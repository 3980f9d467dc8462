"""The store on a real PostgreSQL server: the same tables, the same promises."""

import itertools
import threading

import pytest
from sqlalchemy import create_engine, insert, select, text
from sqlalchemy.exc import IntegrityError

from crypto.randomness import Stream
from curator.accounts.authentication import Authentication
from curator.accounts.registry import Registry
from curator.errors import Conflict, Forbidden, Replayed, SettingsError, StoreUnavailable
from curator.store.migrations import MIGRATIONS, migrate
from curator.store.store import Store
from curator.store.tables import make_engine, meta
from tests.support.curator import Clock, Desk, OneKey
from tests.support.effort import mostly_exhaustive
from tests.support.postgres import postgres_server
from tests.support.small_runs import BITS, identity
from tests.unit.curator.accounts.test_authentication import signed
from tests.unit.curator.store.test_store import assert_tables_are_those_of_the_code

_NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def server():
    with postgres_server() as url:
        yield url


@pytest.fixture
def url(server) -> str:
    """Of a new database."""
    name = f"test{next(_NUMBERS)}"
    engine = create_engine(server.replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT")
    with engine.connect() as db:
        db.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return server.replace("/postgres?", f"/{name}?")


@pytest.fixture
def store(url):
    opened = Store.open(url)
    yield opened
    opened.close()


def at_once(*calls) -> list[Exception | None]:
    """What each call raised when all were made at the same time."""
    found: list[Exception | None] = []

    def caught(call):
        try:
            call()
        except Exception as error:
            found.append(error)
        else:
            found.append(None)

    threads = [threading.Thread(target=caught, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_an_empty_database_gets_the_tables_of_the_code(url):
    engine = make_engine(url)
    migrate(engine)
    assert_tables_are_those_of_the_code(engine)
    engine.dispose()


def test_an_older_database_keeps_what_is_in_it(url):
    engine = make_engine(url)
    migrate(engine, MIGRATIONS[:1])
    with engine.begin() as db:
        db.execute(text("INSERT INTO schemas VALUES ('h', 'title', '{}', 5)"))
    migrate(engine)
    assert_tables_are_those_of_the_code(engine)
    with engine.connect() as db:
        assert db.execute(text("SELECT hash FROM schemas")).scalar_one() == "h"
    engine.dispose()


def test_two_curators_that_start_at_once_make_the_tables_once(url):
    stores: list[Store] = []
    assert at_once(*[lambda: stores.append(Store.open(url))] * 4) == [None] * 4
    for store in stores:
        store.check()
        store.close()


def test_a_database_of_a_later_version_is_refused(url, store):
    with store.writing() as db:
        db.execute(text("UPDATE meta SET value = '99' WHERE name = 'version'"))
    with pytest.raises(SettingsError, match="of version 99"):
        Store.open(url)


def test_what_fails_leaves_nothing(store):
    def half() -> None:
        with store.writing() as db:
            db.execute(insert(meta).values(name="a", value="x"))
            db.execute(insert(meta).values(name="a", value="y"))

    with pytest.raises(IntegrityError):
        half()
    with store.reading() as db:
        assert set(db.execute(select(meta.c.name)).scalars()) == {"version"}


def test_a_server_that_is_away_is_told(url):
    with pytest.raises(StoreUnavailable, match="what was confirmed is stored"):
        Store.open(url.replace("?host=", "?host=/nowhere"))


def test_a_connection_that_broke_is_replaced(store):
    with pytest.raises(StoreUnavailable), store.writing() as db:
        db.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))
    store.check()


def test_confirmed_means_on_the_disk(store):
    with store.reading() as db:
        assert db.execute(text("SHOW synchronous_commit")).scalar_one() == "on"
        assert db.execute(text("SHOW fsync")).scalar_one() == "on"


def test_codes_names_and_nonces_serve_once(store):
    registry = Registry(store, Clock())
    codes = [registry.new_code("clinic", Stream.keyed(b"code", str(n)))[0] for n in range(4)]
    keys = [(identity(n).signing.public, identity(n).exchange.public) for n in range(4)]
    calls = [lambda n=n: registry.enrol(codes[n], "clinic", *keys[0]) for n in range(4)]
    outcomes = at_once(*calls)
    assert outcomes.count(None) == 1
    assert all(isinstance(error, Conflict | IntegrityError) for error in outcomes if error is not None)
    gate, request = Authentication(store, Clock()), signed()
    outcomes = at_once(*[lambda: gate.admit(gate.sender(request), request)] * 4)
    assert outcomes.count(None) == 1
    assert all(isinstance(error, Replayed) for error in outcomes if error is not None)
    with pytest.raises(Forbidden):
        registry.enrol("0" * 30, "clinic", *keys[1])


def test_offers_replace_each_other(store):
    registry = Registry(store, Clock())
    code, _ = registry.new_code("clinic", Stream.keyed(b"code"))
    registry.enrol(code, "clinic", identity(0).signing.public, identity(0).exchange.public)
    for rows in (1, 2):
        registry.offer("clinic", "patients", BITS, rows)
    assert [offer.rows for offer in registry.offers()] == [2]


@pytest.mark.parametrize("wishes", mostly_exhaustive([{}, {"noise": "distributed"}], {1}))
def test_a_whole_run_with_a_restart_after_every_answer(url, tmp_path, small_secret, wishes):
    desk = Desk(tmp_path, url=url, crypto=OneKey(small_secret))
    run = desk.run(epsilon="50", **wishes)
    while desk.views.run(run).step is not None:
        for party in desk.parties:
            found = desk.orchestrator.inbox(party.name)
            desk.restart()
            assert desk.orchestrator.inbox(party.name) == found
            if found is not None:
                desk.deliver(party, party.handle(*found))
    desk.orchestrator.tick()
    assert desk.views.run(run).state == "finished"
    assert len(desk.views.receipts("party-1")) == len(
        [step for step in desk.views.run(run).progress if "party-1" in step.of]
    )
    desk.store.close()
