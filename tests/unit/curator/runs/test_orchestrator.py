"""Runs at the curator: who may answer what when, how runs end and whose doing it is, and what a restart leaves."""

import hashlib
import json
import logging
import threading
from fractions import Fraction

import pytest
from sqlalchemy import select, update

from crypto.randomness import Stream
from crypto.signing import sign
from curator.errors import (
    Conflict,
    Forbidden,
    NotAsked,
    NotFound,
    OtherBytes,
    RunEnded,
    SettingsError,
    StoreUnavailable,
)
from curator.home.keys import CuratorKeys
from curator.results import publication
from curator.runs import live_run, orchestrator
from curator.runs.orchestrator import Orchestrator
from curator.store.tables import replies, runs
from protocol.errors import CURATOR, OutOfTurn, PlanError
from protocol.messages.signatures import RECEIPT, receipt_text
from protocol.messages.tasks import decode, encode
from protocol.run.manifest import verify_manifest
from tests.support.curator import START, Desk, OneKey, Outgoing
from tests.support.small_runs import BITS, MIXED, SMALL_BITS

PLAIN = {"noise": "distributed", "epsilon": "50"}
DAY = 24 * 3600


@pytest.fixture
def desk(tmp_path, small_secret):
    opened = Desk(tmp_path, crypto=OneKey(small_secret))
    yield opened
    opened.store.close()


def column(desk: Desk, run: str, name: str):
    with desk.store.reading() as db:
        return db.execute(select(runs.c[name]).where(runs.c.id == run)).scalar_one()


def state(desk: Desk, run: str) -> tuple[str, str | None]:
    seen = desk.views.run(run)
    return seen.state, seen.culprit


def kinds(desk: Desk, run: str) -> list[str]:
    return [event.kind for event in desk.views.events(run)]


def outgoing(desk: Desk, number: int, skip: tuple[str, ...] = ()) -> Outgoing:
    """The answer that a party would send now; it is not sent."""
    found = desk.orchestrator.inbox(desk.parties[number].name, skip)
    assert found is not None
    return desk.parties[number].handle(*found)


def signed(desk: Desk, number: int, sent: Outgoing, body: bytes, charge: Fraction | int = 0) -> Outgoing:
    """The same with other bytes and a receipt that fits them."""
    text = receipt_text(desk.views.record(sent.run).plan_hash, sent.step, Fraction(charge), body)
    return Outgoing(sent.run, sent.step, body, sign(desk.parties[number].identity.signing, RECEIPT, text))


# Plans and new runs


def test_a_plan_spends_and_keeps_nothing(desk):
    terms = desk.orchestrator.plan(desk.request(parties=["party-3", "party-1"], epsilon="4/5"))
    assert [member.name for member in terms.plan.members] == ["party-3", "party-1"]
    assert terms.plan.epsilon == Fraction(4, 5)
    assert desk.views.runs(10) == []


def test_wishes_that_cannot_be_met_begin_nothing(desk):
    with pytest.raises(PlanError, match="leave nobody to protect"):
        desk.run(insiders=3)
    with pytest.raises(NotFound, match="no schema"):
        desk.run(schema=MIXED.hash)
    assert desk.views.runs(10) == []


def test_the_same_key_gives_the_same_run(desk):
    first, new = desk.orchestrator.create_run(desk.request(), "key")
    assert new
    assert desk.orchestrator.create_run(desk.request(), "key") == (first, False)
    desk.restart()
    assert desk.orchestrator.create_run(desk.request(), "key") == (first, False)
    with pytest.raises(Conflict, match=f"began run {first} with another request"):
        desk.run("key", epsilon="2")
    assert desk.run("other key") != first


def test_one_key_begins_one_run_also_from_many_threads(desk):
    found = []
    threads = [threading.Thread(target=lambda: found.append(desk.run("key", **PLAIN))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert len(set(found)) == len(desk.views.runs(10)) == 1


def test_a_new_run_waits_for_all_to_join(desk):
    run = desk.run()
    seen = desk.views.run(run)
    assert (seen.state, seen.step, [one.party for one in seen.waiting_for]) == (
        "joining",
        "joining",
        ["party-1", "party-2", "party-3"],
    )
    assert seen.deadline is not None
    assert seen.deadline.timestamp() == START / 1000 + 7 * DAY
    assert seen.progress[0].answered == []
    assert kinds(desk, run) == ["created", "step"]


def test_a_run_begins_with_the_keys_of_that_moment(desk, monkeypatch):
    prepared = orchestrator.begun

    def rotated_meanwhile(*arguments):
        desk.orchestrator.registry.rotate("party-2", b"s" * 32, b"e" * 32)
        return prepared(*arguments)

    monkeypatch.setattr(orchestrator, "begun", rotated_meanwhile)
    with pytest.raises(PlanError, match="party-2 changed its keys or was revoked"):
        desk.run()
    assert desk.orchestrator.inbox("party-1") is None


# The whole way


@pytest.mark.parametrize(
    "wishes",
    [
        {"epsilon": "50"},
        {"epsilon": "50", "noise": "distributed"},
        {"epsilon": "50", "noise": "local", "update": "joint"},
        {"epsilon": "50", "update": "replace", "insiders": 0},
        {"epsilon": "50", "method": "dp-ccbn", "degree": 1},
        {"epsilon": "50", "method": "independent"},
    ],
)
def test_a_run_finishes_with_a_manifest_that_verifies(desk, wishes):
    run = desk.run(**wishes)
    desk.finish(run)
    folder = desk.orchestrator.folder(run)
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
    assert set(digests) == {"table.csv", "network.json", "tables.json", "report.json", "report.html", "manifest.json"}
    assert desk.views.record(run).outputs == digests
    del digests["manifest.json"]
    data = (folder / "manifest.json").read_bytes()
    manifest = verify_manifest(data, digests, desk.keys.signing.public, smallest_key=SMALL_BITS)
    assert manifest.plan.run == run
    assert [record.spent for record in manifest.parties] == [
        sum((Fraction(r.charge) for r in desk.views.receipts(party.name)), Fraction(0)) for party in desk.parties
    ]
    assert all(record.spent <= 50 for record in manifest.parties)
    stages = [cost.name for cost in manifest.phases]
    assert stages == list(dict.fromkeys(one.stage for one in desk.views.run(run).progress))


def test_progress_tells_who_answered_what_and_when(desk):
    run = desk.run(**PLAIN)
    desk.clock.advance(10)
    desk.deliver(desk.parties[1], outgoing(desk, 1))
    seen = desk.views.run(run)
    assert seen.progress[0].answered == ["party-2"]
    assert [one.party for one in seen.waiting_for] == ["party-1", "party-3"]
    desk.clock.advance(10)
    for number in (0, 2):
        desk.deliver(desk.parties[number], outgoing(desk, number))
    seen = desk.views.run(run)
    assert (seen.state, seen.step) == ("running", "correlations")
    assert seen.progress[0].ended == seen.progress[1].started
    assert seen.progress[0].ended is not None
    assert seen.progress[0].ended.timestamp() == START / 1000 + 20
    assert seen.progress[2].started is None
    assert seen.deadline is not None
    assert seen.deadline.timestamp() == START / 1000 + 20 + DAY


def test_a_run_that_waits_for_its_results_waits_for_nobody(desk):
    run = desk.run(**PLAIN)
    desk.answer_all()
    seen = desk.views.run(run)
    assert (seen.state, seen.step, seen.waiting_for, seen.deadline) == ("running", None, [], None)
    with pytest.raises(NotAsked, match="the run waits for nobody"):
        desk.orchestrator.deliver(run, "parameters/2", "party-1", b"", b"")


def test_the_end_destroys_what_only_the_run_needed(desk):
    run = desk.run(epsilon="50", update="accumulate")
    desk.answer_all()
    assert column(desk, run, "secret") is not None
    desk.orchestrator.tick()
    assert column(desk, run, "secret") is None
    with desk.store.reading() as db:
        assert set(db.execute(select(replies.c.body)).scalars()) == {None}


def test_the_secret_is_sealed_in_the_store(desk, small_secret):
    run = desk.run(update="accumulate")
    sealed = column(desk, run, "secret")
    assert small_secret.to_bytes() not in sealed
    assert desk.keys.open(sealed, run) == small_secret.to_bytes()


def test_two_runs_share_their_parties(desk):
    first = desk.run("first", **PLAIN)
    desk.clock.advance(1)
    second = desk.run("second", epsilon="50")
    assert desk.orchestrator.inbox("party-1")[0] == first
    assert desk.orchestrator.inbox("party-1", skip=(first,))[0] == second
    assert desk.orchestrator.inbox("party-1", skip=(first, second)) is None
    desk.answer_all()
    desk.orchestrator.tick()
    assert state(desk, first) == state(desk, second) == ("finished", None)
    assert [one.run for one in desk.views.runs(10)] == [first, second]
    assert [one.run for one in desk.views.runs(1, after=first)] == [second]


def test_the_oldest_task_comes_first(desk):
    first = desk.run("first", **PLAIN)
    desk.clock.advance(1)
    second = desk.run("second", **PLAIN)
    assert desk.orchestrator.inbox("party-1")[0] == first
    desk.clock.advance(1)
    for number in range(3):
        desk.deliver(desk.parties[number], outgoing(desk, number, skip=(second,)))
    assert desk.orchestrator.inbox("party-1")[0] == second


def test_a_party_sees_its_own_runs_and_receipts(desk):
    run = desk.run(parties=["party-1", "party-2"], **PLAIN)
    desk.deliver(desk.parties[0], sent := outgoing(desk, 0))
    assert [(one.run, one.state) for one in desk.views.of_party("party-1")] == [(run, "joining")]
    assert desk.views.of_party("party-3") == []
    (receipt,) = desk.views.receipts("party-1")
    assert (receipt.run, receipt.step, receipt.charge) == (run, "joining", 0)
    assert receipt.digest == hashlib.sha256(sent.body).hexdigest()
    assert receipt.signature == sent.receipt.hex()
    assert desk.views.receipts("party-2") == []
    assert desk.orchestrator.inbox("party-3") is None
    with pytest.raises(NotFound, match=f"no run '{run}' of party-3"):
        desk.orchestrator.deliver(run, "joining", "party-3", b"x", b"")


# Answers that come twice, too late, or wrong


def test_the_same_bytes_are_taken_once(desk):
    run = desk.run(**PLAIN)
    sent = outgoing(desk, 0)
    for _ in range(3):
        desk.deliver(desk.parties[0], sent)
    desk.restart()
    desk.deliver(desk.parties[0], sent)
    assert desk.views.run(run).progress[0].answered == ["party-1"]
    desk.finish(run)
    desk.deliver(desk.parties[0], sent)
    assert len(desk.views.receipts("party-1")) == len({r.step for r in desk.views.receipts("party-1")})


def test_other_bytes_are_refused_and_both_are_named(desk):
    desk.run(**PLAIN)
    desk.deliver(desk.parties[0], sent := outgoing(desk, 0))
    with pytest.raises(OtherBytes) as error:
        desk.deliver(desk.parties[0], signed(desk, 0, sent, b"other"))
    assert hashlib.sha256(sent.body).hexdigest() in str(error.value)
    assert hashlib.sha256(b"other").hexdigest() in str(error.value)


def test_what_was_not_asked_is_refused(desk):
    run = desk.run(**PLAIN)
    with pytest.raises(NotAsked, match="waits for 'joining' of party-1, party-2, party-3, not for 'parameters' of"):
        desk.orchestrator.deliver(run, "parameters", "party-1", b"x", b"")
    with pytest.raises(NotFound, match="there is no run 'nowhere'"):
        desk.orchestrator.deliver("nowhere", "joining", "party-1", b"x", b"")
    with pytest.raises(NotFound):
        desk.views.run("nowhere")


def test_a_receipt_must_fit(desk):
    run = desk.run(**PLAIN)
    sent = outgoing(desk, 0)
    for receipt in (b"", bytes(64), outgoing(desk, 1).receipt):
        with pytest.raises(Forbidden, match="party-1's receipt for 'joining' does not fit"):
            desk.deliver(desk.parties[0], Outgoing(run, sent.step, sent.body, receipt))
    with pytest.raises(Forbidden, match="and the charge 0"):
        desk.deliver(desk.parties[0], signed(desk, 0, sent, sent.body, charge=1))
    assert state(desk, run) == ("joining", None)


def test_an_answer_to_another_step_ends_nothing(desk):
    run = desk.run(**PLAIN)
    sent = outgoing(desk, 0)
    other = encode(decode(sent.body, "party-1").model_copy(update={"step": "parameters"}))
    with pytest.raises(OutOfTurn, match="answered 'parameters' of another plan or step"):
        desk.deliver(desk.parties[0], signed(desk, 0, sent, other))
    assert state(desk, run) == ("joining", None)
    desk.deliver(desk.parties[0], sent)


def test_a_refusal_when_joining_refuses_the_run(desk):
    run = desk.run()
    desk.deliver(desk.parties[0], outgoing(desk, 0))
    sent = desk.parties[1].refuse(run, desk.orchestrator.inbox("party-2")[1], "the data owner is on holiday")
    desk.deliver(desk.parties[1], sent)
    assert state(desk, run) == ("refused", "party-2")
    assert desk.views.run(run).reason == "the data owner is on holiday"
    assert column(desk, run, "secret") is None
    desk.deliver(desk.parties[1], sent)
    with pytest.raises(RunEnded, match=f"run {run} is over: refused, the data owner is on holiday"):
        desk.deliver(desk.parties[2], Outgoing(run, "joining", b"x", b""))


def test_a_refusal_later_fails_the_run(desk):
    run = desk.run(**PLAIN)
    for number in range(3):
        desk.deliver(desk.parties[number], outgoing(desk, number))
    desk.deliver(desk.parties[2], desk.parties[2].refuse(run, desk.orchestrator.inbox("party-3")[1], "no budget"))
    assert state(desk, run) == ("failed", "party-3")
    assert desk.views.receipts("party-3")[-1].charge == 0
    assert kinds(desk, run)[-2:] == ["answered", "ended"]


@pytest.mark.parametrize(
    ("body", "reason"),
    [(b"garbage", "expected a message that starts with"), (b"SUBN\x02" + bytes(9), "speaks protocol version 2")],
)
def test_a_malformed_answer_is_its_senders_fault(desk, body, reason):
    run = desk.run(**PLAIN)
    desk.deliver(desk.parties[0], signed(desk, 0, outgoing(desk, 0), body))
    assert state(desk, run) == ("failed", "party-1")
    assert reason in desk.views.run(run).reason


def test_an_answer_that_fails_a_check_is_its_senders_fault(desk):
    run = desk.run(**PLAIN)
    sent = outgoing(desk, 0)
    acceptance = decode(sent.body, "party-1")
    forged = encode(acceptance.model_copy(update={"signature": bytes(64)}))
    desk.deliver(desk.parties[0], signed(desk, 0, sent, forged))
    assert state(desk, run) == ("failed", "party-1")
    assert "did not sign this plan" in desk.views.run(run).reason


def test_sums_that_do_not_add_up_are_the_parties_fault(desk):
    run = desk.run(**PLAIN)
    for number in range(3):
        desk.deliver(desk.parties[number], outgoing(desk, number))
    for number in range(2):
        desk.deliver(desk.parties[number], outgoing(desk, number))
    sent = outgoing(desk, 2)
    contribution = decode(sent.body, "party-3")
    zeros = encode(contribution.model_copy(update={"blob": bytes(len(contribution.blob))}))
    charge = desk.orchestrator.plan(desk.request(**PLAIN)).steps[1].charge(2)
    desk.deliver(desk.parties[2], signed(desk, 2, sent, zeros, charge))
    assert state(desk, run) == ("failed", "the parties")
    assert "do not add up" in desk.views.run(run).reason


# The curator's own failures


@pytest.mark.parametrize("what", ["take", "move_on"])
def test_a_failure_inside_is_the_curators_and_shows_nothing(desk, monkeypatch, caplog, what):
    run = desk.run(**PLAIN)

    def broken(*_arguments):
        raise ZeroDivisionError("patient 4711")

    monkeypatch.setattr(live_run, what, broken)
    with caplog.at_level(logging.ERROR):
        for number in range(3 if what == "move_on" else 1):
            desk.deliver(desk.parties[number], outgoing(desk, number))
    assert state(desk, run) == ("failed", CURATOR)
    reason = desk.views.run(run).reason
    reference = reason.rpartition(" ")[2]
    assert "under reference" in reason
    (record,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert reference in record.getMessage()
    assert "ZeroDivisionError at " in record.getMessage()
    assert "4711" not in record.getMessage() + reason
    assert record.exc_info is None


def test_a_failure_of_the_synthesis_is_the_curators(desk, monkeypatch):
    run = desk.run(**PLAIN)
    desk.answer_all()

    def broken(*_arguments):
        raise ZeroDivisionError

    monkeypatch.setattr(publication, "synthetic_codes", broken)
    desk.orchestrator.tick()
    assert state(desk, run) == ("failed", CURATOR)
    assert desk.views.record(run).outputs is None


# Cancelling, revoking, waiting too long


def test_a_cancelled_run_is_the_operators_doing(desk):
    run, other = desk.run("a"), desk.run("b")
    desk.orchestrator.cancel(run)
    desk.orchestrator.cancel(other, "wrong schema")
    assert state(desk, run) == ("cancelled", "operator")
    assert [desk.views.run(one).reason for one in (run, other)] == ["cancelled by the operator", "wrong schema"]
    assert desk.orchestrator.inbox("party-1") is None
    with pytest.raises(RunEnded, match="is over: cancelled"):
        desk.orchestrator.cancel(run)
    with pytest.raises(NotFound):
        desk.orchestrator.cancel("nowhere")


def test_a_revoked_party_ends_its_runs(desk):
    with_it, without = desk.run("a", **PLAIN), desk.run("b", parties=["party-1", "party-2"], **PLAIN)
    desk.orchestrator.revoke("party-3")
    assert state(desk, with_it) == ("failed", "party-3")
    assert desk.views.run(with_it).reason == "party-3 was revoked by the operator"
    desk.finish(without)


def test_a_kill_between_revoking_and_ending_is_made_good(desk):
    run = desk.run(**PLAIN)
    desk.orchestrator.registry.revoke("party-3")
    desk.restart()
    assert state(desk, run) == ("failed", "party-3")


def test_keys_do_not_rotate_during_a_run(desk):
    run = desk.run(parties=["party-1", "party-2"], **PLAIN)
    with pytest.raises(Conflict, match=f"run {run} goes on with the present keys of party-1"):
        desk.orchestrator.registry.rotate("party-1", b"s" * 32, b"e" * 32)
    desk.orchestrator.registry.rotate("party-3", b"s" * 32, b"e" * 32)
    desk.orchestrator.cancel(run)
    desk.orchestrator.registry.rotate("party-1", b"t" * 32, b"f" * 32)


def test_who_does_not_join_in_time_is_named(desk):
    run = desk.run(**PLAIN)
    desk.deliver(desk.parties[1], outgoing(desk, 1))
    desk.clock.advance(7 * DAY - 1)
    desk.orchestrator.tick()
    assert state(desk, run) == ("joining", None)
    desk.clock.advance(1)
    desk.orchestrator.tick()
    assert state(desk, run) == ("timed_out", "party-1, party-3")
    assert desk.views.run(run).reason == "no answer to 'joining' before its deadline from party-1, party-3"


def test_every_step_has_its_own_deadline(desk):
    run = desk.run(join_seconds=100, step_seconds=50, **PLAIN)
    desk.clock.advance(99)
    for number in range(3):
        desk.deliver(desk.parties[number], outgoing(desk, number))
    desk.clock.advance(49)
    desk.orchestrator.tick()
    assert state(desk, run) == ("running", None)
    desk.deliver(desk.parties[0], outgoing(desk, 0))
    desk.clock.advance(1)
    desk.orchestrator.tick()
    assert state(desk, run) == ("timed_out", "party-2, party-3")


def test_after_a_restart_parties_get_some_time(desk):
    run = desk.run(join_seconds=100, step_seconds=3600, **PLAIN)
    desk.clock.advance(5000)  # the curator is away
    desk.restart()
    desk.orchestrator.tick()
    assert state(desk, run) == ("joining", None)
    assert desk.views.run(run).deadline.timestamp() == START / 1000 + 5000 + 900
    desk.clock.advance(900)
    desk.orchestrator.tick()
    assert state(desk, run)[0] == "timed_out"


# Full disks


def without_room(desk: Desk, monkeypatch) -> None:
    """No transaction that writes succeeds any more."""

    def full():
        raise StoreUnavailable("database or disk is full")

    monkeypatch.setattr(desk.store, "writing", full)


def test_a_run_pauses_while_the_store_is_full_and_nothing_is_lost(desk, monkeypatch):
    run = desk.run(step_seconds=1000, **PLAIN)
    sent = outgoing(desk, 0)
    without_room(desk, monkeypatch)
    with pytest.raises(StoreUnavailable):
        desk.deliver(desk.parties[0], sent)
    desk.clock.advance(30 * DAY)
    desk.orchestrator.tick()
    assert state(desk, run) == ("joining", None)
    monkeypatch.undo()
    desk.clock.advance(60)
    desk.orchestrator.tick()
    assert kinds(desk, run)[-2:] == ["paused", "resumed"]
    assert desk.views.events(run)[-1].data == {"seconds": 30 * DAY + 60}
    assert "disk is full" in desk.views.events(run)[-2].data["reason"]
    assert desk.views.run(run).deadline.timestamp() == START / 1000 + 37 * DAY + 60
    desk.deliver(desk.parties[0], sent)
    desk.finish(run)


def test_a_deadline_that_cannot_be_written_down_is_tried_again(desk, monkeypatch):
    run = desk.run(**PLAIN)
    desk.clock.advance(7 * DAY)
    without_room(desk, monkeypatch)
    desk.orchestrator.tick()
    monkeypatch.undo()
    desk.clock.advance(2)
    desk.orchestrator.tick()  # goes on
    desk.clock.advance(2)
    desk.orchestrator.tick()
    assert state(desk, run)[0] == "timed_out"


def test_results_are_written_when_there_is_room_again(desk, monkeypatch):
    run = desk.run(**PLAIN)
    desk.answer_all()
    tries = []

    def full(*_arguments):
        tries.append(desk.clock.now)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(orchestrator, "publish", full)
    for _ in range(100):
        desk.orchestrator.tick()
        desk.clock.advance(1)
    assert [(at - START) // 1000 for at in tries] == [0, 1, 3, 7, 15, 31, 63]
    assert kinds(desk, run)[-1] == "paused"
    assert desk.views.events(run)[-1].data == {"reason": "results cannot be written: No space left on device"}
    monkeypatch.undo()
    desk.clock.advance(60)
    desk.orchestrator.tick()
    assert kinds(desk, run)[-2:] == ["resumed", "ended"]
    assert state(desk, run) == ("finished", None)


def test_an_answer_that_was_judged_but_not_stored_is_judged_again(desk, monkeypatch):
    run = desk.run(**PLAIN)
    sent = outgoing(desk, 0)
    body = signed(desk, 0, sent, b"garbage")
    without_room(desk, monkeypatch)
    with pytest.raises(StoreUnavailable):
        desk.deliver(desk.parties[0], body)
    monkeypatch.undo()
    desk.deliver(desk.parties[0], body)
    assert state(desk, run) == ("failed", "party-1")
    assert kinds(desk, run).count("answered") == 1


# The last answer to a step


def answered_by_all(desk):
    """A run whose first step everybody has answered, and of which nothing has been worked out."""
    run = desk.run(**PLAIN)
    for number, party in enumerate(desk.parties):
        sent = outgoing(desk, number)
        desk.orchestrator.deliver(run, sent.step, party.name, sent.body, sent.receipt)
    assert desk.orchestrator.complete_runs() == [run]
    return run


def test_the_last_answer_is_taken_before_what_follows_is_worked_out(desk):
    run = answered_by_all(desk)
    seen = desk.views.run(run)
    assert (seen.state, seen.step, seen.waiting_for) == ("joining", "joining", [])
    assert kinds(desk, run)[-1] == "answered"
    assert [desk.orchestrator.inbox(party.name) for party in desk.parties] == [None] * 3
    with pytest.raises(NotAsked, match="the run waits for nobody"):
        desk.orchestrator.deliver(run, "correlations", "party-1", b"x", b"")
    desk.clock.advance(8 * DAY)
    desk.orchestrator.tick()  # nobody is late any more
    desk.orchestrator.advance(run)
    assert desk.views.run(run).state == "running"
    assert kinds(desk, run)[-1] == "step"
    assert desk.orchestrator.complete_runs() == []
    desk.finish(run)


def test_a_kill_between_the_last_answer_and_what_follows_is_made_good(desk):
    run = answered_by_all(desk)
    desk.restart()
    assert desk.orchestrator.complete_runs() == [run]
    assert [desk.orchestrator.inbox(party.name) for party in desk.parties] == [None] * 3
    desk.orchestrator.advance(run)
    desk.orchestrator.advance(run)  # says nothing twice
    assert kinds(desk, run).count("step") == 2
    desk.finish(run)


def test_a_run_can_be_cancelled_while_a_sum_is_opened(desk, monkeypatch):
    run = answered_by_all(desk)

    def cancelled_meanwhile(live, stream):
        desk.orchestrator.cancel(run)
        return live_run.concluded(live, stream)

    monkeypatch.setattr(orchestrator, "concluded", cancelled_meanwhile)
    desk.orchestrator.advance(run)
    assert state(desk, run) == ("cancelled", "operator")
    assert kinds(desk, run)[-1] == "ended"
    desk.orchestrator.advance(run)  # of a run that is over nothing follows


def test_what_was_worked_out_but_not_stored_is_worked_out_again(desk, monkeypatch):
    run = answered_by_all(desk)
    without_room(desk, monkeypatch)
    desk.orchestrator.advance(run)
    assert desk.orchestrator.view(run).reason.startswith("paused: ")
    assert desk.orchestrator.complete_runs() == []
    monkeypatch.undo()
    desk.clock.advance(60)
    desk.orchestrator.tick()
    assert desk.orchestrator.complete_runs() == [run]
    desk.orchestrator.advance(run)
    desk.finish(run)


# Restarts


def test_a_restart_after_every_answer_changes_nothing(desk, tmp_path, small_secret):
    run = desk.run(epsilon="50")
    desk.answer_all()
    desk.orchestrator.tick()
    table = (desk.orchestrator.folder(run) / "table.csv").read_bytes()
    (tmp_path / "other").mkdir()
    other = Desk(tmp_path / "other", crypto=OneKey(small_secret))
    again = other.run(epsilon="50")
    asked = {}
    while other.views.run(again).step is not None:
        for party in other.parties:
            found = other.orchestrator.inbox(party.name)
            other.restart()
            assert other.orchestrator.inbox(party.name) == found, "the same question in the same bytes"
            if found is not None:
                step = decode(found[1], CURATOR).step
                assert asked.setdefault((party.name, step), found[1]) == found[1]
                other.deliver(party, party.handle(*found))
    other.restart()
    other.orchestrator.tick()
    assert state(other, again) == ("finished", None)
    assert (other.orchestrator.folder(again) / "table.csv").read_bytes() == table
    other.store.close()


def test_a_kill_during_publication_is_made_good(desk, monkeypatch):
    run = desk.run(**PLAIN)
    desk.answer_all()

    def killed(*_arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(publication, "signed", killed)
    with pytest.raises(KeyboardInterrupt):
        desk.orchestrator.tick()
    table = (desk.orchestrator.folder(run) / "table.csv").read_bytes()
    assert not (desk.orchestrator.folder(run) / "manifest.json").exists()
    monkeypatch.undo()
    desk.restart()
    desk.orchestrator.tick()
    assert state(desk, run) == ("finished", None)
    assert (desk.orchestrator.folder(run) / "table.csv").read_bytes() == table


def test_runs_that_are_over_are_not_rebuilt(desk):
    run = desk.run(**PLAIN)
    desk.finish(run)
    desk.restart()
    assert desk.orchestrator.inbox("party-1") is None
    assert state(desk, run) == ("finished", None)


def test_a_run_that_cannot_be_rebuilt_fails_and_the_others_go_on(desk, caplog):
    broken, sound = desk.run("a", epsilon="50"), desk.run("b", epsilon="50")
    with desk.store.writing() as db:
        db.execute(update(runs).where(runs.c.id == broken).values(secret=b"x" * 100))
    with caplog.at_level(logging.ERROR):
        desk.restart()
    assert state(desk, broken) == ("failed", CURATOR)
    assert "SettingsError" in caplog.text
    desk.finish(sound)


def test_a_store_that_is_away_fails_no_run(desk, monkeypatch):
    run = desk.run(**PLAIN)

    def away(*_arguments):
        raise StoreUnavailable("away")

    monkeypatch.setattr(orchestrator, "rebuilt", away)
    with pytest.raises(StoreUnavailable):
        desk.orchestrator.recover()
    assert state(desk, run) == ("joining", None)


@pytest.mark.parametrize("which", ["master", "signing"])
def test_keys_of_another_curator_are_refused(desk, tmp_path, which):
    (tmp_path / "other").mkdir()
    other = CuratorKeys.create(tmp_path / "other", Stream.keyed(b"other"))
    mixed = CuratorKeys(
        other.signing if which == "signing" else desk.keys.signing,
        other.master if which == "master" else desk.keys.master,
    )
    run = desk.run()
    with pytest.raises(SettingsError, match=f"{which} key is not the one that this database was made with"):
        Orchestrator(desk.store, mixed, desk.settings).recover()
    assert state(desk, run) == ("joining", None)


# Threads


def test_parties_that_answer_at_once_are_all_heard(desk):
    run = desk.run(**PLAIN)
    while desk.views.run(run).step is not None:
        asked = [party for party in desk.parties if desk.orchestrator.inbox(party.name)]
        sent = [(party, outgoing(desk, party.number)) for party in asked]
        threads = [threading.Thread(target=desk.deliver, args=one) for one in sent * 2]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    desk.orchestrator.tick()
    assert state(desk, run) == ("finished", None)
    steps = [(event.data["step"], event.data["party"]) for event in desk.views.events(run) if event.kind == "answered"]
    assert len(steps) == len(set(steps))


def test_a_run_at_work_is_left_alone_by_the_clock(desk):
    run = desk.run(**PLAIN)
    desk.clock.advance(8 * DAY)
    live = desk.orchestrator._live[run]
    with live.lock:
        desk.orchestrator.tick()
        assert state(desk, run) == ("joining", None)
    desk.orchestrator.tick()
    assert state(desk, run)[0] == "timed_out"


def test_what_comes_while_a_run_ends_finds_it_ended(desk):
    """Two threads have passed the first look; the second finds the end when it gets the lock."""
    run = desk.run(**PLAIN)
    live = desk.orchestrator._live[run]
    sent = outgoing(desk, 0)
    failures = []

    def late(call):
        try:
            call()
        except RunEnded as error:
            failures.append(str(error))

    calls = (lambda: desk.deliver(desk.parties[0], sent), lambda: desk.orchestrator.cancel(run))
    with live.lock:
        threads = [threading.Thread(target=late, args=(call,)) for call in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(0.2)
        desk.orchestrator._end(live, live_run.Ending("cancelled", "operator", "first"))
    for thread in threads:
        thread.join()
    assert failures == [f"run {run} is over: cancelled, first"] * 2
    desk.orchestrator._tend(live)
    assert kinds(desk, run).count("ended") == 1


# Everything that happens is told


def test_every_change_is_told(desk):
    told = []
    desk.orchestrator.changed = told.append
    run = desk.run(**PLAIN)
    desk.finish(run)
    assert set(told) == {run}
    what = kinds(desk, run)
    assert len(told) == what.count("answered") + what.count("step") + what.count("ended")


def test_the_report_says_what_was_spent(desk):
    run = desk.run(**PLAIN, update="accumulate")
    desk.finish(run)
    report = json.loads((desk.orchestrator.folder(run) / "report.json").read_text())
    phases = {"joining": "0", "correlations": "5/2", "initial": "15/2", "update": "5", "parameters": "35"}
    assert report["parties"][0] == {"name": "party-1", "rows": 30, "spent": "50", "delta": "0", "phases": phases}
    assert BITS.names == tuple(sorted({edge["attribute"] for edge in report["network"]}))
