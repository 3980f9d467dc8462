"""The operator's pages over HTTP in process: who may see and send what, and that they say what the interface says."""

import json
import re
from dataclasses import replace
from fractions import Fraction
from typing import Annotated, Any, get_args

import pytest
from fastapi.routing import APIRoute
from markupsafe import escape
from sqlalchemy import event

from crypto.randomness import Stream
from curator import interface
from curator.accounts.sessions import LIFE_SECONDS
from curator.errors import StoreUnavailable
from curator.http.dependencies import COOKIE
from curator.pages import plan_form
from curator.pages.frame import POLICY
from curator.pages.plan_form import Field, fields, request_of
from curator.pages.run_grid import advice, grid
from curator.pages.runs import rest_after
from curator.rendering import formats
from curator.runs.planner import Planner
from curator.store.store import Store
from protocol.errors import PlanError
from protocol.options import Noise
from protocol.plan.promises import not_promised, odds_factor, promises
from protocol.plan.step import StageName
from protocol.stages.registry import labels
from tests.support.api import BASE, Api, with_api
from tests.support.curator import Desk
from tests.support.curator_runs import column, outgoing
from tests.support.small_runs import CITIES, plan_of

PLAN = {"key_bits": "512", "noise": "distributed"}


@pytest.fixture
def desk(tmp_path):
    opened = Desk(tmp_path)
    yield opened
    opened.store.close()


async def sign_in(api: Api, **headers: str) -> Any:
    return await api.http.post("/sign-in", data={"key": api.operator_key, "then": "/plan"}, headers=headers)


async def token_of(api: Api) -> str:
    """The form token of the present session."""
    return re.search(r'name="form_token" value="(\w+)"', (await api.http.get("/runs")).text)[1]


async def send(api: Api, path: str, **filled: Any) -> Any:
    return await api.http.post(path, data={"form_token": await token_of(api)} | filled)


# Signing in


def test_a_key_gives_a_cookie_that_scripts_and_other_sites_do_not_get(desk):
    async def story(api):
        answer = await sign_in(api)
        assert (answer.status_code, answer.headers["Location"]) == (303, "/plan")
        cookie = answer.headers["Set-Cookie"]
        assert re.match(rf"{COOKIE}=[0-9a-f]{{64}};", cookie)
        assert {"HttpOnly", "SameSite=strict", "Path=/", f"Max-Age={LIFE_SECONDS}"} <= set(cookie.split("; "))
        assert "Secure" not in cookie  # over http the browser would not keep it
        assert (await api.http.get("/runs")).status_code == 200

    with_api(desk, story)


def test_over_https_the_cookie_never_travels_without(desk):
    async def story(api):
        answer = await api.http.post(f"{BASE.replace('http', 'https')}/sign-in", data={"key": api.operator_key})
        assert "Secure" in answer.headers["Set-Cookie"]

    with_api(desk, story)


def test_a_wrong_key_is_refused_and_said(desk):
    async def story(api):
        answer = await api.http.post("/sign-in", data={"key": "0" * 64})
        assert answer.status_code == 403
        assert "key is not valid here" in answer.text
        assert "Set-Cookie" not in answer.headers
        assert "0" * 64 not in answer.text

    with_api(desk, story)


@pytest.mark.parametrize(
    "path", ["/runs", "/parties", "/plan", "/words", "/runs/some-run", "/plan/forecast", "/runs/x/live"]
)
def test_whoever_is_not_signed_in_is_asked_to_and_comes_back(desk, path):
    async def story(api):
        answer = await api.http.get(path)
        assert (answer.status_code, answer.headers["Location"]) == (303, f"/sign-in?then={path}")
        answer = await api.http.get(path, headers={"HX-Request": "true"})
        assert (answer.status_code, answer.headers["HX-Redirect"]) == (204, f"/sign-in?then={path}")

    with_api(desk, story)


@pytest.mark.parametrize("then", ["//evil.example", "https://evil.example", "/\\evil.example"])
def test_signing_in_leads_to_no_other_site(desk, then):
    async def story(api):
        answer = await api.http.post("/sign-in", data={"key": api.operator_key, "then": then})
        assert answer.headers["Location"] == "/runs"
        assert "evil" not in (await api.http.get("/sign-in", params={"then": then})).text

    with_api(desk, story)


def test_a_session_ends_at_its_hour_when_one_signs_out_and_with_its_key(desk):
    async def story(api):
        await sign_in(api)
        desk.clock.advance(LIFE_SECONDS - 1)
        assert (await api.http.get("/runs")).status_code == 200
        desk.clock.advance(1)
        assert (await api.http.get("/runs")).status_code == 303

        await sign_in(api)
        old = api.http.cookies[COOKIE]
        answer = await send(api, "/sign-out")
        assert "Max-Age=0" in answer.headers["Set-Cookie"]
        assert (await api.http.get("/runs", headers={"Cookie": f"{COOKIE}={old}"})).status_code == 303

        await sign_in(api)
        desk.orchestrator.registry.revoke_operator_key("tests")
        assert (await api.http.get("/runs")).status_code == 303

    with_api(desk, story)


def test_a_session_reads_what_the_key_reads_and_changes_nothing_there(desk):
    async def story(api):
        await sign_in(api)
        assert (await api.http.get("/v1/runs")).status_code == 200
        assert (await api.http.post("/v1/parties/codes", json={"name": "x"})).status_code == 401
        api.http.cookies.clear()
        assert (await api.http.get("/v1/runs")).status_code == 401

    with_api(desk, story)


def all_forms() -> list[str]:
    from curator.pages import parties as party_pages
    from curator.pages import plan as plan_page
    from curator.pages import routes as pages
    from curator.pages import runs as run_pages

    routers = (pages.router, party_pages.router, plan_page.router, run_pages.router)
    routes = [route for router in routers for route in router.routes if isinstance(route, APIRoute)]
    return [route.path for route in routes if "POST" in route.methods and route.path != "/sign-in"]


def test_every_form_needs_the_token_of_the_session_and_this_origin(desk):
    paths = [path.replace("{run}", "some-run").replace("{name}", "party-1") for path in all_forms()]
    assert len(paths) >= 5

    async def story(api):
        await sign_in(api)
        good = await token_of(api)
        for path in paths:
            assert (await api.http.post(path)).status_code == 403, path
            assert (await api.http.post(path, data={"form_token": "0" * 64})).status_code == 403, path
            for foreign in ("https://evil.example", BASE.replace("http", "https"), f"{BASE}:81", "null", "http://[::1"):
                answer = await api.http.post(path, data={"form_token": good}, headers={"Origin": foreign})
                assert (answer.status_code, "another site" in answer.text) == (403, True), path
        answer = await sign_in(api, Origin="https://evil.example")
        assert answer.status_code == 403
        assert not (await api.http.get("/v1/parties")).json()["items"][0]["revoked"]

    with_api(desk, story)


def test_pages_allow_nothing_from_elsewhere_and_nothing_inline(desk):
    async def story(api):
        await sign_in(api)
        for path in ("/sign-in", "/runs", "/plan", "/parties", "/runs/none"):
            answer = await api.http.get(path)
            assert answer.headers["Content-Security-Policy"] == POLICY
            assert not re.search(r"<style|<script>| on[a-z]+=| style=|https?://", answer.text), path
        assert "unsafe" not in POLICY
        assert (await api.http.get("/static/style.css")).headers["Content-Type"].startswith("text/css")
        assert (await api.http.get("/static/../pages.py")).status_code == 404

    with_api(desk, story)


def test_an_error_is_a_page(desk):
    async def story(api):
        await sign_in(api)
        answer = await api.http.get("/runs/none")
        assert answer.status_code == 404
        assert "there is no run" in answer.text
        assert (await api.http.get("/runs/n%20o")).status_code == 404

    with_api(desk, story)


# What the pages say


def values(text: str) -> list[str]:
    """The exact values behind the numbers of a page."""
    return re.findall(r'<data value="([^"]*)"', text)


@pytest.mark.parametrize("wishes", [{"epsilon": "4/5"}, {"epsilon": "1.3", "method": "dp-ccbn"}, {"preset": "paper"}])
def test_the_plan_page_shows_the_numbers_of_the_interface(desk, wishes):
    async def story(api):
        await sign_in(api)
        filled = PLAN | {"schema": desk.schema.hash, "epsilon": "2"} | wishes
        shown = (await api.http.get("/plan/forecast", params=filled)).text
        body = filled | {"key_bits": 512}
        told = (await api.operator("POST", "/v1/plans", json=body)).json()
        assert told["plan_hash"] in shown
        found = values(shown)
        for price in told["price"].values():
            assert price in found
        assert str(told["bytes_per_party"]) in found
        for step in told["steps"]:
            if step["error"] is not None and "/" not in step["name"]:
                assert (repr(step["error"]) in found) == (step["error"] < 1)  # a bound of 1 says nothing
        error = told["predicted"]["error"]
        assert "not predicted" in shown if error is None else repr(error) in found
        assert str(escape(told["predicted"]["why"])) in shown
        for reason in told["why"]:
            assert str(escape(reason)) in shown

    with_api(desk, story)


def test_the_plan_page_draws_the_interfaces_curve(desk):
    async def story(api):
        await sign_in(api)
        filled = PLAN | {"schema": desk.schema.hash, "epsilon": "2", "method": "guided"}
        assert 'hx-get="/plan/curve"' in (await api.http.get("/plan/forecast", params=filled)).text
        shown = (await api.http.get("/plan/curve", params=filled)).text
        body = filled | {"key_bits": 512}
        told = (await api.operator("POST", "/v1/plans?curve=true", json=body)).json()
        assert len(told["curve"]) > 1
        for point in told["curve"]:
            assert f"{point['error']:.2%}, guided" in shown
        assert ("From epsilon" in shown) == (told["enough"] is not None)
        assert (await api.operator("POST", "/v1/plans", json=body)).json()["curve"] == []
        refused = await api.http.get("/plan/curve", params=filled | {"epsilon": "0"})
        assert (refused.status_code, refused.text.strip()) == (200, "")

    with_api(desk, story)


@pytest.mark.parametrize(
    ("wishes", "reason"),
    [
        ({"epsilon": "0"}, "must be positive"),
        ({"epsilon": "much"}, "expected an exact number"),
        ({"insiders": "7"}, "leave nobody to protect"),
        ({"insiders": "x"}, "whole number"),
        ({"party": "party-1"}, "too few"),
        ({"party": "nobody"}, "no party"),
        ({"degree": "900"}, "cannot be afforded"),
        ({"split": "0.5, 0.5, 0.5, 0.5"}, "more than epsilon"),
        ({"update": "replace", "preset": "sound"}, "protects nobody against other parties"),
        ({"method": "magic"}, "Input should be"),
    ],
)
def test_a_plan_that_is_refused_says_why_and_offers_no_start(desk, wishes, reason):
    async def story(api):
        await sign_in(api)
        for path in ("/plan", "/plan/forecast"):
            answer = await api.http.get(path, params=PLAN | {"schema": desk.schema.hash} | wishes)
            assert answer.status_code == 200
            assert reason in answer.text
            assert "Start this run" not in answer.text
        count = len(desk.views.runs(10))
        answer = await send(api, "/runs", **(PLAN | {"schema": desk.schema.hash} | wishes))
        assert answer.status_code == 422
        assert len(desk.views.runs(10)) == count

    with_api(desk, story)


def test_a_plan_that_advice_stops_starts_only_with_a_ticked_box_and_says_so_in_the_plan(desk):
    async def story(api):
        await sign_in(api)
        filled = PLAN | {"schema": desk.schema.hash, "epsilon": "25"}
        shown = (await api.http.get("/plan/forecast", params=filled)).text
        assert "<strong>Stop:</strong>" in shown
        assert "protects nobody" in shown
        box = re.search(r'<input data-word type="checkbox" name="anyway" value="(\w+)"( checked)?>', shown)
        assert box[2] is None
        refused = await send(api, "/runs", **filled)
        assert refused.status_code == 422
        assert "anyway" in refused.text
        assert desk.views.runs(10) == []
        again = (await api.http.get("/plan/forecast", params=filled | {"anyway": box[1]})).text
        assert f'value="{box[1]}" checked' in again
        other = (await api.http.get("/plan/forecast", params=filled | {"anyway": box[1], "epsilon": "26"})).text
        assert '" checked>' not in other  # other advice asks again
        assert (await send(api, "/runs", **filled, anyway=box[1])).status_code == 303
        (run,) = desk.views.runs(10)
        assert "protects nobody" in json.loads(column(desk, run.run, "plan"))["against"][0]

    with_api(desk, story)


def test_nothing_is_planned_before_the_operator_has_chosen_a_schema(desk):
    """What parties offer is not worked out: 15,000 attributes of one party took 12 GB as the page was opened."""
    registry, planned = desk.orchestrator.registry, []
    for number in range(5):
        registry.offer("party-2", f"more {number}", CITIES, 10)
    seams = desk.orchestrator.planner.seams
    desk.orchestrator.planner = Planner(
        registry, replace(seams, work_out=lambda *asked: planned.append(asked) or seams.work_out(*asked))
    )

    async def story(api):
        await sign_in(api)
        for path in ("/plan", "/plan/forecast", "/plan?epsilon=2&party=party-1"):
            shown = (await api.http.get(path)).text
            assert "Choose a schema. The forecast of your plan appears here." in shown
            assert "Start this run" not in shown
        assert planned == []
        shown = (await api.http.get("/plan")).text
        bits, cities = (shown.index(one.hash) for one in (desk.schema, CITIES))
        assert bits < cities  # three parties offer rows of one schema, and one party five times rows of the other
        assert "cities, 1 party" in shown
        assert "without a title, 3 parties" in shown
        assert (await send(api, "/runs", **PLAN)).status_code == 422
        assert "Start this run" in (await api.http.get("/plan", params=PLAN | {"schema": desk.schema.hash})).text
        assert len(planned) == 1

    with_api(desk, story)


def test_a_form_sent_twice_is_one_run_and_with_another_plan_another(desk):
    async def story(api):
        await sign_in(api)
        form = PLAN | {"schema": desk.schema.hash, "epsilon": "1", "key": "abc", "anyway": "yes"}
        first, again = await send(api, "/runs", **form), await send(api, "/runs", **form)
        other = await send(api, "/runs", **(form | {"epsilon": "2"}))
        assert first.headers["Location"] == again.headers["Location"] != other.headers["Location"]
        assert len(desk.views.runs(10)) == 2

    with_api(desk, story)


def test_every_option_of_a_plan_is_in_the_form():
    first, more = fields()
    named = {field.name for field in (*first, *more)} | {"schema", "parties", "anyway"}
    assert named == set(interface.PlanRequest.model_json_schema()["properties"])
    by_name = {field.name: field for field in (*first, *more)}
    assert by_name["noise"] == Field(
        "noise", "Noise", by_name["noise"].hint, "choice", get_args(Noise), False, "", None, None
    )
    assert (by_name["insiders"].kind, by_name["insiders"].smallest, by_name["insiders"].largest) == ("number", 0, 1000)
    assert (by_name["epsilon"].kind, by_name["epsilon"].is_needed) == ("exact", True)
    assert by_name["split"].kind == "exacts"


def test_an_option_that_is_new_appears_by_itself(monkeypatch):
    class Wider(interface.PlanRequest):
        zeal: Annotated[int, interface.Field(ge=1)] | None = interface.Field(default=None, description="how much of it")

    monkeypatch.setattr(plan_form, "PlanRequest", Wider)
    found = next(field for field in fields()[1] if field.name == "zeal")
    assert (found.label, found.hint, found.kind, found.smallest) == ("Zeal", "how much of it", "number", 1)
    assert request_of({"epsilon": "1", "zeal": "3"}, "5d" * 32, None).zeal == 3


def test_what_the_form_holds_becomes_the_request():
    filled = {"epsilon": "4/5", "method": "dp-ccbn", "rows": "7", "split": "0.3, 1/2", "theta": "5", "noise": "local"}
    found = request_of(filled, "5d" * 32, ["b", "a"])
    assert (found.epsilon, found.method, found.rows, found.parties) == (Fraction(4, 5), "dp-ccbn", 7, ["b", "a"])
    assert (found.split, found.theta) == ([Fraction(3, 10), Fraction(1, 2)], Fraction(5))
    with pytest.raises(PlanError, match="Rows of the table: Input should be greater"):
        request_of({"epsilon": "1", "rows": "0"}, "5d" * 32, None)


def test_a_code_is_shown_once_and_works(desk):
    async def story(api):
        await sign_in(api)
        answer = await send(api, "/parties/codes", name=" Süd Klinik ")
        code = re.search(r'<code id="code">(\w+)[.\w]*</code>', answer.text)[1]
        assert code not in (await api.http.get("/parties")).text
        desk.orchestrator.registry.enrol(code, "Süd Klinik", bytes(32), b"\x09" * 32)
        assert "Süd Klinik" in (await api.http.get("/parties")).text
        for name, reason in (("party-1", "a party called"), ("curator", "can be called"), ("<b>", "letters, digits")):
            answer = await send(api, "/parties/codes", name=name)
            assert (answer.status_code, reason in answer.text, "<b>" in answer.text) == (422, True, False)

    with_api(desk, story)


def test_a_party_that_is_revoked_is_shown_so_and_its_runs_have_failed(desk):
    async def story(api):
        await sign_in(api)
        run = await api.create_run()
        await send(api, "/parties/party-2/revoke")
        assert "revoked" in (await api.http.get("/parties")).text
        shown = (await api.http.get(f"/runs/{run}")).text
        assert "party-2 was revoked by the operator" in shown
        assert "Talk to party-2" in shown

    with_api(desk, story)


def test_the_version_that_a_party_runs_is_shown(desk):
    async def story(api):
        await api.party(0, "GET", "/v1/inbox?wait=0", headers={"User-Agent": "dp-subn/9.8.7"})
        await api.party(1, "GET", "/v1/inbox?wait=0", headers={"User-Agent": "dp-subn/<b>1</b>"})
        told = (await api.operator("GET", "/v1/parties")).json()["items"]
        assert [party["software"] for party in told] == ["9.8.7", None, None]
        await sign_in(api)
        assert "9.8.7" in (await api.http.get("/parties")).text

    with_api(desk, story)


def test_the_list_of_runs_is_one_page_of_many_newest_first(desk):
    runs = []
    for number in range(53):
        desk.clock.advance(1)
        runs.append(desk.run(key=str(number), noise="distributed"))
        desk.orchestrator.cancel(runs[-1])

    async def story(api):
        await sign_in(api)
        statements = []
        event.listen(desk.store.engine, "before_cursor_execute", lambda *call: statements.append(call[2]))
        shown = (await api.http.get("/runs")).text
        # However many runs there are: the session, and one page of runs. Nothing is read for each run.
        assert len([text for text in statements if text.startswith("SELECT")]) == 2
        assert len(shown) < 60_000
        listed = re.findall(r'href="/runs/([\w-]+)" class', shown)
        assert listed == runs[:-51:-1]
        following = re.search(r'href="(/runs\?before=[\w-]+)"', shown)[1]
        rest = (await api.http.get(following)).text
        assert re.findall(r'href="/runs/([\w-]+)" class', rest) == runs[2::-1]
        assert "Older runs" not in rest

    with_api(desk, story)


def test_a_run_is_a_grid_of_parties_and_stages(desk):
    run = desk.run(noise="distributed", update="accumulate", split=["0.1", "0.2", "0.3", "0.4"])
    terms = desk.views.terms(run)
    desk.answer_one(desk.parties[1])
    found = grid(desk.views.run(run), terms)
    assert [column.stage for column in found.columns] == ["joining", "correlations", "initial", "update", "parameters"]
    assert [column.epsilon for column in found.columns] == [0, *(Fraction(n, 10) for n in (1, 2, 3, 4))]
    assert [line.cells[0].kind for line in found.lines] == ["now", "done", "now"]
    assert {line.spent for line in found.lines} == {0}

    desk.answer_all()
    desk.orchestrator.tick()
    found = grid(desk.views.run(run), terms)
    assert {cell.kind for line in found.lines for cell in line.cells} == {"done"}
    assert all(line.spent == line.price == terms.price(number) for number, line in enumerate(found.lines))
    assert all(column.seconds is not None for column in found.columns)


def test_a_run_that_failed_names_who_and_what_to_do(desk):
    run = desk.run(noise="distributed")
    found = desk.orchestrator.inbox("party-2")
    desk.deliver(desk.parties[1], desk.parties[1].refuse(*found, reason="not with us"))
    told, terms = desk.views.run(run), desk.views.terms(run)
    assert told.state == "refused"
    kinds = [line.cells[0].kind for line in grid(told, terms).lines]
    assert kinds == ["none", "bad", "none"]
    assert "data owner of party-2" in advice(told)
    for state, culprit, part in (
        ("timed_out", "party-1", "reached"),
        ("failed", "curator", "log"),
        ("failed", "party-3", "Talk to party-3"),
    ):
        assert part in advice(told.model_copy(update={"state": state, "culprit": culprit}))
    assert advice(told.model_copy(update={"state": "finished"})) is None
    assert advice(told.model_copy(update={"state": "cancelled"})) is None


def test_a_page_of_a_run_that_moves_gets_pictures_until_it_ends(desk):
    async def story(api):
        await sign_in(api)
        run = await api.create_run()
        desk.orchestrator.cancel(run, "why not <b>")
        async with api.http.stream("GET", f"/runs/{run}/live") as stream:
            text = (await stream.aread()).decode()
        assert stream.headers["Content-Type"].startswith("text/event-stream")
        assert text.index("event: standing") < text.index("event: ended")
        assert "why not &lt;b&gt;" in text
        shown = (await api.http.get(f"/runs/{run}")).text
        assert "sse-connect" not in shown
        assert "Cancel this run" not in shown

    with_api(desk, story)


def test_a_run_that_moves_shows_its_network_as_it_grows(desk):
    run = desk.run(noise="distributed", update="turns")
    while not (desk.views.run(run).step or "").startswith("frontier"):
        answered = [desk.answer_one(party) for party in desk.parties]
        assert any(answered)
        desk.orchestrator.tick()

    async def story(api):
        await sign_in(api)
        shown = (await api.http.get(f"/runs/{run}")).text
        assert "The network so far" in shown
        assert 'aria-label="The network after initial/' in shown
        desk.orchestrator.cancel(run)
        assert "The network so far" not in (await api.http.get(f"/runs/{run}")).text

    with_api(desk, story)


def test_drawing_a_run_takes_a_hundredth_of_the_time():
    assert [rest_after(worked) for worked in (0.0, 0.001, 0.01, 0.05)] == [1.0, 1.0, 1.0, 5.0]
    assert rest_after(1.0) == 10.0  # the very first picture, and nobody waits longer


def test_cancelling_needs_the_form_and_gives_the_reason(desk):
    async def story(api):
        await sign_in(api)
        run = await api.create_run()
        answer = await send(api, f"/runs/{run}/cancel", reason=" we  changed\nour minds ")
        assert answer.headers["Location"] == f"/runs/{run}"
        told = (await api.operator("GET", f"/v1/runs/{run}")).json()
        assert (told["state"], told["culprit"], told["reason"]) == ("cancelled", "operator", "we changed our minds")
        assert (await send(api, f"/runs/{run}/cancel")).status_code == 409

    with_api(desk, story)


def test_names_and_reasons_of_others_are_text_and_never_markup(tmp_path):
    desk = Desk(tmp_path)
    try:
        desk.orchestrator.registry.new_operator_key('<img src="x">', Stream.keyed(b"x"))
        assert formats.human("<b>x</b>") == '<bdi dir="auto">&lt;b&gt;x&lt;/b&gt;</bdi>'
        assert "<b>" not in formats.exact_number("4/5")
    finally:
        desk.store.close()


def test_a_run_that_a_damaged_database_holds_up_does_not_say_that_nothing_is_lost(desk, tmp_path, monkeypatch):
    (tmp_path / "damaged.db").write_bytes(b"this is no database" * 1000)
    with pytest.raises(StoreUnavailable) as damaged:
        Store.open(f"sqlite:///{tmp_path / 'damaged.db'}")
    run = desk.run(noise="distributed")
    sent = outgoing(desk, 0)

    def refuse():
        raise damaged.value

    async def story(api):
        await sign_in(api)
        with monkeypatch.context() as patch:
            patch.setattr(desk.store, "writing", refuse)
            with pytest.raises(StoreUnavailable):
                desk.deliver(desk.parties[0], sent)
            shown = (await api.http.get(f"/runs/{run}")).text
        assert "what was stored since then is lost here" in shown
        assert "othing is lost" not in shown

    with_api(desk, story)


# Numbers and words


@pytest.mark.parametrize(
    ("exact", "shown"),
    [("4/5", "0.8"), ("1/3", "≈ 0.333333"), ("0", "0"), ("1/10000000", "1e-07"), ("1000000", "1000000")],
)
def test_budgets_are_short_beside_their_exact_value(exact, shown):
    assert formats.exact_number(exact) == f'<data value="{exact}" title="exactly {exact}">{shown}</data>'


def test_every_stage_has_a_name_for_people():
    assert set(get_args(StageName)) == set(labels())


def test_sizes_times_and_errors_read_well():
    assert [re.sub("<.*?>", "", formats.size(n)) for n in (0, 999, 1500, 123_456_789)] == [
        "0 bytes",
        "999 bytes",
        "1.5 kB",
        "123 MB",
    ]
    seconds = (0, 59.9, 75, 3_725, 90_000)
    assert [formats.duration(n) for n in seconds] == ["0 s", "59 s", "1 min 15 s", "1 h 02 min", "1 d 01 h"]
    assert [re.sub("<.*?>", "", formats.error_share(n)) for n in (None, 1.0, 0.5, 0.05, 0.0001)] == [
        "–",
        "100%",
        "50.0%",
        "5.00%",
        "&lt; 0.1%",
    ]


def test_commands_in_advice_are_code_and_nothing_else_is_markup():
    assert formats.marked("run `subn x` <b>") == "run <code>subn x</code> &lt;b&gt;"
    assert [formats.factor(text) for text in ("2.23", "more than 1,000")] == ["× 2.23", "more than 1,000"]


def test_the_odds_are_never_said_smaller_than_they_are():
    assert odds_factor(Fraction(4, 5)) == "2.23"  # e^0.8 = 2.2255
    assert odds_factor(Fraction(1)) == "2.72"
    assert odds_factor(Fraction(8)) == "more than 1,000"


@pytest.mark.parametrize("noise", ["selected", "distributed", "local"])
@pytest.mark.parametrize("method", ["dp-subn", "privbayes", "privabn", "jtree", "dp-ccbn", "independent"])
def test_no_promise_without_its_condition(noise, method):
    for insiders in (0, 1, 2):
        found = promises(plan_of(noise=noise, method=method, insiders=insiders))
        assert all(one.text.endswith(".") and one.condition.endswith(".") for one in found)
        first = found[0]
        assert "ε at most 1" in first.text
        for condition in ("follows the protocol", "does not pool", "One person is one row at one party"):
            assert condition in first.condition
        towards = {0: "not towards other parties", 1: "any 1 other party", 2: "any 2 other parties"}
        assert towards[insiders] in first.text
    concentrated = promises(plan_of(noise=noise, method=method, privacy="zcdp"))
    assert "δ = 1/1000000000" in concentrated[0].text
    assert "plus δ = 1/1000000000, compared with" in concentrated[1].text
    hopeless = promises(plan_of(noise=noise, method=method, epsilon=8))[1]
    assert hopeless.text.startswith("So much ε protects nobody")
    assert any("Row counts" in words for words in not_promised())
