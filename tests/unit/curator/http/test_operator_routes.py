"""What operators may ask over HTTP: codes, parties, schemas, plans, runs, events, results, health, the document."""

import asyncio
import csv
import hashlib
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest

from crypto.signing import fingerprint, verify
from curator.errors import StoreUnavailable
from curator.results.codebook import codebook_csv
from curator.results.publication import PUBLISHED
from curator.runs.run_crypto import PaillierCrypto
from curator.service import Service
from protocol.messages.signatures import CURATOR_SIGNATURE_HEADER, RESPONSE, VERSION_HEADER, response_text
from protocol.run.manifest import verify_manifest
from protocol.tables.schema import Schema
from tests.support.api import Api, with_api
from tests.support.curator import Desk
from tests.support.curator_runs import column
from tests.support.signed_requests import asked_text
from tests.support.small_runs import BITS, SMALL_BITS

OPEN = ("/healthz", "/readyz", "/v1/introduction", "/v1/schema-format")
MIXED = {
    "title": "Mixed",
    "attributes": [
        {"name": "age", "kind": "integer", "min": -5, "max": 90, "bins": 4, "missing": ["?"]},
        {"name": 'the "odd", name', "kind": "categorical", "values": ["a,b", 'say "x"', "c"], "missing": [""]},
        {"name": "bmi", "kind": "real", "min": 10, "max": 70, "bins": 3},
    ],
}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def refused(answer: Any, status: int, *words: str) -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    for word in words:
        assert word in answer.json()["detail"], answer.text


async def finished_run(api: Api, **wishes: Any) -> str:
    run = await api.create_run(**wishes)
    await api.answer_all()
    await api.wait_until(run, "finished")
    return run


# Keys


@pytest.mark.parametrize("header", [None, "Bearer wrong", "Basic dXNlcjpwYXNz", "Bearer"])
def test_without_an_operators_key_nothing_is_told(desk: Desk, header: str | None) -> None:
    async def story(api: Api) -> None:
        headers = {} if header is None else {"Authorization": header}
        for target in ("/v1/parties", "/v1/schemas", "/v1/runs", "/v1/runs/x", "/v1/runs/x/events"):
            answer = await api.http.get(target, headers=headers)
            refused(answer, 401, "operator")
            assert answer.headers["www-authenticate"] == "Bearer"

    with_api(desk, story)


def test_a_partys_signature_is_no_operators_key(desk: Desk) -> None:
    async def story(api: Api) -> None:
        refused(await api.party(0, "GET", "/v1/runs"), 401, "operator's key is needed")

    with_api(desk, story)


def test_a_revoked_operator_key_opens_nothing(desk: Desk) -> None:
    async def story(api: Api) -> None:
        assert (await api.operator("GET", "/v1/runs")).status_code == 200
        desk.orchestrator.registry.revoke_operator_key("tests")
        refused(await api.operator("GET", "/v1/runs"), 401, "operator's key is not valid here")

    with_api(desk, story)


# Parties and schemas


def test_parties_are_listed_page_by_page_with_the_fingerprint_of_both_keys(desk: Desk) -> None:
    async def story(api: Api) -> None:
        first = (await api.operator("GET", "/v1/parties?limit=2")).json()
        assert ([party["name"] for party in first["items"]], first["next"]) == (["party-1", "party-2"], "party-2")
        second = (await api.operator("GET", "/v1/parties?limit=2&after=party-2")).json()
        assert ([party["name"] for party in second["items"]], second["next"]) == (["party-3"], None)
        keys = desk.parties[2].identity
        assert second["items"][0]["fingerprint"] == fingerprint(keys.signing.public + keys.exchange.public)
        for query in ("limit=0", "limit=501", "limit=x", "after=%00"):
            refused(await api.operator("GET", f"/v1/parties?{query}"), 422, "query.")

    with_api(desk, story)


@pytest.mark.parametrize("name", ["", " north", "a/b", "a\x00b", "x" * 101, 7, "curator"])
def test_a_name_that_no_party_can_have_gets_no_code(desk: Desk, name: Any) -> None:
    async def story(api: Api) -> None:
        answer = await api.operator("POST", "/v1/parties/codes", json={"name": name})
        assert answer.status_code == (403 if name == "curator" else 422), answer.text

    with_api(desk, story)


def test_schemas_are_added_once_listed_and_shown(desk: Desk) -> None:
    async def story(api: Api) -> None:
        entry = (await api.operator("POST", "/v1/schemas", json=MIXED)).json()
        assert (entry["title"], entry["attributes"]) == ("Mixed", 3)
        assert (await api.operator("POST", "/v1/schemas", json=MIXED)).json() == entry
        listed = (await api.operator("GET", "/v1/schemas")).json()
        assert {one["hash"] for one in listed["items"]} == {entry["hash"], BITS.hash}
        page = (await api.operator("GET", "/v1/schemas?limit=1")).json()
        assert page["next"] == page["items"][0]["hash"] == min(entry["hash"], BITS.hash)
        shown = await api.operator("GET", f"/v1/schemas/{entry['hash']}")
        assert shown.headers["content-type"] == "application/json"
        assert shown.json()["attributes"][0]["name"] == "age"
        refused(await api.operator("GET", f"/v1/schemas/{'0' * 64}"), 404, "no schema")
        bad = {"attributes": [{"name": "a", "kind": "integer", "min": 2, "max": 1, "bin": 3}]}
        answer = await api.operator("POST", "/v1/schemas", json=bad)
        refused(answer, 422, 'field "bin"', 'field "min"')
        assert answer.json()["problems"] == answer.json()["detail"].split("\n")
        assert len(answer.json()["problems"]) == 2
        refused(await api.operator("GET", "/v1/schemas/short"), 422, "path.hash")

    with_api(desk, story)


@pytest.mark.parametrize(
    ("body", "word"),
    [(b"", "JSON"), (b"\xff", "UTF-8"), (b"[" * 5000, "nested"), (b"7", "object"), (b'{"attributes":[]}', "attribute")],
)
def test_what_is_no_schema_is_refused_with_the_reason(desk: Desk, body: bytes, word: str) -> None:
    async def story(api: Api) -> None:
        refused(await api.operator("POST", "/v1/schemas", content=body), 422, word)

    with_api(desk, story)


# Plans and runs


def test_a_plan_prices_every_party_and_keeps_nothing(desk: Desk) -> None:
    async def story(api: Api) -> None:
        body = {"schema": BITS.hash, "epsilon": "4/5", "noise": "distributed"}
        plan = (await api.operator("POST", "/v1/plans", json=body)).json()
        assert plan["price"] == {"party-1": "4/5", "party-2": "4/5", "party-3": "4/5"}
        assert plan["plan"]["epsilon"] == "4/5"
        assert [step["name"] for step in plan["steps"]][:2] == ["joining", "levels"]
        assert plan["bytes_per_party"] > 0
        assert (await api.operator("GET", "/v1/runs")).json() == {"items": [], "next": None}

    with_api(desk, story)


def test_a_plan_that_advice_stops_needs_a_second_word_which_the_plan_records(desk: Desk) -> None:
    async def story(api: Api) -> None:
        body, headers = {"schema": BITS.hash, "epsilon": "20"}, {"Idempotency-Key": "k"}
        told = (await api.operator("POST", "/v1/plans", json=body)).json()
        assert told["advice"][0]["severity"] == "stop"
        assert told["plan"]["against"] == [one["text"] for one in told["advice"] if one["severity"] == "stop"]
        answer = await api.operator("POST", "/v1/runs", json=body, headers=headers)
        refused(answer, 422, "protects nobody")
        assert answer.json()["type"].endswith("advised-against")
        refused(await api.operator("POST", "/v1/runs", json=body | {"anyway": "yes"}, headers=headers), 422, "anyway")
        started = await api.operator("POST", "/v1/runs", json=body | {"anyway": True}, headers=headers)
        assert started.status_code == 201
        plan = json.loads(column(desk, started.json()["run"], "plan"))
        assert plan["against"] == told["plan"]["against"]

    with_api(desk, story)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"epsilon": 0.8}, "exact number"),
        ({"epsilon": "-1"}, "positive"),
        ({"epsilon": 10**4000}, "a number is written with 4001 characters"),
        ({"epsilon": "0.8", "parties": ["nobody", "party-1"]}, "nobody"),
        ({"parties": ["party-1"]}, "at least 2"),
        ({"parties": []}, "body.parties"),
        ({"schema": "short"}, "body.schema"),
        ({"method": "magic"}, "body.method"),
        ({"rows": 10**30}, "body.rows"),
        ({"colour": "red"}, "body.colour"),
        ({"split": ["1", "1", "1", "1"]}, "more than"),
        ({"insiders": 7}, "7 insiders"),
        ({"key_bits": 256}, "256 bits"),
    ],
)
def test_a_plan_that_cannot_be_is_refused_with_the_reason(desk: Desk, changes: dict[str, Any], word: str) -> None:
    async def story(api: Api) -> None:
        body = {"schema": BITS.hash, "epsilon": "1"} | changes
        refused(await api.operator("POST", "/v1/plans", json=body), 422, word)
        refused(await api.operator("POST", "/v1/runs", json=body, headers={"Idempotency-Key": "k"}), 422, word)

    with_api(desk, story)


def test_a_plan_of_an_unknown_schema_is_refused(desk: Desk) -> None:
    async def story(api: Api) -> None:
        refused(await api.operator("POST", "/v1/plans", json={"schema": "0" * 64, "epsilon": "1"}), 404, "no schema")

    with_api(desk, story)


def test_a_run_is_started_once_per_idempotency_key(desk: Desk) -> None:
    async def story(api: Api) -> None:
        body = {"schema": BITS.hash, "epsilon": "1", "noise": "local", "anyway": True}
        first = await api.operator("POST", "/v1/runs", json=body, headers={"Idempotency-Key": "k1"})
        again = await api.operator("POST", "/v1/runs", json=body, headers={"Idempotency-Key": "k1"})
        assert (first.status_code, again.status_code) == (201, 200)
        assert first.json() == again.json()
        other = body | {"epsilon": "1/2"}
        refused(
            await api.operator("POST", "/v1/runs", json=other, headers={"Idempotency-Key": "k1"}),
            409,
            first.json()["run"],
        )
        refused(await api.operator("POST", "/v1/runs", json=body), 422, "Idempotency-Key")
        desk.clock.advance(1)
        await api.create_run("k2")
        page = (await api.operator("GET", "/v1/runs?limit=1")).json()
        assert ([run["run"] for run in page["items"]], page["next"]) == ([first.json()["run"]], first.json()["run"])
        rest = (await api.operator("GET", f"/v1/runs?after={page['next']}")).json()
        assert (len(rest["items"]), rest["next"]) == (1, None)

    with_api(desk, story)


def test_a_run_says_what_it_waits_for_and_until_when(desk: Desk) -> None:
    async def story(api: Api) -> None:
        run = await api.create_run(join_seconds=60)
        await api.answer_one(0)
        found = (await api.operator("GET", f"/v1/runs/{run}")).json()
        assert (found["state"], found["step"]) == ("joining", "joining")
        assert [waiting["party"] for waiting in found["waiting_for"]] == ["party-2", "party-3"]
        assert found["deadline"] == "2027-01-15T08:01:00Z"
        joining = found["progress"][0]
        assert (joining["answered"], joining["of"]) == (["party-1"], ["party-1", "party-2", "party-3"])
        desk.clock.advance(60)
        desk.orchestrator.tick()
        late = (await api.operator("GET", f"/v1/runs/{run}")).json()
        assert (late["state"], late["culprit"]) == ("timed_out", "party-2, party-3")

    with_api(desk, story)


def test_a_run_is_cancelled_once(desk: Desk) -> None:
    async def story(api: Api) -> None:
        run = await api.create_run()
        answer = await api.operator("POST", f"/v1/runs/{run}/cancel", json={"reason": "wrong epsilon"})
        found = answer.json()
        assert (found["state"], found["culprit"], found["reason"]) == ("cancelled", "operator", "wrong epsilon")
        refused(await api.operator("POST", f"/v1/runs/{run}/cancel"), 409, "is over", "wrong epsilon")
        refused(await api.operator("POST", "/v1/runs/nowhere/cancel"), 404, "nowhere")
        refused(await api.operator("POST", f"/v1/runs/{run}/cancel", json={"reason": "a\x00"}), 422, "body.reason")

    with_api(desk, story)


# Events


def events_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: ")]


def test_events_are_numbered_and_resume_after_the_last_one_seen(desk: Desk) -> None:
    async def story(api: Api) -> None:
        run = await finished_run(api)
        stream = await api.operator("GET", f"/v1/runs/{run}/events")
        assert stream.headers["content-type"].startswith("text/event-stream")
        events = events_of(stream.text)
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
        assert (events[0]["kind"], events[-1]["kind"]) == ("created", "ended")
        assert "id: 1\n" in stream.text
        assert "event: answered\n" in stream.text
        rest = await api.operator("GET", f"/v1/runs/{run}/events", headers={"Last-Event-ID": str(len(events) - 2)})
        assert events_of(rest.text) == events[-2:]
        nothing = await api.operator("GET", f"/v1/runs/{run}/events", headers={"Last-Event-ID": "999"})
        assert events_of(nothing.text) == []
        refused(
            await api.operator("GET", f"/v1/runs/{run}/events", headers={"Last-Event-ID": "x"}), 422, "Last-Event-ID"
        )
        refused(await api.operator("GET", "/v1/runs/nowhere/events"), 404)

    with_api(desk, story)


def test_an_event_stream_tells_what_happens_while_it_is_open(desk: Desk) -> None:
    async def story(api: Api) -> None:
        run = await api.create_run()
        stream = asyncio.create_task(api.operator("GET", f"/v1/runs/{run}/events"))
        await asyncio.sleep(0.05)
        assert not stream.done()
        await api.operator("POST", f"/v1/runs/{run}/cancel")
        events = events_of((await asyncio.wait_for(stream, 5)).text)
        assert [event["kind"] for event in events] == ["created", "step", "ended"]

    with_api(desk, story)


def test_a_silent_stream_shows_that_it_lives(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("curator.runs.relay.SILENCE_SECONDS", 0.02)

    async def story(api: Api) -> None:
        run = await api.create_run()
        stream = asyncio.create_task(api.operator("GET", f"/v1/runs/{run}/events"))
        await asyncio.sleep(0.2)
        api.app.state.service.relay.close()
        assert ": still here\n" in (await asyncio.wait_for(stream, 5)).text

    with_api(desk, story)


# Results


def test_the_published_files_are_those_of_the_manifest(desk: Desk) -> None:
    async def story(api: Api) -> None:
        run = await finished_run(api)
        files = {name: (await api.operator("GET", f"/v1/runs/{run}/{name}")).content for name in PUBLISHED}
        digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
        data = (await api.operator("GET", f"/v1/runs/{run}/manifest.json")).content
        manifest = verify_manifest(data, digests, desk.keys.signing.public, SMALL_BITS)
        assert manifest.plan.run == run
        assert len(files["table.csv"].splitlines()) == 1 + sum(desk.rows)
        assert Schema.parse(files["schema.json"]) == desk.schema
        assert files["codebook.csv"].decode() == codebook_csv(desk.schema)
        page = await api.operator("GET", f"/v1/runs/{run}/codebook.html")
        assert page.headers["Content-Security-Policy"].startswith("default-src 'none'; style-src 'sha256-")

    with_api(desk, story)


def test_a_party_gets_the_table_signed_by_the_digest_of_the_manifest(desk: Desk) -> None:
    async def story(api: Api) -> None:
        run = await finished_run(api)
        target, table = f"/v1/runs/{run}/table.csv", desk.orchestrator.folder(run) / "table.csv"
        answer = await api.party(0, "GET", target)
        assert (answer.status_code, answer.content) == (200, table.read_bytes())
        part = await api.party(0, "GET", target, headers={"Range": "bytes=0-9"})
        assert (part.status_code, part.content) == (200, answer.content)
        published = table.read_bytes()
        table.write_bytes(b"changed")
        changed = await api.party(0, "GET", target)
        text = response_text(200, published, asked_text(changed.request), "1")
        verify(desk.keys.signing.public, RESPONSE, text, bytes.fromhex(changed.headers[CURATOR_SIGNATURE_HEADER]))
        table.unlink()
        refused(await api.party(0, "GET", target), 404, "table.csv", "removed")

    with_api(desk, story)


@pytest.mark.parametrize("state", ["joining", "cancelled"])
def test_a_run_that_has_not_finished_has_no_results(desk: Desk, state: str) -> None:
    async def story(api: Api) -> None:
        run = await api.create_run()
        if state == "cancelled":
            await api.operator("POST", f"/v1/runs/{run}/cancel")
        for name in ("table.csv", "table.parquet", "manifest.json", "tables.json"):
            refused(await api.operator("GET", f"/v1/runs/{run}/{name}"), 409, state)
        refused(await api.operator("GET", "/v1/runs/nowhere/table.csv"), 404)

    with_api(desk, story)


def test_a_result_that_was_removed_from_the_disk_is_missed_clearly(desk: Desk) -> None:
    async def story(api: Api) -> None:
        run = await finished_run(api)
        (desk.orchestrator.folder(run) / "network.json").unlink()
        refused(await api.operator("GET", f"/v1/runs/{run}/network.json"), 404, "network.json", "removed")

    with_api(desk, story)


def mixed_desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path, schema=Schema.parse(MIXED))


def test_new_tables_of_any_length_are_drawn_as_csv(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        run = await finished_run(api)
        texts = [(await api.operator("GET", f"/v1/runs/{run}/table.csv?rows=150000")).text for _ in range(2)]
        assert texts[0] != texts[1]
        rows = list(csv.reader(io.StringIO(texts[0], newline="")))
        assert rows[0] == ["age", 'the "odd", name', "bmi"]
        assert len(rows) == 150_001
        assert {row[1] for row in rows[1:]} <= {"a,b", 'say "x"', "c", ""}
        assert all(row[0] == "?" or -5 <= int(row[0]) <= 90 for row in rows[1:])
        for rows_asked in (0, 10**10, "x"):
            refused(await api.operator("GET", f"/v1/runs/{run}/table.csv?rows={rows_asked}"), 422, "query.rows")

    with_api(mixed_desk(tmp_path), story)


def test_parquet_holds_the_same_rows_with_numbers_as_numbers(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        run = await finished_run(api, rows=500)
        text = (await api.operator("GET", f"/v1/runs/{run}/table.csv")).text
        (tmp_path / "t.parquet").write_bytes((await api.operator("GET", f"/v1/runs/{run}/table.parquet")).content)
        expected = [
            (None if age == "?" else int(age), odd or None, float(bmi))
            for age, odd, bmi in list(csv.reader(io.StringIO(text, newline="")))[1:]
        ]
        with duckdb.connect() as database:
            table = database.read_parquet(str(tmp_path / "t.parquet"))
            assert table.columns == ["age", 'the "odd", name', "bmi"]
            assert [str(kind) for kind in table.types] == ["BIGINT", "VARCHAR", "DOUBLE"]
            assert table.fetchall() == expected
        drawn = await api.operator("GET", f"/v1/runs/{run}/table.parquet?rows=70000")
        (tmp_path / "u.parquet").write_bytes(drawn.content)
        with duckdb.connect() as database:
            assert len(database.read_parquet(str(tmp_path / "u.parquet"))) == 70_000
        names = sorted([*PUBLISHED, "manifest.json"])  # and no scratch file
        assert sorted(path.name for path in desk.orchestrator.folder(run).iterdir()) == names

    desk = mixed_desk(tmp_path)
    with_api(desk, story)


def test_a_run_with_paillier_and_independent_models_draw_new_rows_too(tmp_path: Path) -> None:
    async def story(api: Api) -> None:
        selected = await finished_run(api, key="a", noise="selected", parties=["party-1", "party-2"])
        independent = await finished_run(api, key="b", method="independent")
        for run in (selected, independent):
            text = (await api.operator("GET", f"/v1/runs/{run}/table.csv?rows=11")).text
            assert len(text.splitlines()) == 12

    with_api(Desk(tmp_path, crypto=PaillierCrypto()), story)


# Health and the document


def test_health_is_told_without_a_key_and_readiness_truly(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(api: Api) -> None:
        assert (await api.http.get("/healthz")).json() == {"status": "alive"}
        ready = await api.http.get("/readyz")
        found = {"status": "ready", "checks": {"store": "ok", "disk": "ok", "clock": "ok"}}
        assert (ready.status_code, ready.json(), ready.headers[VERSION_HEADER]) == (200, found, "1")

        def away(*_arguments: Any, **_more: Any) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("curator.operations.health.tempfile.TemporaryFile", away)
        later(api)
        full = await api.http.get("/readyz")
        refused(full, 503, "disk: No space left")
        assert full.headers["retry-after"] == "5"
        monkeypatch.undo()
        monkeypatch.setattr("curator.operations.health.SMALLEST_FREE", 1 << 62)
        assert (await api.http.get("/readyz")).status_code == 503  # the same within a second: asking costs nothing
        later(api)
        refused(await api.http.get("/readyz"), 503, "MiB are free, at least", "are needed: make room")
        assert (await api.http.get("/healthz")).status_code == 200

    with_api(desk, story)


def later(api: Api) -> None:
    """A second later, by both clocks."""
    health, before = service_of(api).health, service_of(api).health.steady
    api.desk.clock.advance(1.001)
    health.steady = lambda: before() + 1001


def service_of(api: Api) -> Service:
    found: Service = api.app.state.service
    return found


def test_readiness_fails_with_the_clock(desk: Desk) -> None:
    """A clock that jumps, or that most parties contradict with their signed times."""

    async def story(api: Api) -> None:
        assert (await api.http.get("/readyz")).status_code == 200
        desk.clock.advance(3600)
        later(api)
        refused(await api.http.get("/readyz"), 503, "clock: this machine's clock jumped by 3600 s")
        for _ in range(320):  # later than any request that was admitted can say
            later(api)
        for number in (0, 1):
            late = await api.party(number, "GET", "/v1/roster", time_ms=desk.clock() - 3_600_000)
            refused(late, 401, "Correct the clock that is wrong")
        refused(await api.http.get("/readyz"), 503, "3600 s ahead of the signed time of 2 of 2 peers")
        found = (await api.party(0, "GET", "/v1/time")).json()
        assert found == {"time_ms": desk.clock()}
        later(api)
        assert (await api.http.get("/readyz")).status_code == 200  # one of two

    with_api(desk, story)


def test_the_metrics_tell_when_the_store_is_away(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(api: Api) -> None:
        scrape = {"Authorization": f"Bearer {service_of(api).metrics_token}"}
        assert 'subn_curator_runs{state="joining"} 0.0' in (await api.http.get("/metrics", headers=scrape)).text

        @contextmanager
        def away(_store: Any) -> Iterator[None]:
            raise StoreUnavailable("the database is away")
            yield

        monkeypatch.setattr("curator.store.store.Store.reading", away)
        later(api)
        text = (await api.http.get("/metrics", headers=scrape)).text
        assert 'subn_curator_ready{check="store"} 0.0' in text
        assert 'subn_curator_ready{check="disk"} 1.0' in text
        assert "subn_curator_runs{" not in text

    with_api(desk, story)


def test_readiness_fails_with_the_store(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(api: Api) -> None:
        def away(_store: Any) -> None:
            raise StoreUnavailable("the database is away")

        monkeypatch.setattr("curator.store.store.Store.check", away)
        refused(await api.http.get("/readyz"), 503, "store: the database is away")

    with_api(desk, story)


def test_the_document_names_every_door_and_the_one_shape_of_errors(desk: Desk) -> None:
    async def story(api: Api) -> None:
        document = (await api.http.get("/openapi.json")).json()
        assert (await api.http.get("/openapi.json")).json() == document
        assert document["components"]["schemas"]["Problem"]["required"] == ["type", "title", "status", "detail"]
        assert "HTTPValidationError" not in json.dumps(document)
        for path, operations in document["paths"].items():
            for operation in operations.values():
                content = operation["responses"]["default"]["content"]
                assert content["application/problem+json"]["schema"]["$ref"].endswith("/Problem")
                is_open = path in OPEN
                assert bool(operation.get("security")) != is_open, path
        examples = document["paths"]["/v1/plans"]["post"]["requestBody"]["content"]["application/json"]["examples"]
        assert set(examples) == {"all", "named"}
        assert {"/docs", "/redoc"}.isdisjoint(document["paths"])
        assert (await api.http.get("/docs")).status_code == 404

    with_api(desk, story)


def test_every_route_but_health_asks_who_calls(desk: Desk) -> None:
    async def story(api: Api) -> None:
        document = (await api.http.get("/openapi.json")).json()
        for path, operations in document["paths"].items():
            for method in operations:
                target = path.replace("{run}", "x").replace("{hash}", "0" * 64).replace("{name}", "x")
                target = target.replace("{dataset}", "x").replace("{step}", "joining")
                answer = await api.http.request(method.upper(), target)
                if path in OPEN:
                    assert answer.status_code == 200
                else:
                    assert answer.status_code in (401, 422), (method, path, answer.text)
                    if answer.status_code == 422:
                        assert path == "/v1/enrolments"  # its key is in the body, which is read first

    with_api(desk, story)
