"""An answer is promised by its hash before it is sent: of two copies of one party, one is told so before it sends."""

import asyncio
from collections.abc import Callable
from hashlib import sha256
from threading import Thread

import pytest

from crypto.signing import sign
from curator.errors import Forbidden, NotAsked, NotFound, OtherBytes, RunEnded
from curator.runs import views
from protocol.errors import SubnError
from protocol.messages.signatures import HELD_HEADER, RECEIPT, REFUSAL_RECEIPT, receipt_text_of_digest
from tests.support.api import Api, with_api
from tests.support.curator import Desk
from tests.support.curator_runs import PLAIN, outgoing

MINE, OTHERS = (sha256(text).hexdigest() for text in (b"mine", b"another copy's"))


def receipt(desk: Desk, run: str, digest: str, role: bytes = RECEIPT, step: str = "joining", charge: int = 0) -> bytes:
    text = receipt_text_of_digest(desk.views.record(run).plan_hash, step, charge, digest)
    return sign(desk.parties[0].identity.signing, role, text)


def promise(desk: Desk, run: str, digest: str, **changes: object) -> None:
    signed = receipt(desk, run, digest, **changes)  # type: ignore[arg-type]
    desk.orchestrator.promise(run, "joining", "party-1", digest, signed)


def test_what_was_promised_first_is_what_is_taken(desk: Desk) -> None:
    run = desk.run(**PLAIN)
    sent = outgoing(desk, 0)
    promise(desk, run, OTHERS)
    promise(desk, run, OTHERS)  # its answer may have been lost
    with pytest.raises(OtherBytes, match=f"SHA-256 {OTHERS} was accepted, this is {MINE}"):
        promise(desk, run, MINE)
    with pytest.raises(OtherBytes, match="has answered 'joining' with other bytes"):
        desk.orchestrator.deliver(run, "joining", "party-1", sent.body, sent.receipt)
    assert "party-1" in [one.party for one in desk.orchestrator.view(run).waiting_for]


def test_a_promise_is_kept_after_a_kill_and_kept_by_delivering(desk: Desk) -> None:
    run = desk.run(**PLAIN)
    sent = outgoing(desk, 0)
    digest = sha256(sent.body).hexdigest()
    promise(desk, run, digest)
    desk.restart()
    with pytest.raises(OtherBytes):
        promise(desk, run, MINE)
    desk.orchestrator.deliver(run, "joining", "party-1", sent.body, sent.receipt)
    promise(desk, run, digest)
    desk.orchestrator.deliver(run, "joining", "party-1", sent.body, sent.receipt)
    with pytest.raises(OtherBytes):
        promise(desk, run, MINE)


def test_a_promise_is_a_receipt_from_then_on(desk: Desk) -> None:
    """A copy that is behind learns of it, even if the bytes never came."""
    run = desk.run(**PLAIN)
    promise(desk, run, MINE)
    (told,) = desk.views.receipts("party-1")
    assert (told.run, told.step, told.digest, told.charge) == (run, "joining", MINE, 0)
    assert desk.views.receipts_held("party-1") == 1
    assert desk.views.receipts_held("party-2") == 0
    sent = outgoing(desk, 1)
    desk.orchestrator.promise(run, "joining", "party-2", sha256(sent.body).hexdigest(), sent.receipt)
    desk.orchestrator.deliver(run, "joining", "party-2", sent.body, sent.receipt)
    assert [one.digest for one in desk.views.receipts("party-2")] == [sha256(sent.body).hexdigest()]
    assert desk.views.receipts_held("party-2") == 1


def test_a_refusal_can_be_promised_too(desk: Desk) -> None:
    run = desk.run(**PLAIN)
    promise(desk, run, MINE, role=REFUSAL_RECEIPT)
    assert desk.views.receipts("party-1")[0].charge == 0


@pytest.mark.parametrize("changes", [{"charge": 1}, {"step": "correlations"}, {"role": b"another role"}])
def test_a_promise_without_a_receipt_that_fits_is_none(desk: Desk, changes: dict[str, object]) -> None:
    run = desk.run(**PLAIN)
    with pytest.raises(Forbidden, match="party-1's receipt for 'joining' does not fit"):
        promise(desk, run, MINE, **changes)
    assert desk.views.receipts_held("party-1") == 0


def test_only_what_is_asked_can_be_promised(desk: Desk) -> None:
    run = desk.run(**PLAIN)
    signed = receipt(desk, run, MINE)
    with pytest.raises(NotAsked):
        desk.orchestrator.promise(run, "correlations", "party-1", MINE, signed)
    with pytest.raises(NotFound):
        desk.orchestrator.promise("nowhere", "joining", "party-1", MINE, signed)
    desk.orchestrator.cancel(run)
    with pytest.raises(RunEnded):
        desk.orchestrator.promise(run, "joining", "party-1", MINE, signed)


def test_every_task_tells_how_many_receipts_are_held(desk: Desk) -> None:
    async def story(api: Api) -> None:
        run = await api.create_run()
        first = await api.party(0, "GET", "/v1/inbox")
        assert first.headers[HELD_HEADER] == "0"
        body = {"digest": MINE, "receipt": receipt(desk, run, MINE).hex()}
        assert (await api.party(0, "PUT", f"/v1/runs/{run}/receipts/joining", body)).status_code == 204
        assert (await api.party(0, "GET", "/v1/inbox")).headers[HELD_HEADER] == "1"
        other = {"digest": OTHERS, "receipt": receipt(desk, run, OTHERS).hex()}
        answer = await api.party(0, "PUT", f"/v1/runs/{run}/receipts/joining", other)
        assert answer.status_code == 409
        assert answer.json()["type"].rpartition(":")[2] == "other-bytes"
        assert (await api.party(1, "PUT", f"/v1/runs/{run}/receipts/joining", body)).status_code == 403

    with_api(desk, story)


def test_two_promises_at_once_are_one(desk: Desk) -> None:
    run = desk.run(**PLAIN)

    async def both() -> list[object]:
        tasks = (asyncio.to_thread(promise, desk, run, digest) for digest in (MINE, OTHERS))
        return list(await asyncio.gather(*tasks, return_exceptions=True))

    found = asyncio.run(both())
    assert sorted(type(one).__name__ for one in found) == ["NoneType", "OtherBytes"]


def test_receipts_and_runs_are_told_in_pages(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []
    for number in range(5):
        runs.append(run := desk.run(key=str(number), **PLAIN))
        if number % 2:
            promise(desk, run, MINE)
        else:
            found = desk.parties[0].handle(run, desk.orchestrator.inbox("party-1", tuple(runs[:-1]))[1])
            desk.deliver(desk.parties[0], found)
    whole = [one.place for one in desk.views.receipts("party-1")]
    assert whole == [f"{run}/joining" for run in sorted(runs)]
    monkeypatch.setattr(views, "MOST_LISTED", 2)
    pages = [desk.views.receipts("party-1", after) for after in ("", whole[1], whole[3], whole[4])]
    assert [[one.place for one in page] for page in pages] == [whole[:2], whole[2:4], whole[4:], []]
    own = [desk.views.of_party("party-1", after) for after in ("", sorted(runs)[1], sorted(runs)[3], sorted(runs)[4])]
    assert [len(page) for page in own] == [2, 2, 1, 0]
    assert [one.run for page in own for one in page] == sorted(runs)


def test_answers_that_come_together_are_stored_together_and_each_is_told_its_own(desk: Desk) -> None:
    """While one is stored the others wait; the last of them finds that the run is over."""
    run = desk.run(**PLAIN)
    sent, live = [outgoing(desk, number) for number in range(3)], desk.orchestrator.live[run]
    told: list[object] = [None] * 4

    def deliver(place: int, action: Callable[[], None]) -> None:
        try:
            action()
        except SubnError as error:
            told[place] = type(error)

    found = desk.orchestrator.inbox("party-2")
    assert found is not None
    refusal = desk.parties[1].refuse(*found)
    actions = [
        lambda: desk.orchestrator.deliver(run, "joining", "party-1", sent[0].body, sent[0].receipt),
        lambda: promise(desk, run, OTHERS),
        lambda: desk.orchestrator.deliver(run, "joining", "party-2", refusal.body, refusal.receipt),
        lambda: desk.orchestrator.deliver(run, "joining", "party-3", sent[2].body, sent[2].receipt),
    ]
    threads = [Thread(target=deliver, args=(place, action)) for place, action in enumerate(actions)]
    with live.arrivals.own():
        for number, thread in enumerate(threads, 1):
            thread.start()
            while live.arrivals.waiting < number:
                pass
    for thread in threads:
        thread.join()
    assert told == [None, OtherBytes, None, RunEnded]
    assert desk.views.record(run).state == "refused"
    assert [event.kind for event in desk.views.events(run)] == ["created", "step", "answered", "answered", "ended"]
    desk.restart()
    assert not desk.orchestrator.live
