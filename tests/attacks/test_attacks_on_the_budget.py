"""Rows that are spent on under several names: two sections over one table, a renamed section, a lost home.

Each would spend a limit twice if an account were a name in party.toml instead of the rows.

It does not know any attacker: the data owner's own hand is enough.
"""

import json
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from party import service
from party.commands.main import main
from party.errors import SettingsError
from party.views import summary
from protocol.messages.http import SentReceipt
from protocol.tables.schema import Schema
from tests.support.fake_curator import URL, FakeCurator
from tests.support.party import Party, make_home, run_terms, seams_to, write_keys
from tests.support.small_runs import BITS

TITLED = Schema.parse({"title": "another title"} | json.loads(BITS.to_json()))
PEOPLE = '\n[datasets.people]\nsource = "{source}"\nschema = "titled.json"\nepsilon_total = "{total}"\n'
Told = Callable[..., tuple[int, str]]


@pytest.fixture
def fake() -> FakeCurator:
    return FakeCurator()


@pytest.fixture
def told(fake: FakeCurator, capsys: pytest.CaptureFixture[str]) -> Told:
    """Runs a command: its exit code, and all that it prints."""

    def tell(*words: object) -> tuple[int, str]:
        code = main([str(word) for word in words], seams_to(fake))
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return tell


def a_party(folder: Path, fake: FakeCurator, more: str = "", total: str = "1") -> Party:
    home = make_home(folder / "home", 0, fake, total=total, more=more)
    (home.path / "titled.json").write_text(TITLED.to_json())
    write_keys(home, 0)
    return Party(home, 0, fake)


def rewritten(party: Party, before: str, after: str) -> Party:
    """The party after its data owner has changed party.toml."""
    text = party.home.settings.read_text()
    assert before in text
    party.home.settings.write_text(text.replace(before, after))
    return party.killed()


def invited(fake: FakeCurator, party: Party, run: str, schema: Schema) -> Any:
    """A run that costs epsilon 1, and how it stands after the party's answer."""
    found = fake.start(run_terms(run, schema))
    party.turns()
    return found


def serve(party: Party) -> None:
    party.opened.ledger.close()
    service.serve(party.home, lambda *_, **__: None, transport=party.fake.transport())


def test_one_table_under_two_titles_is_spent_on_once(tmp_path: Path, fake: FakeCurator, told: Told) -> None:
    party = a_party(tmp_path, fake, PEOPLE.format(source="./patients.csv", total="1"))
    assert invited(fake, party, "run-1", BITS).ended is None
    second = invited(fake, party, "run-2", TITLED)
    assert second.reason == "it costs 1, only 0 is left of 1 (0 spent, 1 set aside)"
    assert told("ledger", "--home", party.home.path)[1].splitlines()[:2] == [
        "patients: epsilon 1 for all runs, 0 spent, 1 set aside, 0 left",
        "  patients and people share this budget",
    ]


def test_a_renamed_section_goes_on_with_what_its_rows_have_spent(tmp_path: Path, fake: FakeCurator) -> None:
    party = a_party(tmp_path, fake)
    assert invited(fake, party, "run-1", BITS).ended is None
    party = rewritten(party, "[datasets.patients]", "[datasets.people]")
    assert party.opened.unclear_accounts() == []
    assert invited(fake, party, "run-2", BITS).reason.startswith("it costs 1, only 0 is left of 1")
    budget = summary(party.opened, party.opened.known("run-1"))["budget"]
    assert (budget["account"], budget["left"]) == ("people", "0")


def test_nothing_is_served_while_spending_belongs_to_no_section(tmp_path: Path, fake: FakeCurator) -> None:
    """Renamed and moved at once, so that neither name nor source is known."""
    party = a_party(tmp_path, fake)
    assert invited(fake, party, "run-1", BITS).ended is None
    shutil.move(party.home.path / "patients.csv", party.home.path / "moved.csv")
    party = rewritten(party, '[datasets.patients]\nsource = "patients.csv"', '[datasets.people]\nsource = "moved.csv"')
    with pytest.raises(SettingsError, match=r'epsilon 1 of .patients., .* write formerly = \["patients"\] into the'):
        serve(party)
    party = rewritten(party, 'source = "moved.csv"', 'source = "moved.csv"\nformerly = ["patients"]')
    assert party.opened.unclear_accounts() == []
    assert invited(fake, party, "run-2", BITS).reason.startswith("it costs 1, only 0 is left of 1")


def test_a_data_set_of_the_past_can_be_retired(tmp_path: Path, fake: FakeCurator, told: Told) -> None:
    party = a_party(tmp_path, fake)
    assert invited(fake, party, "run-1", BITS).ended is None
    fake.runs["run-1"].ended = "cancelled"
    party.turns()
    spent = {"run": "old", "plan": "0" * 64, "step": "joining", "digest": "1" * 64, "signature": "0" * 128}
    party.ledger.acknowledge([SentReceipt(**spent, charge=Fraction(1, 3))], "patients")
    (party.home.path / "new.csv").write_text((party.home.path / "patients.csv").read_text())
    party = rewritten(party, '[datasets.patients]\nsource = "patients.csv"', '[datasets.next]\nsource = "new.csv"')
    assert "epsilon 1/3 of 'patients'" in party.opened.unclear_accounts()[0]
    party = rewritten(party, "[policy]", '[policy]\nretired = ["patients"]')
    assert party.opened.unclear_accounts() == []
    lines = told("ledger", "--home", party.home.path)[1].splitlines()
    assert lines[0].startswith("next: epsilon 1 for all runs, 0 spent")
    assert lines[1].startswith("patients: epsilon 0 for all runs, about 0.3333 (1/3) spent")


def test_sections_over_the_same_rows_that_name_two_budgets_are_not_served(tmp_path: Path, fake: FakeCurator) -> None:
    more = PEOPLE.format(source="patients.csv", total="1") + 'budget = "x"\n'
    party = a_party(tmp_path, fake, more)
    party = rewritten(party, 'schema = "schema.json"', 'schema = "schema.json"\nbudget = "y"')
    with pytest.raises(SettingsError, match="read the same rows, but name two budgets"):
        serve(party)


def test_a_lost_home_that_enrols_anew_learns_what_its_earlier_keys_have_spent(
    tmp_path: Path, fake: FakeCurator, told: Told
) -> None:
    old = a_party(tmp_path, fake, total="4")
    fake.start(run_terms())
    others = [Party(make_home(tmp_path / f"other-{n}", n, fake), n, fake) for n in (1, 2)]
    for party in (old, *others, old):
        party.turns()
    assert [receipt["charge"] for receipt in fake.receipts["party-1"]] == ["0", "1/20"]

    home = tmp_path / "new"
    assert told("init", "--home", home)[0] == 0
    shutil.copy(old.home.path / "schema.json", home)
    shutil.copy(old.home.path / "patients.csv", home)
    words = ["--curator", URL, "--code", fake.code("party-1"), "--name", "party-1"]
    code, text = told("enrol", "--home", home, *words)
    assert code == 0
    assert "earlier keys of this name have signed 1 answers" in text
    assert 'into the section of these rows: spent_before = "0.05"' in text
    assert 'spent_before = "0.05"' in told("doctor", "--home", home)[1]
    settings = home / "party.toml"
    settings.write_text(settings.read_text().replace('total = "4"', 'total = "4"\nspent_before = "0.05"', 1))
    assert "earlier keys" not in told("doctor", "--home", home)[1]
    lines = told("ledger", "--home", home)[1].splitlines()
    assert lines[0] == "patients: epsilon 4 for all runs, 0.05 spent, 0 set aside, 3.95 left"
    assert lines[1] == "  of what is spent, epsilon 0.05 was spent before this ledger was begun"
