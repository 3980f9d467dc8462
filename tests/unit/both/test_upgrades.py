"""A store made by an older program is brought up to date with all that is in it; one of a newer program is refused."""

import json
import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

from curator.commands.main import main as curator_command
from curator.store.migrations import MIGRATIONS, migrate
from curator.store.tables import make_engine
from party.books import ledger as ledger_module
from party.books.ledger import Ledger
from party.commands.main import main as party_command
from party.errors import LedgerError
from tests.support.fake_curator import FakeCurator
from tests.support.party import account, make_home, write_keys


def execute(file: Path, statement: str) -> None:
    with closing(sqlite3.connect(file)) as db, db:
        db.execute(statement)


def test_a_party_with_a_newer_ledger_is_told_to_update(tmp_path, capsys):
    home = make_home(tmp_path / "home", 0, FakeCurator())
    write_keys(home, 0)
    words = ["ledger", "--home", str(home.path)]
    assert party_command(words) == 0
    execute(home.ledger, "PRAGMA user_version = 99")
    capsys.readouterr()
    assert party_command(words) == 1
    known = len(ledger_module.MIGRATIONS)
    assert f"its version is 99, this program knows {known}: update the program" in capsys.readouterr().err
    with closing(sqlite3.connect(home.ledger)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (99,)


def test_an_older_ledger_keeps_what_is_in_it(tmp_path, monkeypatch):
    path = tmp_path / "ledger.db"
    old = Ledger.open(path)
    facts = {"plan_hash": "0" * 64, "dataset": "patients", "plan": "{}", "schema_text": "", "price": Fraction(1, 3)}
    old.ask("run-1", **facts, verdict="accept", reasons=["every rule allows it"])
    old.reserve("run-1", account(Fraction(1)))
    old.record(
        "run-1", "joining", mechanism="joining", charge=Fraction(1, 7), request_digest="a", reply=b"x", kept=b"k"
    )
    before = old.requests(), old.entries(), old.spent("patients")
    old.close()
    following = ("CREATE TABLE notes (run TEXT NOT NULL REFERENCES requests (run), text TEXT NOT NULL) STRICT",)
    monkeypatch.setattr(ledger_module, "MIGRATIONS", (*ledger_module.MIGRATIONS, following))
    new = Ledger.open(path)
    assert (new.requests(), new.entries(), new.spent("patients")) == before
    assert new.kept("run-1") == b"k"
    new.close()
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(*) FROM notes").fetchone() == (0,)
        assert db.execute("PRAGMA user_version").fetchone() == (len(ledger_module.MIGRATIONS),)


def test_a_migration_of_the_ledger_that_fails_changes_nothing(tmp_path, monkeypatch):
    path = tmp_path / "ledger.db"
    Ledger.open(path).close()
    version = len(ledger_module.MIGRATIONS)
    broken = ("CREATE TABLE notes (text TEXT) STRICT", "THIS IS NO SQL")
    with monkeypatch.context() as patch:
        patch.setattr(ledger_module, "MIGRATIONS", (*ledger_module.MIGRATIONS, broken))
        with pytest.raises(LedgerError, match="cannot be used"):
            Ledger.open(path)
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (version,)
        assert db.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'notes'").fetchone() == (0,)
    Ledger.open(path).close()


def test_a_curator_with_a_newer_database_is_told_to_update(tmp_path, capsys):
    home = ["--home", str(tmp_path)]
    assert curator_command(["init", *home]) == 0
    execute(tmp_path / "curator.db", "UPDATE meta SET value = '99' WHERE name = 'version'")
    capsys.readouterr()
    for words in (["code", "north"], ["serve", "--port", "0"]):
        assert curator_command([*words, *home]) == 2
        said = capsys.readouterr().err
        assert f"the database is of version 99, this curator knows {len(MIGRATIONS)}: start a newer curator" in said


def test_a_curators_home_of_the_first_version_goes_on(tmp_path, capsys):
    """The tables as the first program made them, with a party in them."""
    home = ["--home", str(tmp_path)]
    assert curator_command(["init", *home]) == 0
    for file in tmp_path.glob("curator.db*"):
        file.unlink()
    _first_version(tmp_path / "curator.db")
    capsys.readouterr()
    assert curator_command(["code", "south", *home, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "south"
    assert curator_command(["code", "north", *home]) == 2
    assert "there is a party called 'north' already" in capsys.readouterr().err
    with closing(sqlite3.connect(tmp_path / "curator.db")) as db:
        assert db.execute("SELECT value FROM meta WHERE name = 'version'").fetchone() == (str(len(MIGRATIONS)),)
        assert db.execute("SELECT last_seen FROM parties").fetchall() == [(None,)]


def _first_version(file: Path) -> None:

    engine = make_engine(f"sqlite:///{file}")
    migrate(engine, MIGRATIONS[:1])
    engine.dispose()
    execute(file, "INSERT INTO parties VALUES ('north', x'01', x'02', 5, NULL)")
