"""The analyst's report: its figures by hand, the same in HTML and JSON, and a file that needs nothing else."""

import base64
import json
import math
import re
from dataclasses import replace
from fractions import Fraction
from hashlib import sha256

import numpy as np
import pytest
from markupsafe import escape

from curator.results import report_svg
from curator.results.phases import phases
from curator.results.report import POLICY, Tally, report_html, report_json
from curator.results.report_figures import analysis
from protocol.exact import exact
from protocol.forecast.error import predicted
from protocol.network.network import Family
from protocol.plan.promises import promises
from protocol.plan.rationale import reasons
from protocol.plan.terms import Terms
from protocol.run.synthesis import fitted
from protocol.stages.dependence import rows_below
from protocol.stages.knowledge import Knowledge, LocalModel, Network, Released
from protocol.stages.methods import terms_of as work_out
from protocol.tables.marginal import Table
from protocol.tables.schema import Schema
from tests.support.api import with_api
from tests.support.curator import Desk, OneKey
from tests.support.small_runs import BITS, MIXED, NO_NOISE, pooled, terms_of

BAND = math.log(20) / math.sqrt(2)


def drawn(terms: Terms) -> list:
    return [np.ones(size, dtype=np.int64) for size in terms.schema.sizes]


def known_of(terms: Terms, *tables: Table, families=()) -> Knowledge:
    rows, count = terms.plan.total_rows, terms.domain.count
    released = tuple(Released("parameters", table, rows) for table in tables)
    return Knowledge(np.zeros((count, count)), families or tuple(map(Family, range(count))), released=released)


def report_of(terms: Terms, known: Knowledge) -> dict:
    by_phase = phases(terms, known, fitted(terms, known))
    return report_json(terms, known, [], [], drawn(terms), bytes(32), "2026-01-01T00:00:00+00:00", by_phase)


@pytest.fixture
def bits() -> tuple[Terms, Knowledge]:
    """Attributes a to e, 60 rows; b is a copy of a, and no table has noise of the same width."""
    terms = terms_of(BITS)
    a, ab = np.array([40, 20]), np.array([[40, 0], [0, 20]])
    tables = [Table((0,), a, 4.0), Table((1, 0), ab, 3.0), *(Table((v,), np.array([30, 30]), 9.0) for v in (2, 3, 4))]
    families = (Family(0), Family(1, (0,)), Family(2), Family(3), Family(4))
    return terms, known_of(terms, *tables, families=families)


def test_a_marginal_is_weighed_by_the_noise_of_its_tables(bits):
    found = analysis(*bits, drawn(bits[0]))["marginals"]
    # a: variance 4 from its own table, 2 * 3 = 6 from the pair's: together 1 / (1/4 + 1/6) = 2.4
    assert found[0]["estimate"] == [round(40 / 60, 6), round(20 / 60, 6)]
    assert found[0]["band"] == pytest.approx(BAND * math.sqrt(2.4) / 60, abs=1e-6)
    assert found[0]["model_band"] == pytest.approx(BAND * 2 / 60, abs=1e-6)
    assert found[0]["effective_rows"] == int(1 / (1 / 60 + 4 * 4 / 3600 + 1 / 60))
    assert found[2]["band"] == pytest.approx(BAND * 3 / 60, abs=1e-6)
    assert found[0]["table"] == [0.5, 0.5]


def test_the_error_of_a_pair_follows_from_its_best_table(bits):
    pairs = analysis(*bits, drawn(bits[0]))["pairs"]
    expected = 4 * math.sqrt(2 / math.pi) * math.sqrt(3) / (2 * 60)  # four cells of variance 3
    assert pairs["errors"][0] == [pytest.approx(expected, abs=1e-6)]
    assert pairs["errors"][1:] == [[None] * 2, [None] * 3, [None] * 4]
    assert pairs["modelled"] == [(0, 1)]


def test_the_strength_of_an_edge_is_what_its_ends_share(bits):
    (edge,) = analysis(*bits, drawn(bits[0]))["edges"]
    entropy = -(2 / 3 * math.log2(2 / 3) + 1 / 3 * math.log2(1 / 3))
    cells = (40 * 40 / 60, 40 * 20 / 60, 20 * 40 / 60, 20 * 20 / 60)  # as many rows are expected if they shared nothing
    noise = sum(3 / (2 * rows) for rows in cells) / 4 / (60 * math.log(2))  # a quarter of a cell's noise is free
    assert edge == {"parent": "a", "child": "b", "bits": pytest.approx(entropy - noise, abs=1e-6), "networks": 1}


def test_what_noise_alone_explains_is_mostly_no_strength_of_an_edge(bits):
    terms, _ = bits
    random, families = np.random.default_rng(4), (Family(0), Family(1, (0,)), *map(Family, (2, 3, 4)))
    strengths = []
    for _ in range(60):
        table = Table((1, 0), 15 + random.normal(size=(2, 2)) * 3, 9.0)
        singles = [Table((v,), np.array([30, 30]), 9.0) for v in range(5)]
        (edge,) = analysis(terms, known_of(terms, table, *singles, families=families), drawn(terms))["edges"]
        strengths.append(edge["bits"])
    assert np.median(strengths) == 0


def test_groups_stand_out_of_the_noise_of_the_model_cells(bits):
    guidance = analysis(*bits, drawn(bits[0]))["guidance"]
    # The families' cells have variances 4 (a), 3 (b given a), 9, 9, 9: the median is 9.
    assert guidance["cell_band_rows"] == pytest.approx(BAND * 3, abs=1e-3)
    assert (guidance["visible_group_rows"], guidance["reliable_group_rows"]) == (7, 64)
    assert (guidance["rows"], guidance["synthetic_rows"]) == (60, 60)


def test_parties_that_stand_alone_are_added_up_with_their_noise():
    terms = terms_of(BITS, method="independent", rows=(30, 30))
    tables = tuple(Table((v,), np.array([20, 10]), 2.0) for v in range(5))
    pair = Table((0, 1), np.full((2, 2), 5), 2.0)
    models = (
        LocalModel(Network(tuple(map(Family, range(5)))), tables, 30),
        LocalModel(Network((Family(1), Family(0, (1,)), *map(Family, (2, 3, 4)))), (pair, *tables[2:]), 30),
    )
    found = analysis(terms, Knowledge(np.zeros((5, 5)), models=models), drawn(terms))
    # a: 20 of 30 under variance 2 at one party, 10 of 20 under variance 4 at the other
    assert found["marginals"][0]["estimate"] == [0.5, round(20 / 60, 6)]
    assert found["marginals"][0]["band"] == pytest.approx(BAND * math.sqrt(6) / 60, abs=1e-6)
    assert found["pairs"]["errors"][0] == [None]  # one party knows nothing of the pair
    assert found["pairs"]["modelled"] == []
    assert [edge["networks"] for edge in found["edges"]] == [1]


WAYS = [
    {},
    {"encoding": "binary"},
    {"encoding": "gray"},
    {"encoding": "hierarchical", "update": "joint"},
    {"method": "privbayes", "encoding": "binary"},
    {"method": "privabn", "encoding": "hierarchical"},
    {"method": "jtree"},
    {"method": "jtree", "encoding": "binary"},
    {"method": "dp-ccbn"},
    {"method": "independent"},
    {"privacy": "zcdp", "epsilon": "2000"},
]


@pytest.fixture
def desk(tmp_path, small_secret):
    opened = Desk(tmp_path, schema=MIXED, rows=(400, 250), crypto=OneKey(small_secret))
    yield opened
    opened.store.close()


@pytest.mark.parametrize("wishes", WAYS)
def test_without_noise_the_estimates_are_the_true_shares(desk, wishes):
    run = desk.run(**({"noise": "distributed", "epsilon": str(NO_NOISE)} | wishes))
    desk.finish(run)
    report = json.loads((desk.orchestrator.folder(run) / "report.json").read_text())
    for one, column, size in zip(report["analysis"]["marginals"], pooled(MIXED, desk.codes), MIXED.sizes, strict=True):
        true = np.bincount(column, minlength=size) / 650
        assert len(one["categories"]) == size
        assert sum(one["table"]) == pytest.approx(1, abs=1e-5)
        if one["estimate"] is not None:
            tolerance = 1e-5 if "privacy" not in wishes else one["band"] + 1e-5
            assert one["estimate"] == pytest.approx(list(true), abs=tolerance), one["attribute"]
    measured = [one for one in report["analysis"]["marginals"] if one["estimate"] is not None]
    assert len(measured) == 5 or "encoding" in wishes


def test_the_page_says_what_the_json_says_and_the_manifest_covers_both(desk):
    run = desk.run(noise="distributed", epsilon="3")
    desk.finish(run)
    folder = desk.orchestrator.folder(run)
    report, page = json.loads((folder / "report.json").read_text()), (folder / "report.html").read_text()
    manifest = json.loads((folder / "manifest.json").read_text())["manifest"]
    for name in ("report.json", "report.html"):
        assert manifest["outputs"][name] == sha256((folder / name).read_bytes()).hexdigest()
    assert page == report_html(report)
    found = re.findall(r'<data value="([^"]*)"', page)
    for party, record in zip(report["parties"], manifest["parties"], strict=True):
        assert party["spent"] == record["spent"]
        assert sum(map(exact, party["phases"].values())) == exact(party["spent"])
        assert {party["spent"], *(spent for stage, spent in party["phases"].items() if stage != "joining")} <= set(
            found
        )
    for edge in report["analysis"]["edges"]:
        assert str(edge["bits"]) in found
    assert [vars(one) for one in promises(desk.views.terms(run).plan)] == report["promises"]
    for promise in report["promises"]:
        assert page.index(promise["text"].partition("'")[0]) < page.index(promise["condition"].partition("'")[0])
    assert report["finished"] == manifest["finished"]
    expected = predicted(desk.views.terms(run))
    assert report["predicted"] == json.loads(json.dumps(vars(expected)))
    assert str(escape(expected.why)) in page
    assert report["why"] == list(reasons(desk.views.terms(run)))
    assert all(str(escape(reason)) in page for reason in report["why"])
    assert report["plan_hash"] in page


@pytest.mark.parametrize(("epsilon", "is_advised"), [("25", True), ("9", False)])
def test_a_run_that_was_started_against_advice_says_so_in_manifest_and_report(desk, epsilon, is_advised):
    run = desk.run(noise="distributed", epsilon=epsilon)
    desk.finish(run)
    folder = desk.orchestrator.folder(run)
    report, page = json.loads((folder / "report.json").read_text()), (folder / "report.html").read_text()
    plan = json.loads((folder / "manifest.json").read_text())["manifest"]["plan"]
    assert report["against"] == plan.get("against", [])
    assert any("protects nobody" in sentence for sentence in report["against"]) == is_advised
    assert ("Started against this advice" in page) == bool(report["against"])
    assert all(str(escape(sentence)) in page for sentence in report["against"])


@pytest.mark.parametrize(
    ("rows", "says"), [(0, "Every column was counted alone."), (10**6, "so that pairs were counted")]
)
def test_the_page_says_how_strongly_columns_depend_and_what_followed(bits, rows, says):
    asking = {"views": "pairs", "dependence": Fraction(1, 10), "alone_below": Fraction(1, 10), "insiders": 1}
    terms = terms_of(BITS, (300, 200), 1, method="guided", **asking)
    tables = [Table((v,), np.array([250, 250]), 4.0) for v in range(5)]
    tables += [Table((0, 1), np.array([[125, 125], [125, 125]]), 4.0)] if rows else []
    known = known_of(terms, *tables)
    counted = tuple(replace(one, step="correlations") for one in known.released)
    known = replace(known, released=counted, dependence=rows)
    report = report_of(terms, known)
    page = report_html(report)
    assert report["dependence"] == {"measured": rows, "below": rows_below(terms), "alone": rows == 0}
    assert f"{rows:,} rows on average over all pairs" in page
    assert says in page
    assert "it was asked how strongly" not in report_html({**report, "dependence": None})


def test_the_page_asks_nobody_for_anything(desk):
    run = desk.run(noise="distributed", epsilon="3")
    desk.finish(run)
    page = (desk.orchestrator.folder(run) / "report.html").read_text()
    assert not re.search(r"<script|<link|<img|<iframe| src=| style=| on[a-z]+=|url\(|@import|https?://", page)
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.S)
    assert f"'sha256-{base64.b64encode(sha256(style.encode()).digest()).decode()}'" in POLICY
    assert POLICY.startswith("default-src 'none'")
    assert page.count("<h1>") == 1

    async def story(api):
        answer = await api.operator("GET", f"/v1/runs/{run}/report.html")
        assert answer.text == page
        assert answer.headers["Content-Security-Policy"].startswith(POLICY)
        assert answer.headers["Content-Disposition"].startswith("inline")

    with_api(desk, story)


def test_names_of_others_do_not_become_markup(bits):
    terms, known = bits
    evil = json.loads(terms.schema.to_json())
    evil["title"] = "<script>alert(1)</script>"
    evil["attributes"][0]["name"] = '"><img src=x onerror=alert(1)>'
    evil["attributes"][1]["values"] = ["</title><script>", "&amp;"]
    schema = Schema.parse(json.dumps(evil).encode())
    told = work_out(terms.plan, schema)
    page = report_html(report_of(told, known))
    assert "<script" not in page
    assert "<img" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_errors_fall_into_their_classes():
    errors = (None, 0.0, 0.01, 0.011, 0.5, 0.51, 1.0)
    assert [report_svg.class_of(error) for error in errors] == [
        None,
        0,
        0,
        1,
        5,
        6,
        6,
    ]


def test_the_tally_counts_every_batch():
    tally = Tally((2, 3))
    tally.add([np.array([0, 1, 1]), np.array([2, 2, 0])])
    tally.add([np.array([1]), np.array([1])])
    assert [list(counts) for counts in tally.counts] == [[1, 3], [1, 1, 2]]


def test_a_picture_of_many_attributes_stays_small():
    names = [f"attribute number {number}" for number in range(200)]
    errors = [[0.001 * (row % 700) for _ in range(row)] for row in range(1, 200)]
    picture = report_svg.heat_map({"attributes": names, "errors": errors, "modelled": [(0, 1), (5, 150)]})
    assert len(picture) < 1_000_000
    edges = [{"parent": names[k // 2], "child": names[k], "bits": 0.1, "networks": 1} for k in range(1, 200)]
    drawn_network = report_svg.network(names, edges)
    assert drawn_network.count("<rect") == 200
    assert drawn_network.count('class="edge"') == 199
    assert float(re.search(r'viewBox="0 0 (\d+)', drawn_network)[1]) < 1100


def test_networks_that_together_make_a_circle_are_drawn():
    edges = [{"parent": one, "child": other, "bits": 0.0, "networks": 1} for one, other in ("ab", "bc", "ca")]
    assert report_svg.network("abc", edges).count('class="edge"') == 3
