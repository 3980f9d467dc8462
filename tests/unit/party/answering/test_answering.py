"""The order of effects: the same bytes once, kills at every place that matters, and what is refused."""

import pytest
from fastapi import Request, Response

from party.answering import answering
from protocol.errors import MalformedMessage, OutOfTurn
from protocol.exact import digest
from protocol.messages.tasks import Acceptance, Count, Invitation, Place, decode, encode
from tests.support.party import Party, make_home, run_terms
from tests.support.party_runs import RUN, join, reason_of, sent_by, task_of

# The same bytes, once


def test_asked_again_it_sends_the_same_bytes_and_pays_once(fake, parties):
    join(fake, parties)
    party = parties[0]
    task = task_of(fake, party)
    first, again = party.answering.handle(RUN, task), party.answering.handle(RUN, task)
    assert first == again
    assert len([entry for entry in party.ledger.entries() if entry.step == "correlations"]) == 1
    assert party.killed().answering.handle(RUN, task) == first


def test_an_invitation_is_answered_with_the_same_bytes(fake, parties):
    fake.start(run_terms())
    invitation = task_of(fake, parties[0])
    first = parties[0].answering.handle(RUN, invitation)
    assert isinstance(decode(first.reply, "party"), Acceptance)
    assert parties[0].answering.handle(RUN, invitation) == first
    assert parties[0].killed().answering.handle(RUN, invitation) == first


@pytest.mark.parametrize("step", ["joining", "correlations", "parameters"])
def test_killed_between_record_and_delivery_it_sends_identical_bytes_after_its_restart(fake, parties, step):
    fake.start(run_terms(split=("1/2", 0, 0, "1/2")))
    while fake.runs[RUN].state.step.name != step:
        for party in parties:
            party.turns()
    party = parties[1]
    recorded = party.answering.handle(RUN, task_of(fake, party))
    assert sent_by(fake, party, step) == []
    restarted = party.killed()
    restarted.turns(0, start=True)
    assert sent_by(fake, party, step) == [recorded.reply]
    assert restarted.ledger.entries() == party.killed().ledger.entries()


def test_a_kill_after_every_step_changes_nothing(fake, parties):
    fake.start(run_terms())
    for _ in range(60):
        parties = [party.killed() for party in parties]
        for party in parties:
            party.turns(start=True)
        if fake.runs[RUN].status not in ("joining", "running"):
            break
    assert fake.runs[RUN].status == "finished", fake.runs[RUN].reason
    assert [party.ledger.spent("patients") for party in parties] == [1, 1, 1]


def test_an_answer_that_was_lost_on_the_way_is_sent_again(fake, parties):
    join(fake, parties)
    lost_once = [True]

    def lose(request: Request, answer: Response) -> Response:
        if lost_once and "/outbox/" in request.url.path and lost_once.pop():
            return Response("bad gateway", 502)
        return answer

    fake.after.append(lose)
    parties[0].turns()
    first, second = sent_by(fake, parties[0], "correlations")
    assert first == second


def test_killed_between_reservation_and_acceptance_it_joins_after_its_restart(fake, parties, monkeypatch):
    fake.start(run_terms())
    party = parties[0]

    def die(*_arguments):
        raise KeyboardInterrupt

    invitation = task_of(fake, party)
    with monkeypatch.context() as patch:
        patch.setattr("party.answering.frozen_rows.freeze", die)
        with pytest.raises(KeyboardInterrupt):
            party.answering.handle(RUN, invitation)
    assert party.ledger.reserved("patients") == 1
    assert party.ledger.entries() == []
    restarted = party.killed()
    restarted.turns()
    assert fake.runs[RUN].state.waiting_for == (1, 2)
    assert restarted.ledger.reserved("patients") == 1


# What is refused


def test_another_request_for_an_answered_step_is_refused(fake, parties):
    join(fake, parties)
    party = parties[0]
    task = task_of(fake, party)
    first = party.answering.handle(RUN, task)
    spent = party.ledger.spent("patients")
    asked = decode(task, "curator")
    assert isinstance(asked, Count)
    other = encode(asked.model_copy(update={"tables": (*asked.tables, (0,))}))
    refusal = party.answering.handle(RUN, other)
    assert reason_of(refusal.reply) == "curator: asks for 'correlations' of 'run-1' again, but for something else"
    assert party.ledger.spent("patients") == spent
    assert party.audited()[-1]["event"] == "refused"
    assert party.answering.handle(RUN, task).reply == first.reply  # what was said stays said
    assert party.answering.handle(RUN, other).reply == refusal.reply


def test_a_refusal_beside_the_outbox_is_not_taken_for_a_lost_answer(fake, parties):
    """A curator that keeps it shows its receipt at the next start."""
    fake.start(run_terms())
    party = parties[0]
    join_task = task_of(fake, party)
    stranger = encode(Place(plan="0" * 64, step="initial/1", families=()))
    objection = party.answering.handle("run-9", stranger)
    assert "takes no part" in reason_of(objection.reply)
    party.answering.handle(RUN, join_task)
    receipt = {"run": "run-9", "plan": "0" * 64, "step": "initial/1", "charge": "0"}
    fake.receipts[party.name] = [receipt | {"digest": digest(objection.reply), "signature": objection.receipt.hex()}]
    party.killed().turns(0, start=True)


def test_a_plan_changed_after_acceptance_is_refused(fake, parties):
    fake.start(run_terms())
    party = parties[0]
    party.turns()
    changed = fake.start(run_terms(epsilon="1/2"))
    party.turns()
    assert changed.ended == "refused"
    assert changed.culprit == party.name
    assert changed.reason == "curator: invites to 'run-1' again, as 'run-1' or with another plan"
    assert party.ledger.request(RUN).outcome == "refused"


def test_an_invitation_in_other_words_is_refused(fake, parties):
    fake.start(run_terms())
    party = parties[0]
    invitation = decode(task_of(fake, party), "curator")
    assert isinstance(invitation, Invitation)
    party.answering.handle(RUN, encode(invitation))
    spaced = encode(invitation.model_copy(update={"schema_text": invitation.schema_text + " "}))
    assert "in other words than before" in reason_of(party.answering.handle(RUN, spaced).reply)


def test_more_than_the_plan_allows_is_refused_and_ends_the_run(fake, parties):
    join(fake, parties)
    party = parties[2]
    asked = decode(task_of(fake, party), "curator")
    assert isinstance(asked, Count)
    greedy = encode(asked.model_copy(update={"tables": (*asked.tables, (0, 1, 2, 3, 4))}))
    refusal = party.answering.handle(RUN, greedy)
    assert "asks for other views than the plan's" in reason_of(refusal.reply)
    request = party.ledger.request(RUN)
    assert (request.state, request.outcome, request.spent, request.reserved) == ("ended", "refused", 0, 0)
    assert party.killed().answering.handle(RUN, greedy) == refusal


@pytest.mark.parametrize("stage", ["check", "answer"])
def test_a_task_that_nobody_foresaw_is_declined_and_does_not_stop_the_party(fake, parties, monkeypatch, stage):
    """It would stop again at each restart, with the question still in its inbox; what went wrong stays here."""
    join(fake, parties)
    party = parties[2]

    def breaks(*_: object) -> None:
        raise ZeroDivisionError("17 rows")

    monkeypatch.setattr(answering, stage, breaks)
    reason = reason_of(party.answering.handle(RUN, task_of(fake, party)).reply)
    assert reason == "curator: asks in 'correlations' for what cannot be worked out"
    assert party.ledger.request(RUN).outcome == "refused"
    assert party.ledger.spent("patients") == 0


def test_a_step_of_a_run_that_it_has_not_joined_is_refused(tmp_path, fake):
    party = Party(make_home(tmp_path / "home", 0, fake, accept="ask"), 0, fake)
    terms = run_terms()
    fake.start(terms)
    party.turns()
    early = encode(Place(plan=terms.plan_hash, step="initial/1", families=()))
    assert "before 'run-1' has been joined: it is asked" in reason_of(party.answering.handle(RUN, early).reply)


def test_a_step_of_an_ended_run_is_refused(fake, parties):
    join(fake, parties)
    task = task_of(fake, parties[0])
    fake.runs[RUN].ended = "cancelled"
    parties[0].turns()
    assert parties[0].ledger.request(RUN).outcome == "cancelled"
    assert "takes no part" in reason_of(parties[0].answering.handle(RUN, task).reply)


def test_an_invitation_to_an_ended_run_is_refused(tmp_path, fake):
    party = Party(make_home(tmp_path / "home", 0, fake, accept="ask"), 0, fake)
    fake.start(run_terms())
    invitation = task_of(fake, party)
    party.turns()
    fake.runs[RUN].ended = "cancelled"
    party.turns()
    refusal = party.answering.handle(RUN, invitation)
    assert reason_of(refusal.reply) == "curator: invites to 'run-1', which is over: cancelled"


NO_TASKS = {
    "of a later version": (b"SUBN\x02\0\0\0\0", "speaks protocol version 2"),
    "garbage": (b"garbage", "expected a message that starts with"),
    "an answer": (
        encode(Acceptance(plan="0" * 64, step="joining", exchange_key=bytes(32), signature=b"", contributions=())),
        "which only parties send",
    ),
}


@pytest.mark.parametrize(("data", "why"), NO_TASKS.values(), ids=NO_TASKS)
def test_what_is_no_task_is_refused_as_the_step_that_is_due(fake, parties, data, why):
    join(fake, parties)
    party = parties[0]
    sent = party.answering.handle(RUN, data)
    assert (sent.step, why in reason_of(sent.reply)) == ("correlations", True)
    assert party.ledger.request(RUN).outcome == "refused"
    assert party.ledger.spent("patients") == party.ledger.reserved("patients") == 0


@pytest.mark.parametrize(("data", "why"), NO_TASKS.values(), ids=NO_TASKS)
def test_what_is_no_task_ends_an_invitation_that_waits_for_the_data_owner(tmp_path, fake, data, why):
    party = Party(make_home(tmp_path / "home", 0, fake, accept="ask"), 0, fake)
    fake.start(run_terms())
    party.turns()
    sent = party.answering.handle(RUN, data)
    assert (sent.step, why in reason_of(sent.reply)) == ("joining", True)


@pytest.mark.parametrize(("data", "why"), NO_TASKS.values(), ids=NO_TASKS)
def test_what_is_no_task_of_a_run_that_nobody_knows_is_said(parties, data, why):
    with pytest.raises((MalformedMessage, OutOfTurn), match=why):
        parties[0].answering.handle("run-9", data)
