"""What the services are sent that they must not take, over a real socket: each refusal says why, changes nothing."""

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from crypto.randomness import Stream
from crypto.signing import SigningKey, sign, verify
from protocol.exact import canonical_json, digest
from protocol.identity import Identity
from protocol.messages import signatures as a
from protocol.messages.pins import parted
from protocol.messages.tasks import Refusal, decode, encode
from protocol.messages.versions import SPOKEN
from protocol.plan.plan import Plan
from protocol.plan.terms import Terms
from protocol.run.agreement import agree
from protocol.run.party import accept
from protocol.tables.counting import Rows
from protocol.tables.schema import Schema
from tests.end_to_end.cluster import Cluster, wait
from tests.end_to_end.conftest import PARTIES
from tests.support.signed_requests import asked_text
from tests.support.small_runs import identity, random_codes

HOUR_MS = 3_600_000
ROWS = 40


class Raw:
    """A party that is no program of ours: it signs what it likes."""

    def __init__(self, home: Cluster, name: str, own: Identity) -> None:
        self.home, self.name, self.own = home, name, own
        self.http = home.client()

    def __call__(
        self,
        method: str,
        target: str,
        body: Any = b"",
        *,
        key: SigningKey | None = None,
        nonce: str = "",
        late_ms: int = 0,
        headers: dict[str, str] | None = None,
        sent: bytes | None = None,
        signed_target: str = "",
    ) -> httpx.Response:
        content = body if isinstance(body, bytes) else canonical_json(body)
        now, nonce = int(time.time() * 1000) + late_ms, nonce or Stream.system().take(16).hex()
        version = (headers or {}).get(a.VERSION_HEADER, "")
        text = a.request_text(method, signed_target or target, digest(content), self.name, now, nonce, version)
        signed = {
            a.PARTY_HEADER: quote(self.name),
            a.TIME_HEADER: str(now),
            a.NONCE_HEADER: nonce,
            a.DIGEST_HEADER: digest(content),
            a.SIGNATURE_HEADER: sign(key or self.own.signing, a.REQUEST, text).hex(),
            "Content-Type": "application/octet-stream" if isinstance(body, bytes) else "application/json",
        }
        return self.http.request(
            method, target, content=content if sent is None else sent, headers=signed | (headers or {})
        )

    def enrolment(self, **changes: Any) -> dict[str, Any]:
        keys = {"signing_key": self.own.signing.public.hex(), "exchange_key": self.own.exchange.public.hex()}
        return {"code": parted(self.home.code(self.name))[0], "name": self.name} | keys | changes

    def deliver(self, run: str, step: str, body: bytes, receipt: bytes) -> httpx.Response:
        return self("PUT", f"/v1/runs/{run}/outbox/{step}", body, headers={a.RECEIPT_HEADER: receipt.hex()})

    def receipt(self, terms: Terms, step: str, body: bytes, charge: Any = 0, role: bytes = a.RECEIPT) -> bytes:
        return sign(self.own.signing, role, a.receipt_text(terms.plan_hash, step, charge, body))


@pytest.fixture(scope="module")
def raw(home: Cluster) -> Iterator[Raw]:
    """Enrolled, with rows on offer."""
    found = Raw(home, "raw", identity(40))
    assert found("POST", "/v1/enrolments", found.enrolment()).status_code == 201
    assert found("PUT", "/v1/offers/rows", {"schema": home.schema.to_json(), "rows": ROWS}).status_code == 204
    yield found
    found.http.close()


@pytest.fixture
def run(home: Cluster, raw: Raw) -> Iterator[str]:
    """A run that waits for the raw party."""
    name = home.begin(PARTIES[0], "raw")
    yield name
    home.http.post(f"/v1/runs/{name}/cancel", json={})


def terms_of(home: Cluster, raw: Raw) -> Terms:
    task = decode(raw("GET", "/v1/inbox").content, "curator")
    return agree(task.proposal, Schema.parse(task.schema_text))


def acceptance(raw: Raw, terms: Terms) -> bytes:
    codes = random_codes(terms.schema, [ROWS])[0]
    me = [member.name for member in terms.plan.members].index(raw.name)
    _, reply = accept(terms, me, raw.own, Rows(terms.domain, terms.encoding.encode(codes)), Stream.system())
    return encode(reply)


def refused(answer: httpx.Response, status: int, text: str) -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    found = answer.json()
    assert found["status"] == status
    assert text in found["detail"], found["detail"]


# Who asks


def test_a_clock_that_is_off_by_an_hour(raw: Raw) -> None:
    for late in (HOUR_MS, -HOUR_MS):
        answer = raw("GET", "/v1/runs/mine", late_ms=late)
        refused(answer, 401, "your clock says 20")
        assert "the curator's says 20" in answer.json()["detail"]
    assert raw("GET", "/v1/runs/mine", late_ms=240_000).status_code == 200


def test_a_request_that_comes_twice(raw: Raw) -> None:
    assert raw("GET", "/v1/roster", nonce="n" * 32).status_code == 200
    refused(raw("GET", "/v1/roster", nonce="n" * 32), 401, "has already been received")


def test_signatures_that_do_not_fit(raw: Raw) -> None:
    wrong_key = SigningKey.generate()
    refused(raw("GET", "/v1/roster", key=wrong_key), 401, "not signed with the key of 'raw'")
    refused(raw("GET", "/v1/roster", signed_target="/v1/receipts"), 401, "not signed")
    refused(raw("PUT", "/v1/offers/rows", {"rows": 1}, sent=b'{"rows": 2}'), 401, "not the one whose digest")
    refused(raw("GET", "/v1/roster", headers={a.PARTY_HEADER: quote(PARTIES[1])}), 401, "not signed")
    refused(raw("GET", "/v1/roster", headers={a.PARTY_HEADER: "nobody"}), 401, "no party 'nobody'")


def test_every_answer_to_a_party_is_signed(home: Cluster, raw: Raw) -> None:
    for nonce, target, status in (("a" * 32, "/v1/runs/mine", 200), ("b" * 32, "/v1/inbox?wait=99", 422)):
        answer = raw("GET", target, nonce=nonce)
        assert answer.status_code == status
        text = a.response_text(status, answer.content, asked_text(answer.request), str(SPOKEN))
        signature = bytes.fromhex(answer.headers[a.CURATOR_SIGNATURE_HEADER])
        verify(bytes.fromhex(home.public), a.RESPONSE, text, signature)
        assert answer.headers[a.VERSION_HEADER] == str(SPOKEN)


def test_a_party_is_no_operator_and_nobody_is_anybody(home: Cluster, raw: Raw, run: str) -> None:
    assert raw("GET", "/v1/runs").status_code == 401
    for target in ("/v1/runs", f"/v1/runs/{run}", f"/v1/runs/{run}/table.csv", "/v1/parties"):
        for headers in ({}, {"Authorization": "Bearer " + "0" * 64}):
            with home.client(**headers) as somebody:
                assert somebody.get(target).status_code == 401


def test_a_second_party_of_the_same_name(home: Cluster, raw: Raw) -> None:
    second = Raw(home, "raw", identity(41))
    refused(home.http.post("/v1/parties/codes", json={"name": "raw"}), 409, "raw")
    refused(second("POST", "/v1/enrolments", {**second_enrolment(second), "code": "f" * 64}), 403, "")
    second.http.close()


def second_enrolment(party: Raw) -> dict[str, Any]:
    return {"name": party.name, "signing_key": party.own.signing.public.hex(), "exchange_key": "ab" * 32}


def test_one_key_under_two_names(home: Cluster, raw: Raw) -> None:
    twin = Raw(home, "twin", raw.own)
    refused(twin("POST", "/v1/enrolments", twin.enrolment()), 409, "")
    twin.http.close()


# What is sent


def test_unknown_fields(home: Cluster, raw: Raw) -> None:
    refused(home.http.post("/v1/plans", json=home.body(PARTIES[0], surprise=1)), 422, "surprise")
    refused(raw("PUT", "/v1/offers/rows", {"schema": "{}", "rows": 1, "extra": 2}), 422, "extra")
    refused(raw("POST", "/v1/enrolments", {**second_enrolment(raw), "code": "x", "more": True}), 422, "more")
    schema = {"attributes": [{"name": "a", "kind": "categorical", "values": ["x", "y"], "colour": "red"}]}
    refused(home.http.post("/v1/schemas", json=schema), 422, "colour")


def test_values_that_cannot_be(home: Cluster) -> None:
    for wishes in ({"epsilon": 0.8}, {"epsilon": "-1"}, {"epsilon": "1/0"}, {"method": "magic"}, {"key_bits": 512}):
        answer = home.http.post("/v1/plans", json=home.body(*PARTIES[:2], **wishes))
        assert answer.status_code == 422, (wishes, answer.text)
        assert answer.json()["detail"]
    assert home.http.post("/v1/plans", content=b"{").status_code == 422
    refused(home.http.post("/v1/plans", json=home.body("nobody", PARTIES[0])), 422, "no party 'nobody'")
    refused(home.http.post("/v1/plans", json=home.body(*PARTIES[:2]) | {"schema": "0" * 64}), 404, "0" * 12)


def test_bodies_over_the_limit(home: Cluster, raw: Raw, run: str) -> None:
    refused(home.http.post("/v1/plans", content=b" " * (1 << 16) + b"{}"), 413, "larger than 65,536 bytes")
    refused(home.http.post("/v1/schemas", content=b" " * (2 << 20) + b"{}"), 413, "larger than 2,097,152 bytes")

    def chunks() -> Iterator[bytes]:
        for _ in range(40):
            yield b" " * (1 << 16)

    refused(home.http.post("/v1/plans", content=chunks()), 413, "larger than 65,536 bytes")


def test_another_version_is_refused_at_the_door(raw: Raw) -> None:
    answer = raw("GET", "/v1/roster", headers={a.VERSION_HEADER: "2"})
    refused(answer, 400, "the curator speaks version 1 of the protocol, the caller version 2: bring the curator up to")
    assert answer.json()["type"].endswith(":wrong-version")
    assert raw("GET", "/v1/roster", headers={a.VERSION_HEADER: "1"}).status_code == 200


@pytest.mark.parametrize("broken", ["version", "short", "long", "empty"])
def test_messages_that_cannot_be_read_end_the_run(home: Cluster, raw: Raw, run: str, broken: str) -> None:
    terms = terms_of(home, raw)
    good = acceptance(raw, terms)
    body, why = {
        "version": (good[:4] + b"\2" + good[5:], "speaks protocol version 2, this side speaks 1"),
        "short": (good[:-1], "raw"),
        "long": (good + b"x", "raw"),
        "empty": (b"", "raw"),
    }[broken]
    assert raw.deliver(run, "joining", body, raw.receipt(terms, "joining", body)).status_code == 204
    ended = home.until(run, "failed")
    assert ended["culprit"] == "raw"
    assert why in ended["reason"]


# Answers


def test_an_answer_to_a_step_that_was_not_asked(home: Cluster, raw: Raw, run: str) -> None:
    terms = terms_of(home, raw)
    body = encode(Refusal(plan=terms.plan_hash, step="correlations", reason="no"))
    answer = raw.deliver(run, "correlations", body, raw.receipt(terms, "correlations", body))
    refused(answer, 409, "the run waits for 'joining'")
    assert answer.json()["run"] == run
    refused(raw.deliver("no-such-run", "joining", body, b"\0" * 64), 404, "there is no run 'no-such-run'")
    other = home.begin(*PARTIES[:2])
    refused(raw.deliver(other, "joining", body, b"\0" * 64), 404, "of raw")
    assert home.run(run)["state"] == "joining"


def test_an_answer_is_taken_once_and_as_it_was(home: Cluster, raw: Raw, run: str) -> None:
    terms = terms_of(home, raw)
    body = acceptance(raw, terms)
    receipt = raw.receipt(terms, "joining", body)
    refused(raw.deliver(run, "joining", body, b"\1" * 64), 403, "receipt for 'joining' does not fit")
    charged = raw.receipt(terms, "joining", body, charge=1)
    refused(raw.deliver(run, "joining", body, charged), 403, "the charge 0")
    assert raw.deliver(run, "joining", body, receipt).status_code == 204
    assert raw.deliver(run, "joining", body, receipt).status_code == 204
    other = encode(Refusal(plan=terms.plan_hash, step="joining", reason="a change of mind"))
    refused(raw.deliver(run, "joining", other, raw.receipt(terms, "joining", other)), 409, digest(body))
    (kept,) = [one for one in raw("GET", "/v1/receipts").json() if one["run"] == run]
    assert (kept["step"], kept["charge"], kept["digest"]) == ("joining", "0", digest(body))


def test_an_acceptance_of_another_plan(home: Cluster, raw: Raw, run: str) -> None:
    """Whoever accepts another plan than the one that was proposed has accepted nothing, and it shows at once."""
    terms = terms_of(home, raw)
    changed = replace(terms, plan=Plan.model_validate(terms.plan.model_copy(update={"run": "another"})))
    body = acceptance(raw, changed)
    assert raw.deliver(run, "joining", body, raw.receipt(terms, "joining", body)).status_code == 204
    ended = home.until(run, "failed")
    assert (ended["culprit"], "another plan" in ended["reason"]) == ("raw", True)


def test_an_acceptance_with_a_foreign_signature_fails_the_run(home: Cluster, raw: Raw, run: str) -> None:
    """A plan changed after acceptance: the acceptance does not carry over."""
    terms = terms_of(home, raw)
    changed = replace(terms, plan=Plan.model_validate(terms.plan.model_copy(update={"run": "another"})))
    reply = decode(acceptance(raw, changed), raw.name)
    body = encode(reply.model_copy(update={"plan": terms.plan_hash}))
    assert raw.deliver(run, "joining", body, raw.receipt(terms, "joining", body)).status_code == 204
    ended = home.until(run, "failed")
    assert ended["culprit"] == "raw"
    assert home.subn("wait", run).returncode == 1


def test_a_refusal_ends_the_run_with_its_reason(home: Cluster, raw: Raw, run: str) -> None:
    terms = terms_of(home, raw)
    body = encode(Refusal(plan=terms.plan_hash, step="joining", reason="our lawyers are away"))
    as_an_answer = raw.receipt(terms, "joining", body)
    refused(raw.deliver(run, "joining", body, as_an_answer), 403, "receipt for 'joining' does not fit")
    receipt = raw.receipt(terms, "joining", body, role=a.REFUSAL_RECEIPT)
    assert raw.deliver(run, "joining", body, receipt).status_code == 204
    ended = home.until(run, "refused")
    assert (ended["culprit"], ended["reason"]) == ("raw", "our lawyers are away")
    late = acceptance(raw, terms)
    refused(raw.deliver(run, "joining", late, raw.receipt(terms, "joining", late)), 409, "")
    assert json.loads(home.subn("wait", run, "--json").stdout)["state"] == "refused"


def test_only_members_and_operators_get_a_table(home: Cluster, raw: Raw) -> None:
    run = home.finished(*PARTIES[:2])
    refused(raw("GET", f"/v1/runs/{run}/table.csv"), 404, "there is no run")
    member = Raw(home, PARTIES[0], Identity(home.sites[PARTIES[0]].signing, raw.own.exchange))
    assert member("GET", f"/v1/runs/{run}/table.csv").content == home.get(run, "table.csv")
    refused(member("GET", f"/v1/runs/{run}/table.csv?rows=5"), 403, "leave rows out")
    assert member("GET", f"/v1/runs/{run}/network.json").status_code == 401
    member.http.close()


# Midway


@pytest.fixture
def begun(home: Cluster, raw: Raw, request: pytest.FixtureRequest) -> Iterator[str]:
    """A run whose parties have joined, and in which everybody but the raw party has answered the first question."""
    run = home.begin(PARTIES[0], PARTIES[1], "raw", **request.param)
    for name in PARTIES[:2]:
        site = home.sites[name]
        wait(lambda site=site: [one for one in site.cli("requests") if one["run"] == run], "a request", site.running)
        site.cli("accept", run)
    terms = terms_of(home, raw)
    body = acceptance(raw, terms)
    assert raw.deliver(run, "joining", body, raw.receipt(terms, "joining", body)).status_code == 204
    yield run
    home.http.post(f"/v1/runs/{run}/cancel", json={})


def settled_account(home: Cluster, name: str, run: str) -> dict[str, Any]:
    site = home.sites[name]

    def ended() -> Any:
        return [one for one in site.cli("requests", "--all") if one["run"] == run and one["state"] == "ended"]

    found: dict[str, Any] = wait(ended, f"{name} to settle", site.running)[0]
    return found


@pytest.mark.parametrize("begun", [{"update": "accumulate"}], indirect=True)
def test_what_was_spent_in_a_run_that_is_cancelled_midway_stays_spent(home: Cluster, begun: str) -> None:
    def waits_for_raw() -> Any:
        found = home.run(begun)
        return found if found["step"] == "correlations" and len(found["waiting_for"]) == 1 else None

    found = wait(waits_for_raw, "the others to answer")
    assert (found["state"], found["waiting_for"][0]["party"]) == ("running", "raw")
    cancelled = home.subn("cancel", begun, "--json")
    assert (cancelled.returncode, json.loads(cancelled.stdout)["state"]) == (0, "cancelled")
    assert home.subn("wait", begun).returncode == 3
    for name in PARTIES[:2]:
        request = settled_account(home, name, begun)
        assert (request["outcome"], request["reserved"], request["spent"]) == ("cancelled", "0", "1/10")
        assert not list((home.sites[name].home / "rows").glob("*"))


@pytest.mark.parametrize("begun", [{"step_seconds": 6}], indirect=True)
def test_a_step_that_is_not_answered_in_time_ends_the_run(home: Cluster, begun: str) -> None:
    ended = home.until(begun, "timed_out")
    assert (ended["culprit"], ended["reason"]) == ("raw", "no answer to 'levels' before its deadline from raw")
    assert home.subn("wait", begun).returncode == 4
