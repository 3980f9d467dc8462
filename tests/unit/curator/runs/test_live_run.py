"""Answers to a run: which are taken, which are refused, and what follows from the last one."""

import hashlib
import threading

import pytest

from curator.errors import (
    Forbidden,
    NotAsked,
    NotFound,
    OtherBytes,
    RunEnded,
)
from curator.runs import live_run, orchestrator
from protocol.messages.signatures import REFUSAL_RECEIPT
from protocol.messages.tasks import Refusal, decode, encode
from tests.support.curator import Outgoing
from tests.support.curator_runs import DAY, PLAIN, column, kinds, outgoing, signed, state, without_room

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


@pytest.mark.parametrize("changed", [{"step": "parameters"}, {"plan": "0" * 64}], ids=["step", "plan"])
def test_an_answer_to_another_step_or_plan_names_its_sender_at_once(desk, changed):
    """Its receipt says that these bytes answer this step: the party will send nothing else before the deadline."""
    run = desk.run(**PLAIN)
    sent = outgoing(desk, 0)
    other = encode(decode(sent.body, "party-1").model_copy(update=changed))
    desk.deliver(desk.parties[0], signed(desk, 0, sent, other))
    assert state(desk, run) == ("failed", "party-1")
    assert "of another plan or step, 'joining' is due" in desk.views.run(run).reason


def refused_by_second(desk, run, culprit):
    """The second party's refusal, which accuses somebody."""
    for number in range(3):
        desk.deliver(desk.parties[number], outgoing(desk, number))
    task = decode(desk.orchestrator.inbox("party-2")[1], "curator")
    reason = f"{culprit}: its share of the group key does not open"
    refusal = encode(Refusal(plan=task.plan, step=task.step, reason=reason, culprit=culprit))
    desk.deliver(desk.parties[1], signed(desk, 1, Outgoing(run, task.step, b"", b""), refusal, role=REFUSAL_RECEIPT))
    return desk.views.run(run)


def test_a_refusal_that_accuses_another_party_names_both(desk):
    run = desk.run(**PLAIN)
    ended = refused_by_second(desk, run, "party-1")
    assert (ended.state, ended.culprit) == ("failed", "party-1, party-2")
    assert ended.reason == (
        "party-2 says: party-1: its share of the group key does not open; "
        "one of the two is at fault, and nothing tells which"
    )


@pytest.mark.parametrize("culprit", ["party-2", "party-9", "curator", "operator"])
def test_a_refusal_that_accuses_nobody_else_is_its_own(desk, culprit):
    run = desk.run(**PLAIN)
    assert refused_by_second(desk, run, culprit).culprit == "party-2"


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


def test_a_refusal_holds_nothing_that_postgresql_does_not_store(desk):
    """Its reason stands beside other parties' answers in one transaction."""
    run = desk.run()
    task = desk.orchestrator.inbox("party-2")[1]
    desk.deliver(desk.parties[1], desk.parties[1].refuse(run, task, "on holiday\0"))
    assert desk.views.run(run).reason == "on holiday\ufffd"


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


def lied(desk, liar, key="key", **changes):
    """The end of a run in whose first pass one party sends zeros, or other changes, instead of its contribution."""
    run = desk.run(key, **PLAIN)
    for _ in range(2):
        for number in range(3):
            sent = outgoing(desk, number)
            if sent.step != "joining" and number == liar:
                honest = decode(sent.body, f"party-{liar + 1}")
                body = encode(honest.model_copy(update={"blob": bytes(len(honest.blob))} | changes))
                charge = desk.orchestrator.planner.plan(desk.request(**PLAIN)).terms.steps[1].charge(liar)
                sent = signed(desk, liar, sent, body, charge)
            desk.deliver(desk.parties[number], sent)
    return desk.views.run(run)


def test_sums_that_do_not_add_up_name_who_made_other_masks(desk):
    ended = lied(desk, 1, tags=(b"x" * 16, b"", b"x" * 16))
    assert (ended.state, ended.culprit) == ("failed", "party-2")
    assert "do not add up" in ended.reason
    assert "party-2 made other masks than party-1, party-3" in ended.reason


def test_sums_that_do_not_add_up_under_the_right_masks_name_nobody(desk):
    ended = lied(desk, 2)
    assert (ended.state, ended.culprit) == ("failed", "the parties")
    assert "which one cannot be told without opening" in ended.reason


def test_who_was_in_all_such_runs_and_in_none_that_finished_is_listed(desk):
    assert "runs that failed so" not in lied(desk, 2).reason  # one run tells nothing
    desk.finish(desk.run("good", parties=["party-1", "party-2"], insiders=1, **PLAIN))
    ended = lied(desk, 2, "again")
    assert ended.culprit == "the parties"
    assert ended.reason.endswith("in all 2 runs that failed so, and in none that finished: party-3")


def test_nobody_is_listed_who_has_finished_a_run(desk):
    lied(desk, 2)
    desk.finish(desk.run("good", **PLAIN))
    assert lied(desk, 2, "again").reason.endswith("every one has also finished a run")


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
    live = desk.orchestrator.live[run]
    with live.lock:
        desk.orchestrator.tick()
        assert state(desk, run) == ("joining", None)
    desk.orchestrator.tick()
    assert state(desk, run)[0] == "timed_out"


def test_what_comes_while_a_run_ends_finds_it_ended(desk):
    """Two threads have passed the first look; the second finds the end when it gets the lock."""
    run = desk.run(**PLAIN)
    live = desk.orchestrator.live[run]
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
        desk.orchestrator.end(live, live_run.Ending("cancelled", "operator", "first"))
    for thread in threads:
        thread.join()
    assert failures == [f"run {run} is over: cancelled, first"] * 2
    desk.orchestrator.tend(live)
    assert kinds(desk, run).count("ended") == 1
