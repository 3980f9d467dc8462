"""The data owner's pages in a real browser: every page and flow, by keyboard too, and what makes pages break."""

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from protocol.tables.schema import Schema
from tests.browser.watching import Watched
from tests.support.fake_curator import FakeCurator
from tests.support.owner import Served, a_table, ask, elsewhere, run_of, served, with_history
from tests.support.party import ROWS, Party, write_keys
from tests.support.small_runs import BITS, MIXED

LONG = "Universitätsklinikum für Innere Medizin und Allgemeine Chirurgie der Stadt am großen Fluß, Haus 12"
ARABIC = "مستشفى الجنوب التعليمي"
PAGES = ("requests", "left", "audit", "peers", "rules", "words", "datasets/patients")


def by_hand(party: Party) -> Party:
    """The same home, restarted, where every run is accepted by hand."""
    text = party.home.settings.read_text().replace('accept = "auto"', 'accept = "ask"')
    party.home.settings.write_text(text)
    return party.killed()


@pytest.fixture
def fake() -> FakeCurator:
    return FakeCurator()


@pytest.fixture
def owner(tmp_path: Path, fake: FakeCurator) -> Iterator[Served]:
    """Two runs are over, one was refused by the rules, one waits; a peer is new, another is revoked."""
    parties = with_history(tmp_path, fake, MIXED)
    run_of(fake, parties, "run-2", MIXED, ROWS, epsilon="1/3")
    me = by_hand(parties[0])
    write_keys(me.home, 0)
    ask(fake, me, "too-dear", MIXED, epsilon="3")
    ask(fake, me, "run-3", MIXED, epsilon="0.8")
    fake.know(LONG, b"\x01" * 32, b"\x02" * 32)
    fake.know(ARABIC, b"\x03" * 32, b"\x04" * 32)
    fake.parties[ARABIC]["revoked"] = True
    with served(me) as found:
        yield found


def sign_in(watched: Watched, owner: Served) -> Any:
    page = watched.open(owner.address())
    page.wait_for_url(f"{owner.url}/")
    return page


@pytest.mark.exhaustive
def test_every_page_is_looked_at(owner: Served, watched: Watched) -> None:
    page = sign_in(watched, owner)
    watched.look("owner-overview")
    for path in PAGES:
        page.goto(f"{owner.url}/{path}")
        assert page.get_by_role("heading", level=1).count() == 1
        watched.look(f"owner-{path.replace('/', '-')}")
    for run in ("too-dear", "run-1"):
        page.goto(f"{owner.url}/requests")
        page.get_by_role("link", name=run, exact=True).click()
        page.get_by_role("heading", name=run).wait_for()
        watched.check_access(run)
    watched.look("owner-request-over")


@pytest.mark.exhaustive
def test_a_schema_is_edited_checked_compared_and_downloaded(owner: Served, watched: Watched) -> None:
    page = sign_in(watched, owner)
    page.get_by_role("link", name="Schema").click()
    page.get_by_role("heading", name="Schemas").wait_for()
    watched.look("owner-schema")
    edited = json.loads(page.get_by_label("The schema (JSON)").input_value())
    edited["attributes"][0]["description"] = f"{LONG} {ARABIC}"
    edited["attributes"].append({"name": "cost_of_stay", "kind": "real", "min": 0, "max": 500_000, "bins": 20})
    page.get_by_label("The schema (JSON)").fill(json.dumps(edited))
    page.get_by_role("button", name="Check and compare").click()
    page.get_by_role("heading", name="Beside the schema of").wait_for()
    assert "amounts of money crowd" in page.get_by_role("status").last.inner_text()
    watched.look("owner-schema-compared")
    with page.expect_download() as downloading:
        page.get_by_role("button", name="Download").click()
    assert "cost_of_stay" in Path(downloading.value.path()).read_text("utf-8")
    bad = [{"name": "x" * 120, "kind": "integer", "min": 3, "max": 1, "step": -1}, {"name": "y", "kind": "date"}]
    page.get_by_label("The schema (JSON)").fill(json.dumps({"attributes": bad}))
    watched.expect_error("status of 422")
    page.get_by_role("button", name="Check and compare").click()
    page.get_by_text("5 to correct:").wait_for()
    watched.look("owner-schema-problems")


def test_a_request_is_read_and_accepted_by_keyboard_alone(owner: Served, watched: Watched, fake: FakeCurator) -> None:
    page = sign_in(watched, owner)
    page.get_by_role("link", name="Read and decide").focus()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/requests/[0-9a-f]{64}$"))
    assert "asks for up to" in page.get_by_label("The request").inner_text()
    watched.look("owner-request")
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent").startswith("Accept: spend ε 0.8 of the "):
            break
    page.keyboard.press("Enter")
    page.get_by_text("accepted, about to join").first.wait_for()
    party = owner.party
    assert party is not None
    assert party.opened.known("run-3").state == "accepted"
    # The page moves by itself: the party joins while one looks.
    elsewhere(party.turns)
    page.get_by_text("under way").first.wait_for(timeout=10_000)
    page.locator("#steps").get_by_text("answered", exact=True).first.wait_for()
    watched.check_access("a request under way")


def test_a_request_is_refused_with_a_reason(owner: Served, watched: Watched, fake: FakeCurator) -> None:
    page = sign_in(watched, owner)
    page.get_by_role("link", name="Read and decide").click()
    page.get_by_label("Reason (sent to the curator and its operator)").fill("nicht vor Januar — <b>später</b>")
    page.get_by_role("button", name="Refuse").click()
    page.get_by_text("refused, not sent to the curator yet").first.wait_for()
    assert owner.party is not None
    elsewhere(owner.party.turns)
    assert fake.runs["run-3"].reason == "nicht vor Januar — <b>später</b>"
    page.goto(f"{owner.url}/")
    page.get_by_text("No open requests.").wait_for()


@pytest.mark.exhaustive
def test_the_log_is_searched(owner: Served, watched: Watched) -> None:
    page = sign_in(watched, owner)
    page.get_by_role("link", name="Audit log").click()
    page.get_by_label("Entries that contain").fill("too-dear")
    page.keyboard.press("Enter")
    page.get_by_text(re.compile(r"\d of \d+ entries contain")).wait_for()
    assert page.locator("tbody tr").count() == page.locator("tbody tr", has_text="too-dear").count() >= 2
    watched.check_access("the log, searched")


@pytest.mark.exhaustive
def test_the_published_table_is_compared_here(owner: Served, watched: Watched, fake: FakeCurator) -> None:
    page = sign_in(watched, owner)
    page.get_by_role("link", name="run-1", exact=True).click()
    page.get_by_role("link", name="Compare", exact=True).click()
    page.get_by_label("Column to predict").select_option("ill")
    page.get_by_role("button", name="Compare").click()
    page.get_by_text("How far apart").wait_for()
    page.get_by_text("Predicting “ill”").wait_for()
    watched.look("owner-comparison")
    assert [one for one in fake.requests if "table" in one] == ["GET /v1/runs/run-1/table.csv"]


@pytest.mark.exhaustive
def test_signing_out_and_used_addresses(owner: Served, watch: Callable[..., Watched]) -> None:
    first = watch()
    address = owner.address()
    page = first.open(address)
    page.wait_for_url(f"{owner.url}/")
    second = watch()
    second.expect_error("status of 401")
    other = second.open(address)
    other.get_by_text("This address was used before").wait_for()
    second.look("owner-sign-in")
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("heading", name="Sign in").wait_for()
    first.expect_error("status of 401")
    page.goto(f"{owner.url}/audit")
    page.get_by_role("heading", name="Sign in").wait_for()


@pytest.mark.exhaustive
def test_a_curator_that_is_away_and_rules_that_changed_are_said(
    owner: Served, watched: Watched, fake: FakeCurator
) -> None:
    from fastapi import Response

    fake.before.append(lambda _request: Response(status_code=503))
    owner.trouble = "http://curator.example does not answer (ConnectError: nobody is there)"
    assert owner.party is not None
    settings = owner.party.home.settings
    settings.write_text(settings.read_text().replace('epsilon_per_run = "2"', 'epsilon_per_run = "1/2"'))
    page = sign_in(watched, owner)
    page.get_by_text("Your service cannot continue at the moment").wait_for()
    page.get_by_text("restart the service to put the file's rules in force").wait_for()
    page.get_by_role("link", name="Peers").click()
    page.get_by_text("Listed are the parties whose fingerprints you have noted").wait_for()
    watched.look("owner-away")


@pytest.mark.exhaustive
def test_two_hundred_columns_long_names_and_other_scripts(tmp_path: Path, watched: Watched, fake: FakeCurator) -> None:
    names = [f"{ARABIC} {i}" if i % 3 == 0 else f"{LONG} {i}" if i % 3 == 1 else f"é{i}" for i in range(200)]
    values = ["ja, regelmäßig und seit langem", "لا", "no"]
    schema = Schema.parse(
        {
            "title": f"{LONG} / {ARABIC}",
            "attributes": [{"name": name, "kind": "categorical", "values": values} for name in names],
        }
    )
    party = by_hand(with_history(tmp_path, fake)[0])
    text = party.home.settings.read_text()
    table = '\n[datasets."patients"]\nsource = "patients.csv"'
    assert table.replace('"patients"', "patients") in text
    wide = f'\n[datasets."{ARABIC}"]\nsource = "wide.csv"\nschema = "wide.json"\nepsilon_total = "7/3"\n'
    party.home.settings.write_text(text + wide)
    (party.home.path / "wide.json").write_text(schema.to_json())
    (party.home.path / "wide.csv").write_bytes(a_table(schema, ROWS[0]))
    party = party.killed()
    ask(fake, party, "run-" + "x" * 96, schema, noise="local", epsilon="2/3")
    with served(party) as owner:
        page = sign_in(watched, owner)
        watched.look("owner-hard-overview")
        page.get_by_role("link", name="Read and decide").click()
        page.get_by_text("200 columns").first.wait_for()
        page.locator("summary", has_text="200 columns of “").click()
        watched.look("owner-hard-request")


@pytest.mark.exhaustive
def test_pages_are_quick_with_five_hundred_runs(tmp_path: Path, fake: FakeCurator, watched: Watched) -> None:
    party = with_history(tmp_path, fake)[0]
    for number in range(500):
        request = party.opened.known("run-1")
        party.ledger.ask(
            f"old-{number}",
            plan_hash=f"{number:064x}",
            dataset="patients",
            plan=request.plan,
            schema_text=request.schema_text,
            price=request.price,
            verdict="refuse",
            reasons=["it costs too much"],
        )
        party.ledger.decline(f"old-{number}", "joining", request_digest="0" * 64, reply=b"no", reason="too dear")
    with served(party) as owner:
        page = sign_in(watched, owner)
        for path in ("", *PAGES):
            page.goto(f"{owner.url}/{path}")  # once, so that templates are read
            taken = []
            for _ in range(3):
                started = time.process_time()
                page.goto(f"{owner.url}/{path}")
                taken.append(time.process_time() - started)
            # Processor time of server and test together: what a quiet machine would take.
            assert min(taken) < 0.3, (path, taken)


def test_the_tables_of_other_schemas_show_what_differs(tmp_path: Path, fake: FakeCurator, watched: Watched) -> None:
    party = by_hand(with_history(tmp_path, fake, MIXED)[0])
    ask(fake, party, "other", BITS)
    with served(party) as owner:
        page = sign_in(watched, owner)
        page.goto(f"{owner.url}/requests")
        page.get_by_role("link", name="other", exact=True).click()
        page.get_by_text("None of your data sets has").first.wait_for()
        watched.check_access("another schema")
