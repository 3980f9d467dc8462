"""The party's line to the curator: what is signed, what is believed, and how long it tries."""

import asyncio
from typing import Any

import httpx
import pytest
from fastapi import Request, Response

from crypto.randomness import Stream
from crypto.signing import SigningKey
from party.curator_link import client
from party.curator_link.client import Backoff, Curator
from party.errors import Declined, TalkError, Unreachable, Untrusted
from protocol.messages.signatures import CURATOR_SIGNATURE_HEADER
from tests.support.fake_curator import NOW, URL, FakeCurator
from tests.support.small_runs import BITS, identity

NAME = "party-1"


class Waits:
    """Time that passes only when somebody waits."""

    def __init__(self) -> None:
        self.now, self.slept = NOW, list[float]()

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


@pytest.fixture
def fake() -> FakeCurator:
    curator = FakeCurator()
    curator.know(NAME, identity(0).signing.public, identity(0).exchange.public)
    return curator


@pytest.fixture
def waits() -> Waits:
    return Waits()


def line(fake: FakeCurator, waits: Waits, **changes: Any) -> Curator:
    chosen = {
        "key": identity(0).signing,
        "curator_key": fake.key.public,
        "transport": fake.transport(),
        "clock": waits.clock,
        "sleep": waits.sleep,
        "stream": Stream.keyed(b"client"),
        "tries": 3,
    } | changes
    return Curator(URL, chosen.pop("name", NAME), chosen.pop("key"), chosen.pop("curator_key"), **chosen)


def ask(curator: Curator, what: str, *arguments: Any) -> Any:
    async def once() -> Any:
        async with curator:
            return await getattr(curator, what)(*arguments)

    return asyncio.run(once())


def failing(times: int, status: int = 503) -> Any:
    left = [times]

    def fault(_request: Request) -> Response | None:
        left[0] -= 1
        return Response("try later", status) if left[0] >= 0 else None

    return fault


def test_signed_requests_are_answered(fake, waits):
    ask(line(fake, waits), "offer", "patients", BITS.to_json(), 30)
    assert fake.offers == {(NAME, "patients"): {"schema": BITS.to_json(), "rows": 30}}
    assert [peer.name for peer in ask(line(fake, waits, stream=None), "roster")] == [NAME]


def test_an_empty_inbox_is_nothing(fake, waits):
    assert ask(line(fake, waits), "inbox", 0) is None


def test_paths_and_queries_are_signed_as_sent(fake, waits):
    """Names may hold blanks and letters beyond ASCII; a run's name may hold a slash."""
    fake.know("Spital Süd 1", identity(0).signing.public, identity(0).exchange.public)
    own = line(fake, waits, name="Spital Süd 1")
    ask(own, "offer", "Fälle 2024", BITS.to_json(), 5)
    assert ("Spital Süd 1", "Fälle 2024") in fake.offers
    own = line(fake, waits, name="Spital Süd 1", stream=None)
    assert ask(own, "inbox", 0, ["a run/1", "ü"]) is None


def test_who_is_not_enrolled_learns_so(fake, waits):
    with pytest.raises(Declined, match="no party 'party-9' is enrolled") as refusal:
        ask(line(fake, waits, name="party-9"), "my_runs")
    assert refusal.value.status == 401


def test_a_clock_off_by_an_hour_is_shown_with_both_times(fake, waits):
    waits.now += 3600
    with pytest.raises(Declined, match="your clock says 1800003600000 ms, the curator's says 1800000000000 ms"):
        ask(line(fake, waits), "my_runs")


def test_a_revoked_party_learns_so(fake, waits):
    fake.parties[NAME]["revoked"] = True
    with pytest.raises(Declined, match="'party-1' was revoked by the operator"):
        ask(line(fake, waits), "inbox", 0)
    assert waits.slept == []


# What is believed


def test_an_answer_by_another_curator_is_refused(fake, waits):
    with pytest.raises(Untrusted, match="not signed by the curator that this party has enrolled with"):
        ask(line(fake, waits, curator_key=SigningKey.generate().public), "my_runs")
    assert waits.slept == []


@pytest.mark.parametrize("signature", ["", "00", "zz", "00" * 64])
def test_an_answer_without_a_proper_signature_is_refused(fake, waits, signature):
    def spoil(_request: Request, answer: Response) -> Response:
        answer.headers[CURATOR_SIGNATURE_HEADER] = signature
        return answer

    fake.after.append(spoil)
    with pytest.raises(Untrusted):
        ask(line(fake, waits), "roster")


def test_a_refusal_by_a_proxy_is_not_taken_for_the_curators(fake, waits):
    fake.before.append(lambda _request: Response("too large", 413))
    with pytest.raises(Untrusted, match=r"\(413\)"):
        ask(line(fake, waits), "my_runs")


def test_an_answer_is_good_for_its_own_request_only(fake, waits):
    """A replayed answer carries the curator's signature, but under another nonce."""
    seen: list[Response] = []

    def replay(_request: Request, answer: Response) -> Response:
        seen.append(answer)
        return seen[0]

    fake.after.append(replay)
    ask(line(fake, waits), "my_runs")
    with pytest.raises(Untrusted):
        ask(line(fake, waits, stream=Stream.keyed(b"later")), "my_runs")


def test_an_answer_that_cannot_be_read_says_where(fake, waits):
    fake.parties[NAME]["revoked"] = None
    with pytest.raises(TalkError, match=r"the curator's answer cannot be read: 0\.revoked: "):
        ask(line(fake, waits), "roster")


def test_lists_are_asked_for_page_by_page_and_not_without_end(fake, waits, monkeypatch):
    plan = {"plan": "0" * 64, "charge": "0", "delta": "0", "digest": "0" * 64, "signature": "0" * 128}
    fake.receipts[NAME] = [{"run": f"run-{number}", "step": "joining"} | plan for number in range(5)]
    monkeypatch.setattr(client, "MOST_LISTED", 2)
    assert [one.run for one in ask(line(fake, waits), "receipts")] == [f"run-{number}" for number in range(5)]
    assert [one for one in fake.requests if "receipts" in one] == ["GET /v1/receipts"] * 3
    monkeypatch.setattr(client, "MOST_LISTED_IN_ALL", 3)
    with pytest.raises(TalkError, match="the curator lists more than 3 entries"):
        ask(line(fake, waits, stream=Stream.keyed(b"later")), "receipts")


# How long it tries


def test_it_tries_again_with_a_fresh_nonce_until_somebody_answers(fake, waits):
    fake.before.append(failing(2))
    logged: list[tuple[str, dict[str, Any]]] = []
    own = line(fake, waits, log=lambda event, **fields: logged.append((event, fields)))
    assert ask(own, "my_runs") == []
    assert len(fake.requests) == 3
    assert len(waits.slept) == 2
    assert [event for event, _ in logged] == ["waiting for the curator"] * 2
    assert logged[0][1]["reason"] == f"{URL} says 503"
    assert [fields["tries"] for _, fields in logged] == [1, 2]


def test_it_gives_up_after_the_given_tries(fake, waits):
    fake.before.append(failing(10, 500))
    with pytest.raises(Unreachable, match=r"says 500$"):
        ask(line(fake, waits), "my_runs")
    assert len(fake.requests) == 3


def test_nobody_at_the_address(waits, fake):
    def nobody(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("connection refused", request=request)

    own = line(fake, waits, transport=httpx.MockTransport(nobody))
    with pytest.raises(Unreachable, match=r"does not answer \(ConnectError: connection refused\)"):
        ask(own, "my_runs")


def test_waiting_grows_up_to_its_bound_with_full_jitter():
    stream, backoff = Stream.keyed(b"jitter"), Backoff(first=1, longest=8)
    waits = [[backoff.seconds(failures, stream) for _ in range(400)] for failures in (0, 1, 2, 3, 50, 5000)]
    for ceiling, found in zip((1, 2, 4, 8, 8, 8), waits, strict=True):
        assert 0 <= min(found) < 0.1 * ceiling
        assert 0.9 * ceiling < max(found) < ceiling


# Enrolment


def test_enrolment_brings_both_keys(fake, waits):
    fake.codes["party-2"] = "secret-code"
    own = line(fake, waits, name="party-2", key=identity(1).signing)
    ask(own, "enrol", "secret-code", identity(1).exchange.public)
    assert fake.parties["party-2"]["exchange_key"] == identity(1).exchange.public.hex()


def test_a_wrong_code_enrols_nobody(fake, waits):
    own = line(fake, waits, name="party-2", key=identity(1).signing)
    with pytest.raises(Declined, match="this code is not valid for this name"):
        ask(own, "enrol", "wrong", identity(1).exchange.public)
    assert "party-2" not in fake.parties


def test_nobody_but_the_curator_that_the_code_proves_enrols_a_party(fake, waits):
    fake.codes["party-2"] = "secret-code"
    own = line(fake, waits, name="party-2", key=identity(1).signing, curator_key=identity(7).signing.public)
    with pytest.raises(Untrusted):
        ask(own, "enrol", "secret-code", identity(1).exchange.public)


def test_new_keys_are_announced_by_the_old_and_vouched_for_by_the_new(fake, waits):
    ask(line(fake, waits), "rotate", identity(5))
    assert fake.parties[NAME]["signing_key"] == identity(5).signing.public.hex()
    with pytest.raises(Declined, match="the signature does not fit"):
        ask(line(fake, waits, stream=None), "my_runs")
    assert ask(line(fake, waits, key=identity(5).signing, stream=None), "my_runs") == []
