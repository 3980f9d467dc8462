"""The data owner's command line, from an empty folder to the account, against the fake curator."""

import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from fastapi import Request, Response

from crypto.signing import SigningKey
from party.commands.main import main
from party.commands.setup import init
from party.home import keys, settings
from party.home.keys import own_fingerprint
from party.home.layout import Home
from party.views import amount
from protocol.messages.fingerprint_words import spoken
from tests.support.fake_curator import URL, FakeCurator
from tests.support.party import NO_DELTA, Party, fingerprint_of, make_home, run_terms, seams_to, write_keys
from tests.support.small_runs import BITS, MIXED, identity

RUN = "run-1"
COMMANDS = ("init", "enrol", "peers", "trust", "check", "offer", "rotate", "serve", "requests", "accept", "refuse")
COMMANDS += ("draft", "ready", "ledger", "audit", "export", "page", "compare")
READ = (
    "  read with commas, decimal points, UTF-8: read so? if not, set delimiter, decimal, encoding, quote or sheet in "
    "party.toml\n"
)
TOML = """
[datasets.patients]
source = "patients.csv"
schema = "schema.json"
epsilon_total = "3"

[policy]
epsilon_per_run = "1"

[local]
port = 0
"""


@pytest.fixture
def fake() -> FakeCurator:
    return FakeCurator()


@pytest.fixture
def home(tmp_path, fake) -> Path:
    """A home with a table of four rows, not enrolled."""
    folder = tmp_path / "home"
    assert main(["init", "--home", str(folder)]) == 0
    (folder / "party.toml").write_text(TOML)
    (folder / "schema.json").write_text(BITS.to_json())
    (folder / "patients.csv").write_text("a,b,c,d,e\n" + "no,yes,no,yes,no\n" * 4)
    return folder


@pytest.fixture
def told(capsys, fake) -> Any:
    """Runs a command; gives its exit code, what it prints and what it complains of."""

    def tell(*words: object) -> tuple[int, str, str]:
        code = main([str(word) for word in words], seams_to(fake))
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return tell


def enrolled(told: Any, fake: FakeCurator, home: Path) -> None:
    assert told("enrol", "--home", home, "--curator", URL, "--code", fake.code("North"), "--name", "North")[0] == 0


# Setting up


def test_one_home_that_is_made_twice_at_once_has_one_pair_of_keys(tmp_path):
    home = Home(tmp_path / "home")

    def fingerprint(_):
        return init(home, None).data["fingerprint"]

    with ThreadPoolExecutor(8) as several:
        told = {*several.map(fingerprint, range(40))}
    assert told == {own_fingerprint(keys.load(home.keys))}


def test_init_makes_a_home_and_keeps_what_is_there(tmp_path, told):
    home = tmp_path / "new" / "home"
    code, text, _ = told("init", "--home", home)
    assert code == 0
    assert "your fingerprint: " in text
    assert (home / "keys" / "identity.json").stat().st_mode & 0o777 == 0o600
    assert home.stat().st_mode & 0o777 == 0o700
    settings.load(Home(home))  # the commented template is valid
    (home / "party.toml").write_text(TOML)
    first = json.loads(told("init", "--home", home, "--json")[1])
    assert first["new"] is False
    assert first["fingerprint"] in text
    assert (home / "party.toml").read_text() == TOML


def test_the_home_comes_from_the_environment(monkeypatch, tmp_path, told):
    monkeypatch.setenv("SUBN_PARTY_HOME", str(tmp_path / "elsewhere"))
    assert json.loads(told("init", "--json")[1])["home"] == str(tmp_path / "elsewhere")


def test_enrolment_shows_every_fingerprint(fake, home, told):
    fake.know("South", identity(3).signing.public, identity(3).exchange.public)
    fake.know("West", identity(4).signing.public, identity(4).exchange.public)
    fake.parties["West"]["revoked"] = True
    code, text, _ = told("enrol", "--home", home, "--curator", URL, "--code", fake.code("North"), "--name", "North")
    assert code == 0
    own = json.loads(told("init", "--home", home, "--json")[1])["fingerprint"]
    assert f"North (you)          {own}" in text
    assert f"South                {fingerprint_of(3)}   compare with its data owner" in text
    assert f"West                 {fingerprint_of(4)}   revoked by the operator" in text
    noted = settings.load(Home(home)).curator
    assert (noted.name, noted.url, noted.key) == ("North", URL, fake.key.public.hex())
    again = told("enrol", "--home", home, "--curator", URL, "--name", "North")
    assert again[:2] == (0, "enrolled as North already; nothing was done\n")
    elsewhere = told("enrol", "--home", home, "--curator", URL, "--code", fake.code("South"), "--name", "South")
    assert elsewhere[0] == 2
    assert "enrolled at https://curator.example as North already" in elsewhere[2]


def test_a_peer_whose_name_can_be_taken_for_another_is_told(fake, home, told):
    fake.know("South", identity(3).signing.public, identity(3).exchange.public)
    fake.know("Sоuth", identity(4).signing.public, identity(4).exchange.public)  # with a Cyrillic letter
    enrolled(told, fake, home)
    _, text, _ = told("peers", "--home", home)
    assert text.count("CAREFUL: this name can be taken for") == 2
    found = json.loads(told("peers", "--home", home, "--json")[1])["peers"]
    assert {peer["name"]: peer["alike"] for peer in found} == {"South": ["Sоuth"], "Sоuth": ["South"]}


@pytest.mark.parametrize("content", ["", "-----BEGIN CERTIFICATE-----\nMIIB", "no certificate"])
def test_a_ca_that_was_cut_is_named(fake, home, told, content):
    enrolled(told, fake, home)
    (home / "ca.pem").write_text(content)
    text = (home / "party.toml").read_text()
    (home / "party.toml").write_text(re.sub(r'(?m)^ca = ".*"$', 'ca = "ca.pem"', text))
    code, _, complaint = told("peers", "--home", home)
    assert code == 2
    assert f"{home / 'ca.pem'} does not hold the curator's certificate authority: restore it" in complaint


def test_a_wrong_code_is_refused_in_the_curators_words(fake, home, told):
    wrong = f"wrong.{fake.pin}"
    code, _, complaint = told("enrol", "--home", home, "--curator", URL, "--code", wrong, "--name", "North")
    assert code == 3
    assert complaint == "subn-party: the curator refuses: this code is not valid for this name\n"
    assert settings.load(Home(home)).curator is None


def test_a_curator_that_the_code_does_not_prove_is_not_noted(fake, home, told):
    code = fake.code("North")
    fake.ca = "another CA"
    returned, _, complaint = told("enrol", "--home", home, "--curator", URL, "--code", code, "--name", "North")
    assert returned == 3
    assert "is not the curator that your code was made by" in complaint
    assert fake.requests == ["GET /v1/introduction"]  # the secret half has not left
    assert settings.load(Home(home)).curator is None


@pytest.mark.parametrize("code", ["code-1", "code-1.", f"code-1.{'0' * 31}", f"code-1.{'x' * 32}", "." + "0" * 32])
def test_half_a_code_is_refused_before_anybody_is_asked(fake, home, told, code):
    returned, _, complaint = told("enrol", "--home", home, "--curator", URL, "--code", code, "--name", "North")
    assert returned == 2
    assert "; copy all of" in complaint
    assert fake.requests == []


def test_enrolment_takes_what_the_environment_says(fake, home, told, monkeypatch, tmp_path):
    for name, value in {"CURATOR": URL, "NAME": "North"}.items():
        monkeypatch.setenv(f"SUBN_PARTY_{name}", value)
    returned, _, complaint = told("enrol", "--home", home)
    assert (returned, "SUBN_PARTY_CODE_FILE" in complaint) == (2, True)
    (tmp_path / "code").write_text(fake.code("North") + "\n")
    monkeypatch.setenv("SUBN_PARTY_CODE_FILE", str(tmp_path / "code"))
    assert told("enrol", "--home", home)[0] == 0
    assert settings.load(Home(home)).curator.name == "North"


def test_a_curator_with_new_keys_is_recognised_by_its_new_pin_only(fake, home, told):
    enrolled(told, fake, home)
    old = fake.pin
    fake.key = SigningKey.from_bytes(b"\x78" * 32)
    assert told("peers", "--home", home)[0] == 3
    assert told("recognise", "--home", home, old)[0] == 3
    assert told("recognise", "--home", home, fake.pin[:16] + " " + fake.pin[16:].upper())[0] == 0
    assert told("peers", "--home", home)[0] == 0
    noted = settings.load(Home(home)).curator
    assert (noted.key, noted.url, noted.ca) == (fake.key.public.hex(), URL, "system")


@pytest.mark.parametrize(("url", "name", "said"), [("curator.org", "North", "--curator"), (URL, "x" * 201, "--name")])
def test_what_cannot_be_enrolled_does_not_use_up_the_code(fake, home, told, url, name, said):
    made = fake.code(name or "North")
    code, _, complaint = told("enrol", "--home", home, "--curator", url, "--code", made, "--name", name)
    assert code == 2
    assert said in complaint
    assert fake.codes


def test_a_peer_is_noted_only_under_the_fingerprint_that_its_owner_told(fake, home, told):
    enrolled(told, fake, home)
    fake.know("South", identity(3).signing.public, identity(3).exchange.public)
    code, _, complaint = told("trust", "--home", home, "South", fingerprint_of(4))
    assert code == 3
    assert f"the curator shows the fingerprint {fingerprint_of(3)} for South" in complaint
    assert told("trust", "--home", home, "East", fingerprint_of(3))[0] == 2
    assert told("trust", "--home", home, "South", spoken(fingerprint_of(4)))[0] == 3
    assert told("trust", "--home", home, "South", spoken(fingerprint_of(3)).title())[0] == 0
    assert spoken(fingerprint_of(3)) in told("peers", "--home", home)[1]
    assert "   compared" in told("peers", "--home", home)[1]
    fake.know("South", identity(4).signing.public, identity(3).exchange.public)
    code, text, _ = told("peers", "--home", home)
    assert f"DIFFERS from the fingerprint that you have noted ({fingerprint_of(3)})" in text
    (peer,) = json.loads(told("peers", "--home", home, "--json")[1])["peers"]
    assert (peer["name"], peer["compared"], peer["noted"]) == ("South", False, fingerprint_of(3))


def test_check_says_every_problem(fake, home, told):
    persons = "  rows per person: not checked: no person key\n"
    assert told("check", "--home", home)[1] == f"patients: 4 rows fit\n{READ}{persons}curator: not enrolled yet\n"
    enrolled(told, fake, home)
    assert told("check", "--home", home)[1].endswith(f"curator: {URL} answers, and knows North\n")
    table = home / "patients.csv"
    table.write_text(table.read_text() + "no,maybe,no,no,no\nno,maybe,no,x,no\n")
    code, text, _ = told("check", "--home", home)
    assert code == 2
    assert text.startswith("patients: 6 rows DO NOT FIT\n  2 times in b: ")
    assert "  1 times in d: " in text
    assert "  first: " in text
    assert "maybe" not in text
    found = json.loads(told("check", "--home", home, "--json")[1])
    assert [problem["count"] for problem in found["datasets"]["patients"]["problems"]] == [2, 1]


def test_check_shows_values_on_the_spot_and_nowhere_else(fake, home, told):
    table = home / "patients.csv"
    table.write_text(table.read_text() + "no,maybe,no,no,no\n" + "no,no,no,\x1b[2J" + "x" * 90 + ",no\nno\n")
    code, text, _ = told("check", "--home", home, "--show-values")
    assert code == 2
    shown = text[text.index("  the first 10 of each kind") :].splitlines()
    assert shown[1:4] == [
        '  line 6, column "b": a category that the schema does not list: "maybe"',
        f'  line 7, column "d": a category that the schema does not list: "\\u001b[2J{"x" * 76}..."',
        '  line 8: the wrong number of fields: "1 instead of 5"',
    ]
    files = [file for file in home.rglob("*") if file.is_file() and file != table]
    assert files
    assert not [file for file in files if b"maybe" in file.read_bytes()]
    assert "maybe" not in told("check", "--home", home)[1]
    code, text, complaint = told("check", "--home", home, "--show-values", "--json")
    assert (code, complaint) == (2, "subn-party: --show-values is for your eyes on the spot: leave --json out\n")
    assert "maybe" not in text


def test_at_most_ten_values_of_a_kind_are_shown(home, told):
    table = home / "patients.csv"
    table.write_text(table.read_text() + "".join(f"no,bad-{number},no,no,no\n" for number in range(30)))
    text = told("check", "--home", home, "--show-values")[1]
    assert [f"bad-{number}" in text for number in (0, 9, 10, 29)] == [True, True, False, False]


def test_check_tells_every_problem_of_a_schema(home, told):
    (home / "schema.json").write_text('{"attributes": [{"name": "a", "kind": "integer", "min": 3, "max": 1, "x": 1}]}')
    code, text, _ = told("check", "--home", home)
    assert code == 2
    where = f"  first: {home / 'schema.json'}: "
    assert text.splitlines()[1:3] == [
        f'{where}Schema, attribute "a", field "x": is not known here; remove it or correct its spelling.',
        '  Schema, attribute "a", field "min": 3 is above max 1; write the smaller one as min.',
    ]


def test_check_counts_what_the_rules_mend(fake, home, told):
    schema = {"attributes": [{"name": "age", "kind": "integer", "min": 0, "max": 9}]}
    (home / "schema.json").write_text(json.dumps(schema))
    (home / "patients.csv").write_text("age\n3\n11\n")
    (home / "party.toml").write_text(TOML.replace("epsilon_total", 'out_of_range = "clamp"\nepsilon_total'))
    code, text, _ = told("check", "--home", home)
    assert code == 0
    assert text.startswith("patients: 2 rows fit by your out_of_range rules\n  1 times in age: ")


def test_check_names_a_schema_that_cannot_be_read(home, told):
    (home / "schema.json").unlink()
    code, text, _ = told("check", "--home", home)
    assert code == 2
    assert text.startswith("patients: cannot be read\n  first: ")


def test_check_shows_what_the_curator_says(fake, home, told):
    enrolled(told, fake, home)
    fake.now += 3600
    code, text, _ = told("check", "--home", home)
    assert code == 1
    assert "your clock says" in text


def test_offers_tell_schema_and_row_counts(fake, home, told):
    enrolled(told, fake, home)
    code, text, _ = told("offer", "--home", home)
    assert (code, text) == (0, f"offered 4 rows of patients (schema {BITS.hash[:12]}...)\n")
    assert fake.offers == {("North", "patients"): {"schema": BITS.to_json(), "rows": 4}}
    code, _, complaint = told("offer", "--home", home, "others")
    assert code == 2
    assert complaint.endswith("there is no data set 'others'; known are patients\n")


def test_without_enrolment_there_is_no_curator_to_ask(home, told):
    for words in (["offer"], ["peers"], ["ledger", "acknowledge"], ["serve"]):
        code, _, complaint = told(*words, "--home", home)
        assert code == 2
        assert "this party is not enrolled; enrol it with `subn-party enrol`" in complaint


def test_a_curator_that_does_not_answer_is_a_failure_not_a_refusal(fake, home, told):
    enrolled(told, fake, home)
    fake.before.append(lambda _request: Response("gone for lunch", 503))
    code, text, complaint = told("peers", "--home", home, "--json")
    assert code == 1
    assert f"{URL} says 503\n" in complaint  # words that the curator has not signed are not repeated
    assert json.loads(text)["kind"] == "Unreachable"


# Keys


def test_rotation(fake, home, told):
    enrolled(told, fake, home)
    before = fake.parties["North"]["signing_key"]
    code, text, _ = told("rotate", "--home", home)
    assert code == 0
    assert fake.parties["North"]["signing_key"] != before
    assert json.loads(told("peers", "--home", home, "--json")[1])["fingerprint"] in text


@pytest.mark.parametrize("arrived", [True, False])
def test_a_rotation_that_was_broken_off_goes_on(fake, home, told, arrived):
    """The answer is lost; the request had arrived, or had not."""
    enrolled(told, fake, home)

    def lose(request: Request, answer: Response | None = None) -> Response | None:
        return Response("gateway", 502) if request.url.path == "/v1/keys" else answer

    faults: list[Any] = fake.after if arrived else fake.before
    faults.append(lose)
    before = fake.parties["North"]["signing_key"]
    assert told("rotate", "--home", home)[0] in (1, 3)
    assert (fake.parties["North"]["signing_key"] != before) is arrived
    faults.clear()
    assert told("rotate", "--home", home)[0] == 0
    assert told("peers", "--home", home)[0] == 0
    assert not (home / "keys" / "next-identity.json").exists()


def test_keys_stay_while_a_run_needs_them(tmp_path, fake, told):
    party = joined(tmp_path, fake)
    code, _, complaint = told("rotate", "--home", party.home.path)
    assert code == 2
    assert complaint.endswith("run-1 is under way with the present keys: wait for its end, then rotate\n")


# Requests


def invited(tmp_path: Path, fake: FakeCurator, **choices: Any) -> Party:
    """A party whose data owner has been asked; its commands find the keys of the tests in its home."""
    home = make_home(tmp_path / "party-1", 0, fake, **({"accept": "ask"} | choices))
    party = Party(home, 0, fake)
    write_keys(home, 0)
    fake.start(run_terms())
    party.turns()
    return party


def joined(tmp_path: Path, fake: FakeCurator) -> Party:
    return invited(tmp_path, fake, accept="auto")


def test_requests_say_who_asks_for_what_and_what_would_be_left(tmp_path, fake, told):
    party = invited(tmp_path, fake)
    code, text, _ = told("requests", "--home", party.home.path)
    assert code == 0
    assert text.startswith("run run-1: needs your decision\n")
    for line in (
        "  your data   patients",
        "  together    party-1, 30 rows (you)",
        "  together    party-2, 20 rows (compared)",
        "  protected   from the curator, the public, and any 1 other party",
        "  price       epsilon 1 in total; 0 of it is spent",
        "  budget      epsilon 4 for all runs: 0 spent, 0 set aside, 4 left",
        "  afterwards  epsilon 3 would be left",
        "  ask         every run is accepted by hand",
    ):
        assert line in text.splitlines()
    assert f"the curator at {URL} (fingerprint " in text
    (facts,) = json.loads(told("requests", "--home", party.home.path, "--json")[1])
    steps = {step["step"]: step for step in facts["steps"]}
    assert steps["correlations"]["price"] == "1/20"
    assert steps["correlations"]["cells"] > 0
    assert sum(1 for step in steps if step.startswith("initial/")) == 1
    assert [facts["price"], facts["budget"]["left"]] == ["1", "4"]


def test_a_stranger_among_the_parties_is_shown_with_its_fingerprint(tmp_path, fake, told):
    party = invited(tmp_path, fake)
    text = party.home.settings.read_text().replace("[peers.party-3]", "[peers.party-9]")
    party.home.settings.write_text(text)
    shown = told("requests", "--home", party.home.path, RUN)[1]
    assert f"  together    party-3, 10 rows (NOT compared: {fingerprint_of(2)})" in shown.splitlines()


def test_nobody_asks(home, told, fake):
    assert told("requests", "--home", home)[1] == "no open requests\n"
    code, _, complaint = told("requests", "--home", home, "run-7")
    assert code == 2
    assert "there is no run 'run-7' here" in complaint


def test_accepting_by_command_lets_the_service_join(tmp_path, fake, told):
    party = invited(tmp_path, fake)
    code, text, _ = told("accept", "--home", party.home.path, RUN)
    assert (code, text.startswith("run-1 is accepted;")) == (0, True)
    party.turns()
    assert fake.runs[RUN].state.waiting_for == (1, 2)
    assert "run-1: under way" in told("requests", "--home", party.home.path)[1]
    code, _, complaint = told("refuse", "--home", party.home.path, RUN)
    assert code == 1
    assert "is active already" in complaint


def test_refusing_by_command_reaches_the_curator_with_the_reason(tmp_path, fake, told):
    party = invited(tmp_path, fake)
    assert told("refuse", "--home", party.home.path, RUN, "--reason", "the ethics board says no")[0] == 0
    party.turns()
    assert (fake.runs[RUN].ended, fake.runs[RUN].reason) == ("refused", "the ethics board says no")
    assert told("requests", "--home", party.home.path)[1] == "no open requests\n"
    over = told("requests", "--home", party.home.path, "--all")[1]
    assert over.startswith("run run-1: over, refused: the ethics board says no\n")
    decided = [entry for entry in party.audited() if entry["event"] == "decided"]
    assert [(one["decision"], one["by"], one["reason"]) for one in decided] == [
        ("refuse", "command line", "the ethics board says no")
    ]


def test_a_plan_that_cannot_be_agreed_to_is_shown_before_the_curator_hears(tmp_path, fake, told):
    party = invited(tmp_path, fake)
    plan = run_terms("run-2").plan.model_copy(update={"epsilon": 0})
    party.ledger.ask(
        "run-2",
        plan_hash=plan.hash(),
        dataset=None,
        plan=plan.model_dump_json(),
        schema_text=BITS.to_json(),
        price=Fraction(0),
        verdict="refuse",
        reasons=["epsilon is 0: it must be positive"],
    )
    code, text, _ = told("requests", "--home", party.home.path, "run-2")
    assert code == 0
    assert "run run-2: refused, not sent to the curator yet" in text
    assert "  refuse      epsilon is 0: it must be positive" in text
    assert "tables" not in text


def test_a_plan_that_nobody_can_agree_to_is_still_shown(tmp_path, fake, told):
    party = Party(make_home(tmp_path / "home", 0, fake, schema=MIXED), 0, fake)
    fake.start(run_terms())
    party.turns()
    (tmp_path / "party-1").mkdir()
    other = invited(tmp_path / "party-1", fake)
    shutil.copytree(other.home.keys, party.home.keys)
    text = told("requests", "--home", party.home.path, "--all")[1]
    assert "none: no data set of yours has this schema" in text


# Books


def test_the_account_and_its_entries(tmp_path, fake, told):
    party = joined(tmp_path, fake)
    code, text, _ = told("ledger", "--home", party.home.path)
    assert code == 0
    assert text.startswith("patients: epsilon 4 for all runs, 0 spent, 1 set aside, 3 left\n")
    assert "run-1  joining " in text
    found = json.loads(told("ledger", "--home", party.home.path, "--json", "--dataset", "patients")[1])
    assert found["accounts"]["patients"] == {"total": "4", "spent": "0", "reserved": "1", "left": "3"} | NO_DELTA
    assert [entry["step"] for entry in found["entries"]] == ["joining"]
    assert told("ledger", "--home", party.home.path, "--dataset", "others")[0] == 2


def forgotten(tmp_path: Path, fake: FakeCurator, more: str = "") -> Party:
    """A party whose ledger was lost after its first priced answer."""
    party = joined(tmp_path, fake)
    others = [Party(make_home(tmp_path / f"party-{n + 1}", n, fake), n, fake) for n in (1, 2)]
    for other in others:
        other.turns()
    party.turns()
    party.opened.ledger.close()
    for file in party.home.path.glob("ledger.db*"):
        file.unlink()
    party.home.settings.write_text(party.home.settings.read_text() + more)
    return party


def test_a_forgotten_answer_is_charged_when_it_is_acknowledged(tmp_path, fake, told):
    home = forgotten(tmp_path, fake).home.path
    code, text, _ = told("ledger", "acknowledge", "--home", home)
    assert code == 0
    assert text == "charged 0 for joining of run-1\ncharged 0.05 for correlations of run-1\n"
    assert told("ledger", "--home", home)[1].startswith(
        "patients: epsilon 4 for all runs, 0.05 spent, 0 set aside, 3.95 left\n"
    )
    assert "nothing to acknowledge" in told("ledger", "acknowledge", "--home", home)[1]


def test_whose_account_pays_must_be_said_where_it_is_not_clear(tmp_path, fake, told):
    other = '\n[datasets.other]\nsource = "o.csv"\nschema = "o.json"\nepsilon_total = "1"\n'
    home = forgotten(tmp_path, fake, other).home.path
    (home / "audit.jsonl").unlink()  # otherwise it tells which data set was asked about
    code, _, complaint = told("ledger", "acknowledge", "--home", home)
    assert code == 2
    assert "name the data set of the forgotten runs with --dataset: patients, other" in complaint
    assert told("ledger", "acknowledge", "--home", home, "--dataset", "third")[0] == 2
    assert told("ledger", "acknowledge", "--home", home, "--dataset", "other")[0] == 0
    assert json.loads(told("ledger", "--home", home, "--json")[1])["accounts"]["other"]["spent"] == "1/20"


def test_the_audit_log_is_shown_searched_and_verified(tmp_path, fake, told):
    party = joined(tmp_path, fake)
    home = party.home.path
    lines = told("audit", "--home", home)[1].splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["asked", "judged", "answered"]
    assert len(told("audit", "--home", home, "--search", "judged")[1].splitlines()) == 1
    assert len(told("audit", "--home", home, "--last", "2")[1].splitlines()) == 2
    assert told("audit", "--home", home, "--last", "0")[1] == ""
    code, text, _ = told("audit", "verify", "--home", home)
    assert (code, text.endswith("3 entries, the chain is unbroken, and the ledger agrees\n")) == (0, True)
    party.home.audit.write_text(party.home.audit.read_text().replace("accept", "refuse"))
    code, text, _ = told("audit", "verify", "--home", home)
    assert code == 1
    assert "line 3: does not follow from the line before" in text
    assert "BROKEN: " in told("audit", "--home", home)[1]
    party.home.audit.write_text("not JSON\n")
    assert told("audit", "--home", home)[1].startswith("BROKEN: ")


def test_everything_is_exported_but_secrets(tmp_path, fake, told):
    party = joined(tmp_path, fake)
    data = json.loads(told("export", "--home", party.home.path)[1])
    assert data["party"] == "party-1"
    assert [request["run"] for request in data["requests"]] == [RUN]
    assert [entry["step"] for entry in data["entries"]] == ["joining"]
    assert len(data["audit"]) == 3
    out = tmp_path / "export.json"
    code, text, _ = told("export", "--home", party.home.path, "--out", out)
    assert (code, text) == (0, f"written to {out}\n")
    assert identity(0).signing.to_bytes().hex() not in out.read_text()
    assert [entry["event"] for entry in party.audited()][-2:] == ["exported", "exported"]


def test_a_place_that_cannot_be_written_is_a_failure(tmp_path, fake, told):
    party = joined(tmp_path, fake)
    code, _, complaint = told("export", "--home", party.home.path, "--out", tmp_path / "none" / "export.json")
    assert code == 1
    assert "No such file or directory" in complaint


def test_amounts_are_exact():
    assert [amount(text) for text in ("0", "1", "4/5", "1/20", "100", "1/3", "1/10000000")] == [
        "0",
        "1",
        "0.8",
        "0.05",
        "100",
        "about 0.3333 (1/3)",
        "about 1e-07 (1/10000000)",
    ]


# Words


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command, capsys):
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "--home DIR" in text
    assert "--json" in text
    assert "exit codes: 0 done" in text


def test_no_command_is_a_usage_error(capsys):
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 2


def test_a_reader_that_has_read_enough_is_no_error(tmp_path):
    reading, writing = os.pipe()
    os.close(reading)
    home = str(tmp_path / "home")
    program = f"import sys; from party.commands.main import main; sys.exit(main(['init', '--home', {home!r}]))"
    with os.fdopen(writing, "wb") as nobody:
        done = subprocess.run([sys.executable, "-c", program], stdout=nobody, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


# Drafting


def test_a_table_without_a_schema_is_drafted_on_the_spot(home, told):
    (home / "schema.json").unlink()
    lines = [
        f"p{number};{number % 90 + 0.5:.1f};{'ja' if number % 3 else 'nein'}".replace(".", ",") for number in range(300)
    ]
    (home / "patients.csv").write_text("\n".join(["pid;größe;raucht", *lines]), encoding="cp1252")
    out = home / "draft.json"
    code, text, _ = told("draft", "--home", home, "--out", out)
    assert code == 0
    assert text.splitlines() == [
        f"wrote {out} from 300 rows of patients",
        "read with semicolons, decimal commas, Windows-1252",
        "2 columns",
        "2 fields are marked as to be justified from public knowledge: replace every mark by what is known without a "
        "look at any row",
        "left out: pid (its name and its many values are those of an identifier; it may be the person_key)",
    ]
    assert [one["name"] for one in json.loads(out.read_text())["attributes"]] == ["größe", "raucht"]
    assert oct(out.stat().st_mode & 0o777) == "0o600"
    (home / "schema.json").write_bytes(out.read_bytes())
    assert "is to be justified from public knowledge" in told("check", "--home", home)[1]
    filled = re.sub(r'{"to be justified from public knowledge": ([0-9]+)}', r"\1", out.read_text())
    (home / "schema.json").write_text(filled)
    assert told("check", "--home", home)[1].startswith("patients: 300 rows fit\n")


def test_a_draft_is_printed_if_no_file_is_named(home, told):
    code, text, _ = told("draft", "patients", "--home", home)
    assert code == 0
    assert json.loads(text)["title"] == "patients"
    assert told("draft", "others", "--home", home)[0] == 2


def test_the_person_key_is_no_column_of_a_draft(home, told):
    (home / "party.toml").write_text(TOML.replace("epsilon_total", 'person_key = "a"\nepsilon_total'))
    attributes = json.loads(told("draft", "--home", home)[1])["attributes"]
    assert [one["name"] for one in attributes] == ["b", "c", "d", "e"]
