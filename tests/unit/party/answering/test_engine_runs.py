"""Runs of a party whose rows stay in an engine: byte for byte the answers of a party that counts here."""

import re

import duckdb
import pytest

from crypto.randomness import Stream
from party.answering.run_rows import left_behind
from protocol.messages.tasks import Acceptance, decode
from protocol.run.scans import most_scans
from tests.support.fake_curator import FakeCurator
from tests.support.party import Party, finish, make_home, run_terms
from tests.support.party_runs import RUN, join, reason_of, task_of
from tests.support.small_runs import MIXED

ROWS = (90, 70)
TYPES = {"age": "BIGINT", "bmi": "DOUBLE"}
METHODS = ["guided", "privbayes"]


def parties_of(folder, fake, where):
    homes = [make_home(folder / f"party-{n}", n, fake, schema=MIXED, rows=ROWS) for n in range(2)]
    if where in ("engine", "one engine"):
        to_engine(homes[0])
    if where == "one engine":
        to_engine(homes[1], homes[0], "u")
    return [Party(home, n, fake, stream=Stream.keyed(f"party {n}".encode())) for n, home in enumerate(homes)]


def to_engine(home, place=None, table="t"):
    """Move a party's table into a database that counts it: its own, or that of another party."""
    database, file = (place or home).path / "patients.duckdb", home.path / "patients.csv"
    columns = ", ".join(f"'{name}': '{TYPES.get(name, 'VARCHAR')}'" for name in MIXED.names)
    with duckdb.connect(str(database)) as connection:
        connection.execute(f"CREATE TABLE {table} AS FROM read_csv('{file}', columns = {{{columns}}})")
    source = f'source = "duckdb:///{database}"\nquery = "SELECT * FROM {table}"\nengine = true'
    text = home.settings.read_text().replace('source = "patients.csv"', source)
    home.settings.write_text(text)
    file.unlink()


def tables_in(home, name="patients.duckdb"):
    with duckdb.connect(str(home.path / name)) as connection:
        return [name for (name,) in connection.execute("SHOW TABLES").fetchall() if name not in ("t", "u")]


def answers(folder, where, **wishes):
    fake = FakeCurator()
    parties = parties_of(folder, fake, where)
    fake.start(run_terms(schema=MIXED, rows=ROWS, **wishes))
    finish(fake, parties, RUN)
    assert fake.runs[RUN].status == "finished", fake.runs[RUN].reason
    for party in parties:
        party.turns()  # it hears that the run is over
    return [(step, body) for _, step, name, body in fake.deliveries if name == "party-1"], parties[0]


@pytest.mark.parametrize("method", METHODS)
def test_all_its_answers_are_those_of_a_party_that_counts_here(tmp_path, method):
    here, _ = answers(tmp_path / "here", "here", method=method)
    there, party = answers(tmp_path / "there", "engine", method=method)
    assert there[1:] == here[1:]
    (_, first), (_, other) = here[0], there[0]
    said, engine = (decode(one, "party-1") for one in (first, other))
    assert isinstance(engine, Acceptance)
    assert (said.engine, engine.engine) == ("", "duckdb")
    assert said == engine.model_copy(update={"engine": ""})
    assert tables_in(party.home) == []
    assert [*party.home.rows.iterdir()] == []


def test_two_parties_may_share_an_engine_and_a_place_in_it(tmp_path):
    here, _ = answers(tmp_path / "here", "here")
    there, party = answers(tmp_path / "there", "one engine")
    assert there[1:] == here[1:]
    assert tables_in(party.home) == []


def test_no_table_is_left_of_a_joining_that_was_interrupted(tmp_path, fake, monkeypatch):
    class Killed(BaseException):
        pass

    def killed(*_what):
        raise Killed

    parties = parties_of(tmp_path, fake, "engine")
    with monkeypatch.context() as patch:
        patch.setattr("party.answering.answering.accept", killed)
        with pytest.raises(Killed):
            join(fake, parties, schema=MIXED, rows=ROWS)
    (left,) = tables_in(parties[0].home)
    parties[0] = parties[0].killed()
    parties[0].turns(start=True)
    (name,) = tables_in(parties[0].home)
    assert name != left
    finish(fake, parties, RUN)
    parties[0].turns()
    assert (fake.runs[RUN].status, tables_in(parties[0].home)) == ("finished", [])
    assert [*parties[0].home.rows.iterdir()] == []


def test_it_takes_no_more_scans_than_were_stated(tmp_path, monkeypatch):
    from party.engines.connection import Engine

    scans, fetched, made = [], Engine.fetched, Engine.made
    monkeypatch.setattr(Engine, "fetched", lambda engine, what: scans.append(1) or fetched(engine, what))
    monkeypatch.setattr(Engine, "made", lambda engine, *what: scans.append(1) or made(engine, *what))
    answers(tmp_path / "run", "engine")
    terms = run_terms(schema=MIXED, rows=ROWS)
    stated = sum(most_scans(terms, step, 0, len(MIXED.names) ** 2) for step in terms.steps if 0 in step.parties)
    assert 0 < len(scans) <= stated


def test_a_run_goes_on_after_a_restart_with_the_rows_that_it_began_with(tmp_path, fake):
    parties = parties_of(tmp_path, fake, "engine")
    join(fake, parties, schema=MIXED, rows=ROWS)
    (name,) = tables_in(parties[0].home)
    assert re.fullmatch("subn_run_[0-9a-f]{32}", name)
    with duckdb.connect(str(parties[0].home.path / "patients.duckdb")) as connection:
        connection.execute("DELETE FROM t")
    parties = [party.killed() for party in parties]
    for party in parties:
        party.turns(0, start=True)
    finish(fake, parties, RUN)
    assert fake.runs[RUN].status == "finished"


def test_a_run_ends_with_a_reason_if_its_table_is_gone_from_the_engine(tmp_path, fake):
    parties = parties_of(tmp_path, fake, "engine")
    join(fake, parties, schema=MIXED, rows=ROWS)
    (name,) = tables_in(parties[0].home)
    with duckdb.connect(str(parties[0].home.path / "patients.duckdb")) as connection:
        connection.execute(f"DROP TABLE {name}")
    refused = parties[0].answering.handle(RUN, task_of(fake, parties[0]))
    assert reason_of(refused.reply) == (
        "this party cannot go on: the table of codes that its engine kept of the run is gone"
    )


def test_what_a_run_left_in_an_engine_that_was_away_is_removed_at_the_next_start(tmp_path, fake):
    parties = parties_of(tmp_path, fake, "engine")
    join(fake, parties, schema=MIXED, rows=ROWS)
    party, database = parties[0], parties[0].home.path / "patients.duckdb"
    away = database.rename(database.with_suffix(".away"))
    database.mkdir()  # nothing can be opened here
    party.answering.settle(RUN, "cancelled", "")
    assert [file.suffix for file in party.home.rows.iterdir()] == [".engine"]
    database.rmdir()
    away.rename(database)
    assert len(tables_in(party.home)) == 1
    party.killed().turns(0, start=True)
    assert tables_in(party.home) == []
    assert [*party.home.rows.iterdir()] == []


def test_a_table_that_its_data_set_no_longer_leads_to_is_named_until_it_is_removed(tmp_path, fake, capsys):
    parties = parties_of(tmp_path, fake, "engine")
    join(fake, parties, schema=MIXED, rows=ROWS)
    party, given = parties[0], parties[0].home.settings.read_text()
    (name,) = tables_in(party.home)
    party.home.settings.write_text(given.replace("patients.duckdb", "other.duckdb"))
    party = party.killed()
    party.answering.settle(RUN, "cancelled", "")
    ((table, where),) = left_behind(party.opened)
    assert (table, tables_in(party.home)) == (name, [name])
    assert where == f"duckdb:///{party.home.path}/patients.duckdb, of data set patients"
    assert name in capsys.readouterr().err
    party.home.settings.write_text(given.replace("engine = true", 'engine = true\nsnapshots = "main"'))
    party.killed().turns(0, start=True)  # another spelling of the same place: the table is found
    assert (tables_in(party.home), [*party.home.rows.iterdir()]) == ([], [])
