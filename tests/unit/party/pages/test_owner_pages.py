"""The data owner's pages: who may see them, what they accept, and that their numbers are the ledger's."""

import asyncio
import html
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import pytest

from party.app import make_app
from party.commands.main import main
from party.comparison import comparison
from party.operations.health import Health
from party.pages.guard import HEADERS
from party.pages.routes import SessionGuards
from party.pages.sessions import Door
from party.views import amount
from protocol.plan.promises import owners_conditions as conditions
from tests.support.fake_curator import FakeCurator
from tests.support.owner import TOKEN, a_table, ask, with_history
from tests.support.party import Party, write_keys
from tests.support.small_runs import BITS

PAGES = ("/", "/requests", "/left", "/audit", "/peers", "/schema", "/rules", "/words", "/datasets/patients")


class Visitor:
    """One browser, as it were: cookies, and the token of the forms that it has seen."""

    def __init__(self, party: Party, is_connected: bool = True, trouble: str | None = None) -> None:
        line = party.line(tries=1) if is_connected else None
        self.party = party
        self.app = make_app(party.opened, TOKEN, Health(party.opened, lambda: trouble), line, Door())
        self.cookies: dict[str, str] = {}

    def send(self, method: str, path: str, **more: Any) -> httpx.Response:
        async def once() -> httpx.Response:
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8470") as client:
                client.cookies.update(self.cookies)
                answer = await client.request(method, path, **more)
                self.cookies = dict(client.cookies)
                return answer

        return asyncio.run(once())

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.send("GET", path, **more)

    def sign_in(self) -> "Visitor":
        path = self.send("POST", "/v1/sign-in", headers={"Authorization": f"Bearer {TOKEN}"}).json()["path"]
        assert self.get(path).status_code == 200
        return self

    def post(self, path: str, data: dict[str, str] | None = None, **more: Any) -> httpx.Response:
        """A form of these pages, sent."""
        token = re.search(r'name="form_token" value="(\w+)"', self.get("/").text)
        assert token is not None
        return self.send("POST", path, data={"form_token": token[1]} | (data or {}), **more)


@pytest.fixture
def fake() -> FakeCurator:
    return FakeCurator()


@pytest.fixture
def party(tmp_path: Path, fake: FakeCurator) -> Iterator[Party]:
    """One run is over, for 4/5; another, for 1/3, waits for the data owner."""
    first = with_history(tmp_path, fake)[0]
    text = first.home.settings.read_text().replace('accept = "auto"', 'accept = "ask"')
    first.home.settings.write_text(text)
    found = first.killed()
    write_keys(found.home, 0)
    ask(fake, found, "run-2", epsilon="1/3")
    yield found
    found.opened.ledger.close()


@pytest.fixture
def visitor(party: Party) -> Visitor:
    return Visitor(party).sign_in()


def plan(party: Party, run: str) -> str:
    return party.opened.known(run).plan_hash


def words(answer: httpx.Response) -> str:
    """What a reader sees of a page, in one line."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", answer.text)).split())


# Who may see them


def test_nothing_is_shown_to_who_has_not_signed_in(party: Party) -> None:
    stranger = Visitor(party)
    own = f"/requests/{plan(party, 'run-1')}"
    for path in (*PAGES, own, f"{own}/steps", f"{own}/comparison"):
        answer = stranger.get(path)
        assert answer.status_code == 401, path
        assert "subn-party page" in answer.text
        assert not any(word in answer.text for word in ("party-1", "patients", "run-1", "curator.example"))


def test_a_made_up_cookie_opens_nothing(party: Party) -> None:
    stranger = Visitor(party)
    stranger.cookies = {SessionGuards(party.opened, Door()).cookie: "0" * 64}
    assert stranger.get("/").status_code == 401


def test_a_sign_in_address_needs_the_token_and_serves_once(party: Party) -> None:
    visitor = Visitor(party)
    assert visitor.send("POST", "/v1/sign-in").status_code == 401
    path = visitor.send("POST", "/v1/sign-in", headers={"Authorization": f"Bearer {TOKEN}"}).json()["path"]
    assert visitor.get(path).status_code == 200
    assert visitor.get("/").status_code == 200
    other = Visitor(party)
    other.app = visitor.app
    again = other.get(path)
    assert again.status_code == 401
    assert "used before" in again.text
    assert other.get("/").status_code == 401


def test_the_cookie_is_out_of_reach_for_scripts_and_other_sites(party: Party) -> None:
    visitor = Visitor(party)
    path = visitor.send("POST", "/v1/sign-in", headers={"Authorization": f"Bearer {TOKEN}"}).json()["path"]
    cookie = visitor.get(path).headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "Domain" not in cookie
    assert path.rpartition("=")[2] not in cookie


def test_signing_in_is_audited_and_signing_out_ends_it(party: Party, visitor: Visitor) -> None:
    assert party.audited()[-1]["event"] == "signed in"
    assert set(party.audited()[-1]) == {"seq", "at", "event", "previous"}
    kept = dict(visitor.cookies)
    assert visitor.post("/sign-out").status_code == 200
    visitor.cookies = kept
    assert visitor.get("/").status_code == 401


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8470", "127.0.0.1.evil.example", "", "10.0.0.1:8470"])
@pytest.mark.parametrize("path", ["/", "/sign-in?ticket=x", "/static/style.css", "/v1/requests"])
def test_under_another_name_nothing_answers(visitor: Visitor, host: str, path: str) -> None:
    answer = visitor.get(path, headers={"Host": host, "Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 421
    assert "127.0.0.1" in answer.text


@pytest.mark.parametrize("host", ["localhost:8470", "[::1]:8470", "127.0.0.1"])
def test_this_machine_has_several_names(visitor: Visitor, host: str) -> None:
    assert visitor.get("/rules", headers={"Host": host}).status_code == 200


def test_whether_the_process_lives_is_answered_under_every_name(visitor: Visitor) -> None:
    answer = visitor.get("/healthz", headers={"Host": "party.internal"})
    assert (answer.status_code, answer.json()) == (200, {"status": "alive"})


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8470", "127.0.0.1.evil.example:8470", "7f000001", ""])
def test_a_name_that_leads_here_does_not_read_what_is_wrong(visitor: Visitor, host: str) -> None:
    answer = visitor.get("/readyz", headers={"Host": host})
    assert answer.status_code == 421
    assert "ready" not in answer.text


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8470", "localhost", "[::1]:8470", "10.0.0.1:8470", "[fd00::1]", "172.17.0.2"]
)
def test_health_checks_of_a_container_are_answered(visitor: Visitor, host: str) -> None:
    assert visitor.get("/readyz", headers={"Host": host}).json()["status"] in ("ready", "not ready")


def test_a_health_check_may_ask_for_a_name_in_the_settings(visitor: Visitor) -> None:
    opened = visitor.party.opened
    local = opened.settings.local.model_copy(update={"names": ("party.internal",)})
    named = replace(opened, settings=opened.settings.model_copy(update={"local": local}))
    visitor.app = make_app(named, TOKEN, Health(named, lambda: None))
    assert "status" in visitor.get("/readyz", headers={"Host": "party.internal:8470"}).json()


def test_every_answer_has_a_strict_policy(visitor: Visitor) -> None:
    for path in (*PAGES, "/sign-in", "/static/style.css", "/nothing"):
        answer = visitor.get(path)
        for name, value in HEADERS.items():
            assert answer.headers[name] == value, (path, name)
    policy = HEADERS["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert not any(word in policy for word in ("unsafe", "*", "data:", "http"))


def test_no_page_holds_what_the_policy_forbids(party: Party, visitor: Visitor) -> None:
    """Inline scripts, styles and handlers would not run; what stands outside would not load."""
    for path in (*PAGES, f"/requests/{plan(party, 'run-1')}", f"/requests/{plan(party, 'run-1')}/comparison"):
        text = visitor.get(path).text
        assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", text), path
        assert not re.search(r'(?:src|href|action)="(?!/|#)', text), path
        assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", text)), path


# What they accept


@pytest.mark.parametrize(
    "wrong",
    [
        {"data": {}},
        {"data": {"form_token": "0" * 64}},
        {"data": {"form_token": "é"}},
        {"json": {"form_token": "x"}},
    ],
)
@pytest.mark.parametrize("action", ["accept", "refuse", "comparison"])
def test_a_form_of_somebody_else_does_nothing(party: Party, visitor: Visitor, action: str, wrong: Any) -> None:
    answer = visitor.send("POST", f"/requests/{plan(party, 'run-2')}/{action}", **wrong)
    assert answer.status_code == 401
    assert party.opened.known("run-2").state == "asked"


@pytest.mark.parametrize("origin", ["http://evil.example", "http://127.0.0.1:9999", "null"])
def test_a_form_from_another_origin_does_nothing(party: Party, visitor: Visitor, origin: str) -> None:
    answer = visitor.post(f"/requests/{plan(party, 'run-2')}/accept", headers={"Origin": origin})
    assert answer.status_code == 403
    assert party.opened.known("run-2").state == "asked"


def test_looking_decides_nothing(party: Party, visitor: Visitor) -> None:
    for action in ("accept", "refuse"):
        assert visitor.get(f"/requests/{plan(party, 'run-2')}/{action}").status_code in (404, 405)
    assert party.opened.known("run-2").state == "asked"


def test_accepting_on_the_page(party: Party, visitor: Visitor, fake: FakeCurator) -> None:
    path = f"/requests/{plan(party, 'run-2')}"
    answer = visitor.post(f"{path}/accept", headers={"Origin": "http://127.0.0.1:8470"})
    assert (answer.status_code, answer.headers["location"]) == (303, path)
    assert "accepted, about to join" in words(visitor.get(path))
    party.turns()
    assert "under way" in words(visitor.get(path))
    assert [entry["by"] for entry in party.audited() if entry["event"] == "decided"] == ["page"]
    late = visitor.post(f"{path}/refuse")
    assert late.status_code == 409
    assert "is active already" in late.text


def test_refusing_with_a_reason(party: Party, visitor: Visitor, fake: FakeCurator) -> None:
    path = f"/requests/{plan(party, 'run-2')}"
    visitor.post(f"{path}/refuse", {"reason": "<b>not\r\nthis   year</b>"})
    party.turns()
    assert fake.runs["run-2"].reason == "<b>not this year</b>"
    assert "&lt;b&gt;not this year&lt;/b&gt;" in visitor.get(path).text
    assert "<b>not" not in visitor.get(path).text


def test_unknown_pages(visitor: Visitor) -> None:
    for path in ("/requests/" + "0" * 64, "/requests/run-1", "/datasets/nothing"):
        assert visitor.get(path).status_code == 404


# What they show


def test_numbers_on_the_pages_in_json_on_the_command_line_and_in_the_ledger_are_the_same(
    party: Party, visitor: Visitor, capsys: pytest.CaptureFixture[str]
) -> None:
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    assert main(["requests", "--all", "--json", "--home", str(party.home.path)]) == 0
    on_the_line = {one["run"]: one for one in json.loads(capsys.readouterr().out)}
    for run in ("run-1", "run-2"):
        facts = visitor.get(f"/v1/requests/{run}", headers=bearer).json()
        listed = {one["run"]: one for one in visitor.get("/v1/requests", headers=bearer).json()}[run]
        assert on_the_line[run] == listed
        assert {name: value for name, value in listed.items() if name != "steps"} == {
            name: value for name, value in facts.items() if name != "steps"
        }
        assert Fraction(facts["price"]) == party.opened.known(run).price
        assert Fraction(facts["spent"]) == sum(entry.charge for entry in party.ledger.entries(run=run))
        page = words(visitor.get(f"/requests/{plan(party, run)}"))
        odds = facts["odds"]
        shown = [facts["plan"], f"× {odds['run']}", f"× {odds['all']}", *conditions(facts["insiders"])]
        shown += [amount(facts[name]).partition(" (")[0] for name in ("price", "spent")]
        for step in facts["steps"]:
            shown += [step["step"], f"{step['cells']:,}", f"{step['tables']:,}", f"{step['bytes']:,}"]
            shown.append(f"({Fraction(step['price'])})" if Fraction(step["price"]).denominator > 1 else step["price"])
        for entry in party.ledger.entries(run=run):
            shown += [entry.reply_digest, f"{entry.reply_bytes:,}", entry.mechanism]
        assert not [text for text in shown if text not in page]


def test_the_request_in_plain_words(party: Party, visitor: Visitor, capsys: pytest.CaptureFixture[str]) -> None:
    page = words(visitor.get("/"))
    assert main(["requests", "run-2", "--home", str(party.home.path)]) == 0
    on_the_line = capsys.readouterr().out
    cells = sum(
        step["cells"]
        for step in visitor.get("/v1/requests/run-2", headers={"Authorization": f"Bearer {TOKEN}"}).json()["steps"]
    )
    headline = (
        f"The curator at https://curator.example asks for up to {cells:,} noisy counts and 2 private choices about "
        "5 columns of “patients”. It would cost about ε 0.3333 (1/3) of the ε 3.2 left."
    )
    promise = (
        "With what leaves your table in this run, the odds of any statement about one person in it change by at most "
        "a factor 1.40, compared with that person's row holding any other values."
    )
    assert headline in page
    assert promise in page
    assert promise in on_the_line
    for condition in conditions(1):
        assert condition in page
        assert condition in on_the_line


def test_budget_what_left_and_audit(party: Party, visitor: Visitor) -> None:
    entries = party.ledger.entries()
    left = words(visitor.get("/left"))
    assert f"{len(entries)} answers" in left
    assert f"({sum(entry.reply_bytes for entry in entries):,} bytes)" in left
    assert all(entry.reply_digest in left for entry in entries)
    budget = words(visitor.get("/datasets/patients"))
    assert "ε 0.8 (4/5) spent" in budget
    assert "ε 3.2 (16/5) left of ε 4" in budget
    assert "by at most a factor 2.23, compared with that person's row holding any other values" in budget
    audit = words(visitor.get("/audit"))
    assert f"The chain is unbroken: {len(party.audited())} entries" in audit
    found = words(visitor.get("/audit?search=run-2"))
    assert (
        f"{sum('run-2' in json.dumps(entry) for entry in party.audited())} of {len(party.audited())} entries" in found
    )


def test_every_event_of_the_log_has_its_words(party: Party, visitor: Visitor) -> None:
    from party.books.audit import EVENTS
    from party.pages.sentences import EVENT_WORDS, event

    assert set(EVENT_WORDS) == set(EVENTS)
    for name, fields in EVENTS.items():
        facts = {
            field: ["a", "b"] if field == "reasons" else "1/3" if field in ("price", "charge") else 1000
            for field in fields
        }
        assert "?" not in event({"event": name, **facts}), name
    assert event({"event": "of a later version"}) == "of a later version"


def test_a_broken_log_is_said(party: Party, visitor: Visitor) -> None:
    lines = party.home.audit.read_bytes().splitlines(keepends=True)
    party.home.audit.write_bytes(b"".join(lines[:1] + lines[2:]))
    page = words(visitor.get("/audit"))
    assert "The log is broken." in page
    assert "line 2" in page


def test_rules_are_the_files_and_a_changed_file_is_noticed(party: Party, visitor: Visitor) -> None:
    page = words(visitor.get("/rules"))
    for sentence in (
        "Every run that breaks no rule needs your decision.",
        "One run may cost a data set at most ε 2.",
        "No run may have a delta.",
        "A run must protect your rows from any 1 other party.",
        "All runs together may ever spend at most ε 4 on “patients”.",
        "In “patients”, a value that the schema does not list is refused.",
    ):
        assert sentence in page
    assert "restart the service" not in words(visitor.get("/"))
    text = party.home.settings.read_text()
    party.home.settings.write_text(text + "\n# a remark\n")
    assert "restart the service" not in words(visitor.get("/"))
    party.home.settings.write_text(text.replace('epsilon_per_run = "2"', 'epsilon_per_run = "3"'))
    assert "restart the service" in words(visitor.get("/"))
    assert "at most ε 2" in words(visitor.get("/rules"))  # what is in force
    party.home.settings.write_text("nonsense")
    assert "restart the service" in words(visitor.get("/"))


def test_peers_and_whose_fingerprints_were_compared(party: Party, fake: FakeCurator) -> None:
    fake.know("stranger", b"\x01" * 32, b"\x02" * 32)
    fake.parties["party-3"]["revoked"] = True
    page = words(Visitor(party).sign_in().get("/peers"))
    assert re.search(r"party-2 [0-9a-f ]{39} compared", page)
    assert re.search(r"stranger [0-9a-f ]{39} not compared", page)
    assert "revoked by the operator" in page
    away = words(Visitor(party, is_connected=False).sign_in().get("/peers"))
    assert "party-2" in away
    assert "stranger" not in away


def test_a_curator_that_is_away_is_said_and_the_pages_go_on(party: Party, fake: FakeCurator) -> None:
    visitor = Visitor(party, trouble="nobody answers at https://curator.example").sign_in()
    fake.before.append(lambda _request: httpx_response(503))
    assert "nobody answers at https://curator.example" in words(visitor.get("/"))
    page = words(visitor.get("/peers"))
    assert "says 503" in page
    assert "party-2" in page


def httpx_response(status: int) -> Any:
    from fastapi import Response

    return Response(status_code=status)


# The comparison stays here


def test_the_comparison_asks_for_the_table_and_nothing_of_it_goes_out(
    party: Party, fake: FakeCurator, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    visitor = Visitor(party).sign_in()
    path = f"/requests/{plan(party, 'run-1')}/comparison"
    before, logged = len(fake.requests), len(party.logged)
    audited = len(party.audited())
    first = visitor.post(path, {"target": "e"})
    assert first.headers["location"] == path
    assert fake.requests[before:] == ["GET /v1/runs/run-1/table.csv"]  # as any party may ask, whatever its rows
    assert visitor.post(path, {"target": "d"}).status_code == 303
    assert len(fake.requests) == before + 1  # it is here now: nothing is asked any more
    assert [{k: v for k, v in e.items() if k not in ("seq", "at", "previous")} for e in party.audited()[audited:]] == [
        {"event": "compared", "run": "run-1"}
    ] * 2
    assert party.logged[logged:] == []
    assert not [record for record in caplog.records if record.name.startswith(("party", "protocol"))]
    assert capfd.readouterr() == ("", "")
    found = comparison.kept(party.opened, party.opened.known("run-1"))
    assert found is not None
    page = words(visitor.get(path))
    for number in ("one_way", "two_way", "halves_two_way"):
        assert f"{100 * found[number]:.1f} %" in page
    assert f"{100 * found['classifier']['from_synthetic']:.1f} %" in page
    numbers = re.findall(r"0\.\d{4,}", json.dumps(found))
    assert numbers
    for file in party.home.path.rglob("*"):
        if file.is_file() and file.parent != party.home.comparisons:
            content = file.read_bytes()
            assert not any(number.encode() in content for number in numbers), file
    for file in party.home.comparisons.iterdir():
        assert file.stat().st_mode & 0o777 == 0o600
    assert party.home.comparisons.stat().st_mode & 0o777 == 0o700


def test_two_tables_that_differ_in_every_row_look_alike_from_outside(tmp_path: Path) -> None:
    seen = []
    for number, row in enumerate(("no,no,no,no,no", "yes,no,yes,no,yes")):
        fake = FakeCurator()
        party = with_history(tmp_path / str(number), fake)[0]
        source = party.home.path / "patients.csv"
        source.write_text("a,b,c,d,e\n" + f"{row}\n" * 30)
        before = len(fake.requests)
        Visitor(party).sign_in().post(f"/requests/{plan(party, 'run-1')}/comparison")
        seen.append((fake.requests[before:], [entry["event"] for entry in party.audited()][-2:], party.logged))
    assert seen[0] == seen[1]


def test_a_comparison_that_cannot_be_made_says_why_on_the_page_alone(party: Party, fake: FakeCurator) -> None:
    visitor = Visitor(party).sign_in()
    path = f"/requests/{plan(party, 'run-2')}/comparison"
    assert "only a finished run has results" in words(visitor.post(path))
    path = f"/requests/{plan(party, 'run-1')}/comparison"
    assert "no column" in words(visitor.post(path, {"target": "nothing"}))
    (party.home.path / "patients.csv").write_text("a,b,c,d,e\nno,yes,no,yes,maybe\n")
    answer = visitor.post(path)
    assert answer.status_code == 409
    assert "line 2, column" in words(answer)
    assert "maybe" not in answer.text
    assert "compared" not in [entry["event"] for entry in party.audited()]


def test_a_published_table_of_another_schema_is_refused(party: Party, fake: FakeCurator) -> None:
    fake.tables["run-1"] = a_table(BITS, 10).replace(b"a,b,c,d,e", b"a,b,c,d,f")
    answer = Visitor(party).sign_in().post(f"/requests/{plan(party, 'run-1')}/comparison")
    assert "does not fit the schema" in words(answer)


def test_what_a_library_says_of_an_error_is_not_repeated(party: Party, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_arguments: Any) -> Any:
        raise ValueError("patient Quixote is too old")

    monkeypatch.setattr(comparison, "distances", broken)
    answer = Visitor(party).sign_in().post(f"/requests/{plan(party, 'run-1')}/comparison")
    assert "could not be worked out (ValueError)" in words(answer)
    assert "Quixote" not in answer.text


def test_a_run_that_was_started_against_advice_tells_the_data_owner(fake, party, visitor):
    ask(fake, party, "run-3", epsilon="1/9", against=("Epsilon 9 <protects> nobody.",))
    told = words(visitor.get(f"/requests/{plan(party, 'run-3')}"))
    assert "started this run against this advice: Epsilon 9 <protects> nobody." in told
    assert "against this advice" not in words(visitor.get(f"/requests/{plan(party, 'run-2')}"))
