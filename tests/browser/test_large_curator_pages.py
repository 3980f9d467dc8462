"""The operator's pages when there is much to show: 30 parties, 200 attributes, 500 runs, long names in any script.

Real server, store and protocol, in one process; the flows on real processes are in test_curator_pages.py.
"""

import json
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect

from crypto.randomness import Stream
from curator.results.phases import phases
from curator.results.report import Tally, report_html, report_json
from curator.store import run_records
from protocol.network.network import Family
from protocol.plan.presets import make_plan
from protocol.plan.terms import Terms
from protocol.run.agreement import agree
from protocol.stages.knowledge import Knowledge, Released
from protocol.tables.marginal import Table
from protocol.tables.schema import Schema
from tests.browser.watching import Watched
from tests.support.api import served
from tests.support.curator import Desk
from tests.support.small_runs import BITS, identity, members

LONG = "Universitätsklinikum für Allgemein- & Unfall- und Wiederherstellungschirurgie (Standort Süd)"
ARABIC, HEBREW = "مستشفى القدس العام", "בית חולים"
NAMES = (LONG, ARABIC, HEBREW)
PARTIES, ATTRIBUTES, RUNS = 30, 200, 500


def wide_schema() -> Schema:
    """200 attributes, among them long names and other scripts, many categories and few."""
    found = [
        {"name": f"Befund {number}", "kind": "categorical", "values": [f"Wert {k}" for k in range(2 + number % 5)]}
        for number in range(ATTRIBUTES - 3)
    ]
    found += [
        {"name": "Blutdruck, systolisch, im Liegen, nach fünf Minuten Ruhe gemessen", "kind": "integer", "min": 60,
         "max": 259, "bins": 40},
        {"name": "الجنس", "kind": "categorical", "values": ["ذكر", "أنثى"], "missing": ["غير معروف"]},
        {"name": "עיר", "kind": "categorical", "values": ["תל אביב", "חיפה"]},
    ]  # fmt: skip
    return Schema.parse(json.dumps({"title": f"سجل المرضى · {LONG}", "attributes": found}).encode())


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    opened = Desk(tmp_path_factory.mktemp("curator"), schema=BITS, rows=(40,) * 3)
    wide, registry = wide_schema(), opened.orchestrator.registry
    for number in range(3, PARTIES):
        keys = identity(number)
        name = NAMES[number - 3] if number - 3 < len(NAMES) else f"Klinik {number}"
        code, _ = registry.new_code(name, Stream.system())
        registry.enrol(code, name, keys.signing.public, keys.exchange.public)
        registry.offer(name, "rows", BITS, 1000 + number)
    for party in registry.parties():
        registry.offer(party.name, "wide", wide, 250_000)
    yield opened
    opened.store.close()


@pytest.fixture(scope="module")
def server(desk: Desk) -> Iterator[tuple[str, str]]:
    with served(desk) as found:
        yield found


@pytest.fixture
def operator(server: tuple[str, str], watched: Watched) -> Watched:
    url, key = server
    page = watched.open(url)
    page.get_by_label("Operator's key").fill(key)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    return watched


@pytest.mark.exhaustive
def test_thirty_parties_are_listed_and_found(server: tuple[str, str], operator: Watched) -> None:
    page = operator.open(f"{server[0]}/parties")
    rows = page.locator("#found > tr")
    assert rows.count() == PARTIES
    operator.look("large-parties")
    page.get_by_label("Find").fill("القدس")
    expect(rows.filter(visible=True)).to_have_count(1)


def test_a_run_of_thirty_parties_is_one_grid(desk: Desk, server: tuple[str, str], operator: Watched) -> None:
    run = desk.run(key="thirty", noise="local", epsilon="20")
    for party in desk.parties:
        desk.answer_one(party)
    page = operator.open(f"{server[0]}/runs/{run}")
    assert page.locator(".grid tbody tr").count() == PARTIES
    expect(page.get_by_role("status")).to_contain_text("waits for 27 parties")
    expect(page.get_by_role("listitem").filter(has_text="more")).to_contain_text("and 19 more")
    operator.look("large-run")
    desk.orchestrator.cancel(run)
    expect(page.get_by_role("status")).to_contain_text("Cancelled")


@pytest.mark.exhaustive
def test_a_plan_over_two_hundred_attributes_answers(server: tuple[str, str], operator: Watched) -> None:
    wide = wide_schema()
    page = operator.open(f"{server[0]}/plan?schema={wide.hash}&epsilon=2&noise=local")
    stages = page.get_by_role("region", name="Stages").first
    expect(stages).to_contain_text("Every column alone")
    assert page.get_by_role("region", name="Price per party").first.get_by_role("row").count() == PARTIES + 1
    operator.look("large-plan")
    page.get_by_label("Method").select_option("independent")
    expect(stages).to_contain_text("Models", timeout=60_000)


@pytest.mark.exhaustive
def test_the_list_of_five_hundred_runs_is_a_page_of_fifty(
    desk: Desk, server: tuple[str, str], operator: Watched
) -> None:
    template = desk.run(key="template", noise="local", epsilon="20", parties=["party-1", "party-2"])
    desk.orchestrator.cancel(template, "a reason that goes on and on " * 12)
    copy_runs(desk, template, RUNS)
    page = operator.open(f"{server[0]}/runs")
    assert page.locator("tbody tr").count() == 50
    operator.look("large-runs")
    page.get_by_role("link", name="Older runs").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Newest")).to_be_visible()


def copy_runs(desk: Desk, template: str, count: int) -> None:
    """So many more runs in the store, as they would be there."""
    with desk.store.writing() as db:
        row = dict(db.execute(run_records.runs.select().where(run_records.runs.c.id == template)).mappings().one())
        copies = [row | {"id": f"00000000000{n:04}-copy", "idempotency_key": f"copy {n}"} for n in range(count)]
        db.execute(run_records.runs.insert(), copies)


def wide_report() -> str:
    """Of a network over 200 attributes, with noisy tables of its families."""
    schema, data = wide_schema(), np.random.default_rng(5)
    plan = make_plan("wide", schema, members([200_000, 100_000]), Fraction(2), noise="local")
    terms: Terms = agree(plan, schema)
    families = tuple(Family(v, (v // 3,) if v else ()) for v in range(terms.domain.count))
    tables = [
        Table(one.variables, data.integers(0, 9000, terms.domain.shape(one.variables)), 900.0) for one in families
    ]
    released = tuple(Released("parameters", table, plan.total_rows) for table in tables)
    known = Knowledge(np.zeros((len(families), len(families))), families, released=released)
    tally = Tally(schema.sizes)
    tally.add([data.integers(0, size, 1000) for size in schema.sizes])
    by_phase = phases(terms, known, None)
    return report_html(
        report_json(terms, known, [], [], tally.counts, bytes(32), "2026-01-01T00:00:00+00:00", by_phase)
    )


def test_a_report_over_two_hundred_attributes_reads(watched: Watched, tmp_path: Path) -> None:
    text = wide_report()
    assert len(text) < 2_000_000
    (tmp_path / "report.html").write_text(text)
    page = watched.open((tmp_path / "report.html").as_uri())
    assert page.locator(".plots figure").count() == ATTRIBUTES
    watched.photograph("large-report-1280-light")
    watched.check_access("the report over 200 attributes")
    watched.check_width("the report")
    assert re.search("199 pairs are", page.locator("main").text_content() or "")
