"""`subn plan|run|watch|wait|cancel|get|parties|schemas` against a curator on a real socket."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

from curator.results.publication import PUBLISHED
from curator.subn import main
from protocol.tables.schema import Schema
from tests.support.api import served
from tests.support.curator import Desk
from tests.support.small_runs import BITS


@dataclass
class Shell:
    """What an operator has: the commands, and two files."""

    desk: Desk
    folder: Path
    capsys: pytest.CaptureFixture[str]

    def run(self, *arguments: str, code: int = 0) -> str:
        self.capsys.readouterr()
        assert main(list(arguments)) == code, self.capsys.readouterr().err
        said = self.capsys.readouterr()
        return said.out if code in (0, 1, 3, 4) and said.out else said.err

    def json(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self.run(*arguments, "--json", code=code))

    @property
    def schema(self) -> str:
        path = self.folder / "schema.json"
        path.write_text(BITS.to_json(), encoding="utf-8")
        return str(path)

    def start(self, *wishes: str) -> str:
        options = ("--schema", self.schema, "--epsilon", "1", "--noise", "distributed", "--anyway")
        return str(self.json("run", *options, *wishes)["run"])


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Desk, str, str]]:
    desk = Desk(tmp_path_factory.mktemp("curator"))
    with served(desk) as (url, key):
        yield desk, url, key


@pytest.fixture
def shell(
    home: tuple[Desk, str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    desk, url, key = home
    (tmp_path / "key").write_text(key + "\n", encoding="utf-8")
    monkeypatch.setenv("SUBN_URL", url)
    monkeypatch.setenv("SUBN_KEY_FILE", str(tmp_path / "key"))
    desk.clock.advance(1)
    return Shell(desk, tmp_path, capsys)


def test_a_plan_is_priced_in_words_and_in_json(shell: Shell) -> None:
    options = ("--schema", shell.schema, "--epsilon", "4/5", "--split", "0.2,0.2,0.2,0.2", "--theta", "1/2")
    plan = shell.json("plan", *options, "--noise", "local", "--degree", "0", "--anyway")
    assert plan["price"] == {"party-1": "4/5", "party-2": "4/5", "party-3": "4/5"}
    assert plan["plan"]["split"] == ["1/5"] * 4
    assert (plan["plan"]["theta"], plan["plan"]["noise"], plan["plan"]["degree"]) == ("1/2", "local", 0)
    words = shell.run("plan", *options, code=3)
    assert "party-3 pays 4/5" in words
    assert "nothing has been spent" in words
    by_hash = shell.json(
        "plan", "--schema", BITS.hash, "--epsilon", "1", "--party", "party-1", "--party", "party-3", "--anyway"
    )
    assert list(by_hash["price"]) == ["party-1", "party-3"]


def test_a_plan_that_advice_stops_is_shown_but_starts_only_anyway(shell: Shell) -> None:
    options = ("--schema", shell.schema, "--epsilon", "30")
    words = shell.run("plan", *options, code=3)
    assert "stop: Epsilon 30" in words
    assert "starts only with --anyway" in words
    assert {one["severity"] for one in shell.json("plan", *options, "--anyway")["advice"]} >= {"stop"}
    runs = len(shell.desk.views.runs(100))
    assert "--anyway" in shell.run("run", *options, code=2)
    assert len(shell.desk.views.runs(100)) == runs
    assert shell.json("run", *options, "--anyway")["state"]


def test_a_run_is_started_followed_fetched_and_verified(shell: Shell) -> None:
    said = shell.run("run", "--schema", shell.schema, "--epsilon", "1", "--step-seconds", "9", "--anyway")
    run = said.splitlines()[0]
    assert said.splitlines()[1] == f"follow it with: subn watch {run}"
    Timer(0.2, shell.desk.answer_all).start()
    watched = shell.run("watch", run)
    assert "joining       ████████████████████ 3/3   party-1 ✓  party-2 ✓  party-3 ✓" in watched
    assert watched.splitlines()[-1] == f"run {run}: finished"
    assert shell.run("wait", run) == f"run {run}: finished\n"
    events = [json.loads(line) for line in shell.run("watch", run, "--json").splitlines()]
    assert [events[0]["kind"], events[-2]["kind"], events[-1]["state"]] == ["created", "ended", "finished"]
    out = shell.folder / "result"
    names = {*PUBLISHED, "manifest.json"}
    assert {*shell.run("get", run, "--out", str(out)).splitlines()} == {str(out / name) for name in names}
    drawn = shell.json("get", run, "--out", str(shell.folder / "new"), "--rows", "7")
    assert drawn == {"files": [str(shell.folder / "new" / "table.csv")]}
    assert len((shell.folder / "new" / "table.csv").read_text().splitlines()) == 8
    shell.run("get", run, "--out", str(out), "--rows", "5", "--file", "table.parquet", "--file", "report.json")
    assert (out / "table.parquet").read_bytes()[:4] == b"PAR1"
    found = shell.json("verify", str(out / "manifest.json"), "--curator-key", shell.desk.keys.signing.public.hex())
    assert found["files"] == sorted(PUBLISHED)
    assert found["spent"] == {"party-1": "1", "party-2": "1", "party-3": "1"}


def test_copies_are_drawn_anew_and_come_with_their_rule(shell: Shell) -> None:
    run = shell.start()
    shell.desk.answer_all()
    shell.run("wait", run)
    out = shell.folder / "copies"
    said = shell.run("get", run, "--out", str(out), "--copies", "3")
    tables = [(out / f"copy-{number}.csv").read_text() for number in (1, 2, 3)]
    assert said.splitlines()[:3] == [str(out / f"copy-{number}.csv") for number in (1, 2, 3)]
    assert len(set(tables)) == 3
    assert {len(table.splitlines()) for table in tables} == {61}
    for part in ("cost no privacy", "T = (n'/n + 1/m)", "n = 60 real rows, n' = 60", "Condition:"):
        assert part in said
    found = shell.json("get", run, "--out", str(out), "--copies", "1", "--rows", "5")
    assert (found["rows"], len((out / "copy-1.csv").read_text().splitlines())) == (5, 6)
    assert "cannot be combined with --file" in shell.run("get", run, "--copies", "2", "--file", "table.csv", code=2)
    assert "takes 1 to" in shell.run("get", run, "--copies", "0", code=2)


def test_the_same_idempotency_key_starts_one_run(shell: Shell) -> None:
    assert shell.start("--idempotency-key", "mine") == shell.start("--idempotency-key", "mine")
    assert shell.start() != shell.start()
    text = shell.run("run", "--schema", shell.schema, "--epsilon", "2", "--idempotency-key", "mine", code=2)
    assert "use a new key" in text


def test_cancelled_refused_failed_and_late_runs_have_their_exit_codes(shell: Shell) -> None:
    cancelled = shell.start()
    assert shell.json("cancel", cancelled, "--reason", "a typing error")["state"] == "cancelled"
    assert "cancelled at joining: a typing error (operator)" in shell.run("wait", cancelled, code=3)
    assert "cancelled" in shell.run("watch", cancelled, code=3)
    assert "is over" in shell.run("cancel", cancelled, code=2)

    desk, refused = shell.desk, shell.start()
    party = desk.parties[1]
    task = desk.orchestrator.inbox(party.name, tuple(active(shell, but=refused)))
    assert task is not None
    desk.deliver(party, party.refuse(*task, "not with us"))
    assert "refused at joining: not with us (party-2)" in shell.run("wait", refused, code=3)

    late = shell.start("--join-seconds", "5")
    assert f"run {late} is still joining after 0 s" in shell.run("wait", late, "--timeout", "0", code=4)
    desk.clock.advance(5)
    desk.orchestrator.tick()
    assert shell.json("wait", late, "--timeout", "60", code=4)["state"] == "timed_out"


def test_runs_are_listed_in_words_and_in_json(tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    run = shell.start()
    shell.run("cancel", run, code=0)
    listed = shell.run("runs").splitlines()
    assert len(listed) == len(shell.json("runs"))
    (line,) = [line for line in listed if line.startswith(run)]
    assert line.endswith("guided, epsilon 1, 3 parties: cancelled")
    with served(Desk(tmp_path / "empty")) as (url, key):
        monkeypatch.setenv("SUBN_URL", url)
        (tmp_path / "key").write_text(key, encoding="utf-8")
        assert shell.run("runs") == "no run yet: subn run\n"


def test_waiting_lasts_until_the_run_ends(shell: Shell) -> None:
    run = shell.start()
    Timer(0.3, shell.desk.orchestrator.cancel, (run, "enough")).start()
    assert "cancelled at joining: enough" in shell.run("wait", run, code=3)


def test_a_revoked_party_is_shown_as_such(tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(Desk(tmp_path / "other")) as (url, key):
        monkeypatch.setenv("SUBN_URL", url)
        (tmp_path / "key").write_text(key, encoding="utf-8")
        assert shell.run("parties", "revoke", "party-2") == "party-2 is revoked\n"
        assert "party-2 (revoked): " in shell.run("parties", "list")


def active(shell: Shell, but: str) -> list[str]:
    return [run.run for run in shell.desk.views.runs(100) if run.run != but]


def test_a_failed_run_exits_with_1(shell: Shell) -> None:
    run = shell.start("--party", "party-1", "--party", "party-2")
    party = shell.desk.parties[0]
    task = shell.desk.orchestrator.inbox(party.name, tuple(active(shell, but=run)))
    assert task is not None
    sent = party.handle(*task)
    shell.desk.deliver(party, sent)
    other = shell.desk.parties[1]
    task = shell.desk.orchestrator.inbox(other.name, tuple(active(shell, but=run)))
    assert task is not None
    shell.desk.deliver(other, other.handle(*task))
    task = shell.desk.orchestrator.inbox(party.name, tuple(active(shell, but=run)))
    assert task is not None
    shell.desk.deliver(party, party.refuse(*task, "the ledger is full"))
    assert "failed at levels: the ledger is full (party-1)" in shell.run("wait", run, code=1)


def test_parties_and_codes_in_words_and_in_json(shell: Shell) -> None:
    listed = shell.run("parties", "list")
    assert "party-1: " in listed
    assert "rows 30 rows" in listed
    assert [party["name"] for party in shell.json("parties", "list")][:3] == ["party-1", "party-2", "party-3"]
    code = shell.json("parties", "code", "north")
    assert code["name"] == "north"
    assert "valid once, for north" in shell.run("parties", "code", "north")
    assert "no party called 'nobody'" in shell.run("parties", "revoke", "nobody", code=2)


def test_a_code_for_a_name_that_can_be_taken_for_another_says_so(shell: Shell) -> None:
    assert shell.json("parties", "code", "north")["alike"] == []
    assert shell.json("parties", "code", "pаrty-l")["alike"] == ["party-1"]  # a Cyrillic letter, and no digit
    assert "careful: this name can be taken for party-1" in shell.run("parties", "code", "Party 1")


def test_schemas_are_added_listed_and_shown(shell: Shell) -> None:
    assert shell.run("schemas", "add", shell.schema).strip() == BITS.hash
    assert BITS.hash in shell.run("schemas", "list")
    assert shell.json("schemas", "list")[0]["hash"] == BITS.hash
    shown = json.loads(shell.run("schemas", "show", BITS.hash))
    assert shown["attributes"][0]["name"] == BITS.names[0]
    (shell.folder / "bad.json").write_text("{", encoding="utf-8")
    assert "JSON" in shell.run("schemas", "add", str(shell.folder / "bad.json"), code=2)


FORMULAS = Schema.parse(
    {
        "title": "signs",
        "attributes": [
            {"name": "=1+1", "kind": "categorical", "values": ["@no", "yes"]},
            {"name": "change", "kind": "integer", "min": -2, "max": 1},
        ],
    }
)


def test_texts_that_spreadsheets_take_for_formulas_are_told_and_can_be_had_as_texts(
    tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk(tmp_path / "signs", schema=FORMULAS)
    with served(desk) as (url, key):
        monkeypatch.setenv("SUBN_URL", url)
        (tmp_path / "key").write_text(key, encoding="utf-8")
        (tmp_path / "signs.json").write_text(FORMULAS.to_json(), encoding="utf-8")
        first, *careful = shell.run("schemas", "add", str(tmp_path / "signs.json")).splitlines()
        assert first == FORMULAS.hash
        assert [line.partition("takes ")[2].partition(" for")[0] for line in careful] == ["'=1+1'", "'@no'"]
        run = desk.run(noise="distributed", epsilon="100", key_bits=2048)
        desk.answer_all()
        shell.run("wait", run)
        out = tmp_path / "out"
        assert "table.spreadsheet.csv" not in shell.run("get", run, "--out", str(out))
        files = shell.json("get", run, "--out", str(out), "--spreadsheet-safe", "--copies", "1")["files"]
        assert files == [str(out / "copy-1.csv"), str(out / "copy-1.spreadsheet.csv")]
        shell.run("get", run, "--out", str(out), "--spreadsheet-safe", "--file", "table.csv")
        published, safe = ((out / name).read_text() for name in ("table.csv", "table.spreadsheet.csv"))
        assert published.splitlines()[0] == "=1+1,change"
        assert safe == published.replace("=1+1", "'=1+1").replace("@no", "'@no")
        assert ",-" in safe  # a number below zero stays one
        assert shell.run("verify", str(out / "manifest.json")).startswith("verified")
        assert "Spreadsheets</strong> take" in desk.orchestrator.folder(run).joinpath("report.html").read_text()


def test_what_is_missing_or_wrong_is_a_usage_error(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "there is no run 'nowhere'" in shell.run("wait", "nowhere", code=2)
    assert "no such file" in shell.run("schemas", "add", "nowhere.json", code=1).lower()
    with pytest.raises(SystemExit):
        main(["get", "x", "--file", "secrets.txt"])
    (shell.folder / "key").write_text("wrong\n", encoding="utf-8")
    assert "operator's key is not valid here" in shell.run("parties", "list", code=2)
    for content in (b"two\nlines\n", b"\xff\xfe", "ä".encode()):
        (shell.folder / "key").write_bytes(content)
        assert "holds no operator key" in shell.run("parties", "list", code=2)
    monkeypatch.delenv("SUBN_KEY_FILE")
    assert "--key-file or SUBN_KEY_FILE" in shell.run("parties", "list", code=2)


@pytest.mark.parametrize("content", [b"", b"-----BEGIN CERTIFICATE-----\nMIIB", b"\xff"])
def test_a_file_that_holds_no_ca_is_named(shell: Shell, content: bytes) -> None:
    path = shell.folder / "cut.pem"
    path.write_bytes(content)
    said = shell.run("runs", "--ca-file", str(path), code=2)
    assert said == f"subn: {path} holds no certificate: the curator's tls/ca.pem is expected\n"


def test_a_curator_that_is_away_is_a_failure(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUBN_URL", "http://127.0.0.1:9")
    assert "no curator answers at http://127.0.0.1:9" in shell.run("parties", "list", code=1)
    assert "no curator answers" in shell.run("wait", "x", "--timeout", "0.1", code=1)
    for url in ("https://curator:port", "curator:8460"):
        monkeypatch.setenv("SUBN_URL", url)
        assert "is not the address of a curator" in shell.run("parties", "list", code=2)
    monkeypatch.setenv("SUBN_URL", "http://curator.example:8460")
    assert "use https://" in shell.run("parties", "list", code=2)


def test_nobody_enrolled_and_no_schema_is_said_with_what_to_do(
    tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = Desk(tmp_path / "empty", rows=())
    with served(empty) as (url, key):
        monkeypatch.setenv("SUBN_URL", url)
        (tmp_path / "key").write_text(key, encoding="utf-8")
        assert "subn parties code NAME" in shell.run("parties", "list")
        assert "subn schemas add FILE" in shell.run("schemas", "list")
