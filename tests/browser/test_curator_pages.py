"""The operator's pages in a real browser, on a curator and parties that are real processes."""

import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.watching import Watched
from tests.end_to_end.cluster import PATIENCE, Cluster, cluster, wait

PARTIES = ("Nord", "Süd Klinik", "مستشفى القدس")
ASKS = "asks"  # its data owner is asked, and answers when a test makes him
_SOON = PATIENCE * 1000


@pytest.fixture(scope="module")
def home(no_process_is_left: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("cluster")) as found:
        found.add(*PARTIES, rows=400)
        found.add(ASKS, rows=400, rules={"accept": "ask"})
        found.acquaint(*PARTIES, ASKS)
        found.enrol(*PARTIES, ASKS)
        found.serve(*PARTIES, ASKS)
        yield found


@pytest.fixture
def operator(home: Cluster, watched: Watched) -> Watched:
    """Signed in, at the list of runs."""
    page = watched.open(home.url)
    page.get_by_label("Operator's key").fill(home.key)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    return watched


def run_of(page: Page) -> str:
    return page.url.rpartition("/")[2]


def test_signing_in_and_out(home: Cluster, watched: Watched) -> None:
    page = watched.open(f"{home.url}/parties")
    watched.look("sign-in")
    watched.expect_error("status of 403")
    page.get_by_label("Operator's key").fill("not a key")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("operator's key is not valid")
    watched.look("sign-in-refused")
    page.get_by_label("Operator's key").fill(home.key)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Parties", exact=True)).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.go_back()
    page.reload()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


@pytest.mark.exhaustive
def test_a_schema_is_checked_compared_and_published(home: Cluster, operator: Watched) -> None:
    page = operator.page
    page.get_by_role("link", name="Schemas").click()
    expect(page.get_by_role("heading", name="Write or upload")).to_be_visible()
    operator.look("schemas")
    page.get_by_role("link", name="Edit a copy").first.click()
    edited = json.loads(page.get_by_label("The schema (JSON)").input_value())
    edited["title"] = "Admissions by day"
    edited["attributes"].append({"name": "admitted", "kind": "date", "min": "2019", "max": "2021", "resolution": "day"})
    page.get_by_label("The schema (JSON)").fill(json.dumps(edited))
    page.get_by_label("Rows of all parties together").fill("1,600")
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_text("The schema can be published.")).to_be_visible()
    expect(page.get_by_role("heading", name="Beside the published schema")).to_be_visible()
    operator.look("schemas-compared")
    file = {"name": "s.json", "mimeType": "application/json", "buffer": json.dumps(edited).encode()}
    page.get_by_label("Or a file").set_input_files(file)  # type: ignore[arg-type]
    page.get_by_role("button", name="Publish").click()
    expect(page.get_by_role("heading", name="Admissions by day")).to_be_visible()
    operator.look("schema")
    page.goto(f"{home.url}/schemas")
    bad = [{"name": "x" * 120, "kind": "integer", "min": 3, "max": 1, "step": -1}, {"name": "y", "kind": "date"}]
    page.get_by_label("The schema (JSON)").fill(json.dumps({"attributes": bad}))
    operator.expect_error("status of 422")
    page.get_by_role("button", name="Publish").click()
    expect(page.get_by_text("5 to correct. Nothing was published.")).to_be_visible()
    operator.look("schemas-problems")


@pytest.mark.exhaustive
def test_a_party_gets_a_code_enrols_and_is_revoked(home: Cluster, operator: Watched) -> None:
    page = operator.page
    page.get_by_role("link", name="Parties").click()
    page.get_by_label("Name of the party").fill("Übersee (neu)")
    page.get_by_role("button", name="Make a one-time code").click()
    operator.look("party-code")
    code = page.locator("#code").text_content()
    home.add("Übersee (neu)")
    site = home.sites["Übersee (neu)"]
    site.cli("enrol", "--curator", home.url, "--code", code, "--name", "Übersee (neu)")
    site.cli("offer")
    page.goto(f"{home.url}/parties")
    row = page.get_by_role("row").filter(has_text="Übersee")
    expect(row).to_contain_text("60 rows of mixed")
    expect(row).to_contain_text("0.1.0")
    told = {party["name"]: party for party in home.http.get("/v1/parties").json()["items"]}
    expect(row.get_by_role("code")).to_have_text(told["Übersee (neu)"]["fingerprint"])
    row.get_by_text("Revoke", exact=True).click()
    row.get_by_role("button", name="Revoke").click()
    expect(page.get_by_role("row").filter(has_text="Übersee")).to_contain_text("revoked")
    operator.look("parties")


@pytest.mark.exhaustive
def test_a_plan_answers_while_it_is_moved(home: Cluster, operator: Watched) -> None:
    page = operator.page
    page.get_by_role("link", name="Plan a run").first.click()
    expect(page.get_by_text("Choose a schema. The forecast of your plan appears here.")).to_be_visible()
    page.get_by_label("Schema").select_option(home.schema.hash)
    cost = page.get_by_role("region", name="What it costs and how good it can be")
    expect(cost).to_contain_text("× 2.72")
    page.get_by_label("Epsilon", exact=True).fill("4/5")
    expect(cost).to_contain_text("× 2.23")
    expect(page.get_by_role("img", name="Predicted error by epsilon")).to_be_visible(timeout=_SOON)
    expect(cost).to_be_visible()  # the curve stands beside the forecast
    page.get_by_label("Epsilon, by steps").press("End")
    expect(page.get_by_label("Epsilon", exact=True)).to_have_value("10")
    expect(cost).to_contain_text("more than 1,000")
    page.get_by_label("Method").select_option("dp-ccbn")
    expect(page.get_by_role("region", name="Stages").first).to_contain_text("Candidates")
    operator.look("plan")
    assert "method=dp-ccbn" in page.url  # a plan can be kept as a link
    page.reload()
    expect(page.get_by_label("Method")).to_have_value("dp-ccbn")

    page.get_by_label("Insiders").fill("7")
    refused = page.get_by_role("alert")
    expect(refused).to_contain_text("leave nobody to protect")
    expect(page.get_by_role("button", name="Start this run")).to_have_count(0)
    operator.look("plan-refused")
    page.get_by_label("Insiders").fill("")
    expect(cost).to_be_visible()
    page.get_by_text("More options").click()
    page.get_by_label("Encoding").select_option("binary")
    page.get_by_label("Split of epsilon").fill("20, 20")
    expect(refused).to_contain_text("more than epsilon")


def test_what_is_typed_while_the_scripts_still_load_counts(home: Cluster, operator: Watched) -> None:
    page, held = operator.page, list[Route]()
    page.route("**/htmx.min.js", lambda route: held.append(route))
    page.goto(f"{home.url}/plan?schema={home.schema.hash}", wait_until="commit")
    page.get_by_label("Epsilon", exact=True).fill("4/5")
    cost = page.get_by_role("region", name="What it costs and how good it can be")
    expect(cost).to_contain_text("× 2.72")
    held[0].continue_()
    expect(cost).to_contain_text("× 2.23")
    assert page.get_by_label("Epsilon", exact=True).input_value() == "4/5"


@pytest.mark.exhaustive
def test_what_a_plan_says_is_what_the_interface_says(home: Cluster, operator: Watched) -> None:
    page = operator.page
    page.goto(f"{home.url}/plan?schema={home.schema.hash}&epsilon=6/5&party=Nord&party=S%C3%BCd+Klinik")
    told = home.http.post("/v1/plans", json=home.body("Nord", "Süd Klinik", epsilon="6/5", noise=None)).json()
    prices = page.get_by_role("region", name="Price per party").first
    for name, price in told["price"].items():
        assert prices.get_by_role("row").filter(has_text=name).locator("data").get_attribute("value") == price
    assert page.locator("#bytes data").get_attribute("value") == str(told["bytes_per_party"])
    errors = {step["name"]: step["error"] for step in told["steps"]}
    stages = page.get_by_role("region", name="Stages").first
    for label, step in (("Correlations", "correlations"), ("Parameters", "parameters")):
        found = stages.get_by_role("row").filter(has_text=label).locator("td").nth(1)
        if errors[step] < 1:
            assert float(found.locator("data").get_attribute("value") or "nan") == errors[step]
        else:
            assert found.text_content() == "–"  # bounds nothing
    expected = told["predicted"]["error"]
    shown = page.locator("#predicted")
    if expected is None:
        assert shown.text_content() == "not predicted"
    else:
        assert float(shown.locator("data").get_attribute("value") or "nan") == expected
    why = page.get_by_role("listitem").all_text_contents()
    assert set(told["why"]) <= set(why)


def test_a_run_is_planned_watched_and_its_result_fetched(home: Cluster, operator: Watched, tmp_path: Path) -> None:
    page = operator.page
    chosen = "&".join(f"party={name}" for name in (*PARTIES, ASKS))  # whom other tests leave behind is not asked
    page.goto(f"{home.url}/plan?schema={home.schema.hash}&{chosen}")
    page.get_by_label("Epsilon", exact=True).fill("12")
    page.get_by_label("Noise", exact=True).select_option("distributed")
    expect(page.get_by_role("region", name="What it costs and how good it can be")).to_contain_text("12")
    page.get_by_role("button", name="Start this run").click()

    # It waits for one person; all others have joined.
    status = page.get_by_role("status")
    expect(status).to_contain_text("waits for 1 party", timeout=_SOON)
    row = page.get_by_role("row").filter(has_text=ASKS)
    expect(row).to_contain_text("waiting")
    expect(page.get_by_role("row").filter(has_text="القدس")).to_contain_text("done")
    operator.look("run-waits")
    first = status.locator("time").first.text_content()
    page.wait_for_timeout(2100)
    assert status.locator("time").first.text_content() != first  # it says for how long, and goes on

    run = run_of(page)
    home.sites[ASKS].cli("accept", run)
    expect(page.get_by_role("heading", name="Result")).to_be_visible(timeout=_SOON)  # nobody has loaded the page again
    expect(status).to_contain_text("the table is published")
    operator.look("run-finished")
    told = json.loads(home.get(run, "manifest.json"))["manifest"]
    for record in told["parties"]:
        spent = page.get_by_role("row").filter(has_text=record["name"]).locator("td.number data").first
        assert spent.get_attribute("value") == record["spent"]
    for name, digest in told["outputs"].items():
        assert digest in (page.get_by_role("row").filter(has_text=name).text_content() or "")

    with page.expect_download() as download:
        page.get_by_role("link", name="Table as CSV").click()
    assert download.value.path().read_bytes() == home.get(run, "table.csv")
    with page.expect_download() as download:
        page.get_by_role("link", name="Table as Parquet").click()
    assert len(duckdb.read_parquet(str(download.value.path())).fetchall()) == told["plan"]["rows"]
    page.get_by_text("More rows, or other copies").click()
    page.get_by_label("Rows").fill("7")
    with page.expect_download() as download:
        page.get_by_role("button", name="Draw a new table").click()
    assert len(io.StringIO(download.value.path().read_text()).readlines()) == 8

    page.get_by_role("link", name="Open the report").click()
    expect(page.get_by_role("heading", name="What is promised, and on which conditions")).to_be_visible()
    spent = page.get_by_role("region", name="Budgets by party").get_by_role("row").filter(has_text="القدس")
    assert spent.locator("data").last.get_attribute("value") == told["parties"][2]["spent"]
    operator.look("report")
    saved = tmp_path / "report.html"
    saved.write_bytes(home.get(run, "report.html"))
    page.goto(saved.as_uri())  # one file, which needs no server
    expect(page.get_by_role("heading", name="What the table supports")).to_be_visible()
    assert page.evaluate("() => getComputedStyle(document.querySelector('.figures')).display") == "grid"

    page.goto(f"{home.url}/runs")
    expect(page.get_by_role("row").filter(has_text=run)).to_contain_text("finished")
    operator.look("runs")


@pytest.mark.exhaustive
def test_a_run_is_cancelled_only_after_a_second_word(home: Cluster, operator: Watched) -> None:
    run = home.begin("Nord", ASKS)
    page = operator.open(f"{home.url}/runs/{run}")
    expect(page.get_by_role("button", name="Yes, cancel the run")).to_be_hidden()
    page.get_by_text("Cancel this run").focus()
    page.keyboard.press("Enter")
    page.get_by_label("Reason").fill("the wrong schema")
    operator.look("run-cancelling")
    page.keyboard.press("Enter")
    status = page.get_by_role("status")
    expect(status).to_contain_text("Cancelled")
    expect(status).to_contain_text("the wrong schema")
    assert home.run(run)["culprit"] == "operator"
    operator.look("run-cancelled")


@pytest.mark.exhaustive
def test_a_run_that_is_refused_says_by_whom_and_what_to_do(home: Cluster, operator: Watched) -> None:
    run = home.begin("Nord", ASKS)
    page = operator.open(f"{home.url}/runs/{run}")
    site = home.sites[ASKS]
    wait(lambda: run in json.dumps(site.cli("requests")), "the request", home.curator)
    site.cli("refuse", run, "--reason", "the ethics board has not met")
    status = page.get_by_role("status")
    expect(status).to_contain_text("the ethics board has not met", timeout=_SOON)
    expect(status).to_contain_text(f"Ask the data owner of {ASKS}")
    operator.look("run-refused")


@pytest.mark.exhaustive
def test_a_party_that_is_away_is_named_and_the_run_ends_without_it(home: Cluster, operator: Watched) -> None:
    site = home.sites["Süd Klinik"]
    site.running.stop()
    try:
        run = home.begin("Nord", "Süd Klinik", join_seconds=8)
        page = operator.open(f"{home.url}/runs/{run}")
        status = page.get_by_role("status")
        expect(status).to_contain_text("Without its answer, the run ends in", timeout=_SOON)
        expect(page.get_by_role("listitem").filter(has_text="Süd Klinik")).to_contain_text("last seen")
        operator.look("run-party-away")
        expect(status).to_contain_text("Timed out", timeout=_SOON)
        expect(status).to_contain_text("Check whether Süd Klinik can be reached")
        expect(page.get_by_role("row").filter(has_text="Süd Klinik")).to_contain_text("timed out")
        operator.look("run-timed-out")
    finally:
        home.serve("Süd Klinik")


@pytest.mark.exhaustive
def test_a_run_that_fails_names_who_is_at_fault(home: Cluster, operator: Watched) -> None:
    home.add("leaves")
    home.acquaint("Nord", "leaves")
    home.enrol("leaves")
    run = home.begin("Nord", "leaves")
    page = operator.open(f"{home.url}/runs/{run}")
    home.http.post("/v1/parties/leaves/revoke")
    status = page.get_by_role("status")
    expect(status).to_contain_text("leaves was revoked by the operator", timeout=_SOON)
    expect(status).to_contain_text("Talk to leaves")
    operator.look("run-failed")


def test_everything_can_be_reached_by_keyboard(home: Cluster, operator: Watched) -> None:
    page = operator.open(f"{home.url}/plan?schema={home.schema.hash}")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("() => document.activeElement.id || document.activeElement.textContent.trim()"))
    wanted = {"schema", "epsilon", "method", "preset", "insiders", "noise", "rows", "degree", "Start this run"}
    assert wanted <= reached
    assert any(re.match("More options", one) for one in reached)


def test_another_operator_sees_the_same_and_knows_nothing_of_this_session(
    home: Cluster, operator: Watched, watch: Callable[[], Watched]
) -> None:
    other = watch()
    page = other.open(f"{home.url}/runs")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
