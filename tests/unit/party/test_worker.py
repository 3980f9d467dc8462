"""A party at work: the order of effects, kills at every place that matters, and what it says when it cannot go on."""

import asyncio
import json
import shutil
from fractions import Fraction
from typing import Any

import httpx
import pytest
from fastapi import Request, Response

from party.answering import answering
from party.answering.answering import Answering
from party.books.ledger import Ledger
from party.curator_link.client import Declined, Untrusted
from party.errors import DiskFull, RolledBack
from party.worker import lost
from protocol.errors import MalformedMessage, OutOfTurn
from protocol.exact import digest
from protocol.messages.signatures import RUN_HEADER
from protocol.messages.tasks import Acceptance, Count, Invitation, Place, Refusal, decode, encode
from tests.support.fake_curator import FakeCurator
from tests.support.party import ROWS, Party, finish, make_home, parties_of, run_terms
from tests.support.small_runs import BITS, MIXED

RUN = "run-1"


@pytest.fixture
def fake() -> FakeCurator:
    return FakeCurator()


@pytest.fixture
def parties(tmp_path, fake) -> list[Party]:
    return parties_of(tmp_path, fake)


def join(fake: FakeCurator, parties: list[Party], **wishes: Any) -> None:
    """A run that all parties have joined."""
    fake.start(run_terms(**wishes))
    for party in parties:
        party.turns()
    assert fake.runs[RUN].state.step.stage != "joining"


def task_of(fake: FakeCurator, party: Party, run: str = RUN) -> bytes:
    task = fake.task(fake.runs[run], party.name)
    assert task is not None
    return task


def sent_by(fake: FakeCurator, party: Party, step: str) -> list[bytes]:
    return [body for run, sent, name, body in fake.deliveries if (run, sent, name) == (RUN, step, party.name)]


def reason_of(reply: bytes) -> str:
    message = decode(reply, "party")
    assert isinstance(message, Refusal)
    return message.reason


# Whole runs


@pytest.mark.parametrize(
    "wishes",
    [
        {"noise": "distributed"},
        {"noise": "local", "method": "dp-ccbn"},
        {"noise": "selected", "update": "joint"},
        {"noise": "local", "method": "independent"},
    ],
    ids=lambda wishes: "-".join(wishes.values()),
)
def test_a_whole_run_is_answered_and_charged_to_the_last_step(fake, parties, small_secret, wishes):
    terms = run_terms(**wishes)
    fake.start(terms, small_secret)
    finish(fake, parties, RUN)
    assert fake.runs[RUN].status == "finished", fake.runs[RUN].reason
    for party in parties:
        party.turns()
        request = party.ledger.request(RUN)
        assert (request.state, request.outcome) == ("ended", "finished")
        assert party.ledger.spent("patients") == terms.price(party.number) == request.price
        assert party.ledger.reserved("patients") == 0
        steps = [step.name for step in terms.steps if party.number in step.parties]
        assert [entry.step for entry in party.ledger.entries()] == steps
        assert [receipt["step"] for receipt in fake.receipts[party.name]] == steps
        assert not list(party.home.rows.iterdir())


def test_replaced_noise_outlives_a_kill(tmp_path, fake):
    parties = parties_of(tmp_path, fake, more="", per_run="20", total="20", accept="auto")
    for party in parties:
        text = party.home.settings.read_text().replace(
            "[policy]", '[policy]\nupdates = ["replace"]\nsmallest_insiders = 0'
        )
        party.home.settings.write_text(text)
    fake.start(run_terms(noise="local", update="replace", insiders=0, epsilon=20))
    for _ in range(60):
        parties = [party.killed() for party in parties]
        for party in parties:
            party.turns()
        if fake.runs[RUN].status not in ("joining", "running"):
            break
    assert fake.runs[RUN].status == "finished", fake.runs[RUN].reason


def test_two_runs_at_once(fake, parties):
    fake.start(run_terms(RUN))
    fake.start(run_terms("run-2", method="dp-ccbn"))
    finish(fake, parties, RUN)
    finish(fake, parties, "run-2")
    assert {run.status for run in fake.runs.values()} == {"finished"}
    assert parties[0].ledger.spent("patients") == 2


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
        if request.method == "PUT" and lost_once.pop() if lost_once else False:
            return Response("bad gateway", 502)
        return answer

    fake.after.append(lose)
    parties[0].turns()
    first, second = sent_by(fake, parties[0], "correlations")
    assert first == second


def test_killed_between_reservation_and_acceptance_it_joins_after_its_restart(fake, parties):
    fake.start(run_terms())
    party = parties[0]
    invitation = decode(task_of(fake, party), "curator")
    assert isinstance(invitation, Invitation)
    party.answering._judged(invitation)
    party.ledger.reserve(RUN, Fraction(4))
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


def test_a_task_under_another_runs_name_is_answered_in_its_own(fake, parties):
    """The name is a header; the plan's hash in the task says which run it is."""
    party = parties[0]
    for run in (RUN, "run-2"):
        fake.start(run_terms(run))
        for one in parties:
            fake.accept(fake.runs[run], one.name, one.answering.handle(run, task_of(fake, one, run)).reply)
    sent = party.answering.handle("run-2", task_of(fake, party, RUN))
    assert (sent.run, sent.step) == (RUN, "correlations")
    assert {party.ledger.request(run).state for run in (RUN, "run-2")} == {"active"}
    assert party.ledger.entries(run=RUN)[-1].step == "correlations"


def test_a_task_of_an_unknown_plan_ends_no_run(fake, parties):
    join(fake, parties)
    party = parties[0]
    stranger = encode(Place(plan="0" * 64, step="initial/1", families=()))
    for _ in range(2):
        assert "takes no part" in reason_of(party.answering.handle(RUN, stranger).reply)
    assert party.ledger.request(RUN).state == "active"
    assert party.killed().answering.handle(RUN, task_of(fake, party)).step == "correlations"


def test_a_name_of_a_run_that_was_changed_on_the_way_is_not_believed(fake, parties):
    def renamed(_request, answer):
        answer.headers.update({RUN_HEADER: "run-2"} if RUN_HEADER in answer.headers else {})
        return answer

    join(fake, parties)
    fake.after.append(renamed)
    with pytest.raises(Untrusted):
        parties[0].turns()
    assert parties[0].ledger.answered(RUN, "correlations") is None


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
def test_a_question_that_nobody_foresaw_is_declined_and_does_not_stop_the_party(fake, parties, monkeypatch, stage):
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


def test_what_is_no_task_is_said_and_not_answered(fake, parties):
    with pytest.raises(MalformedMessage):
        parties[0].answering.handle(RUN, b"SUBN\x02\0\0\0\0")
    answer = encode(Acceptance(plan="0" * 64, step="joining", exchange_key=bytes(32), signature=b"", contributions=()))
    with pytest.raises(OutOfTurn, match="which only parties send"):
        parties[0].answering.handle(RUN, answer)


# Invitations that cannot be accepted


def refused_because(party: Party, fake: FakeCurator) -> str:
    """The reason that reaches the curator when this party is invited; nothing is spent or set aside."""
    party.turns()
    run = fake.runs[RUN]
    assert (run.ended, run.culprit) == ("refused", party.name)
    assert party.ledger.spent("patients") == party.ledger.reserved("patients") == 0
    audited = [entry["event"] for entry in party.audited()]
    assert audited[:2] == ["asked", "judged"]
    assert audited[-1] == "refused"
    assert party.ledger.request(RUN).state == "ended"
    return run.reason


def test_a_refusal_by_policy_reaches_the_curator_with_its_reasons(tmp_path, fake):
    party = Party(make_home(tmp_path / "home", 0, fake, per_run="1/2", more="\n"), 0, fake)
    fake.start(run_terms(epsilon=1))
    assert refused_because(party, fake) == "it costs 1, one run may cost 1/2"


def test_what_is_left_is_not_overspent_by_two_runs(tmp_path, fake):
    party = Party(make_home(tmp_path / "home", 0, fake, total="3/2"), 0, fake)
    fake.start(run_terms("run-0", epsilon=1))
    fake.start(run_terms(RUN, epsilon=1))
    party.turns(2)
    assert fake.runs["run-0"].ended is None
    assert fake.runs[RUN].reason == "it costs 1, only 1/2 is left of 3/2 (0 spent, 1 set aside)"
    assert party.ledger.reserved("patients") == 1


def test_two_decisions_on_one_budget_are_not_both_kept(tmp_path, fake):
    """Each alone fits; the second finds the budget set aside."""
    party = Party(make_home(tmp_path / "home", 0, fake, total="3/2", accept="ask"), 0, fake)
    for run in ("run-0", RUN):
        fake.start(run_terms(run, epsilon=1))
    party.turns(2)
    for run in ("run-0", RUN):
        party.ledger.decide(run, accept=True)
    party.turns()
    assert fake.runs["run-0"].ended is None
    assert fake.runs[RUN].reason.startswith(
        "'run-1' costs 1, but of the 3/2 that 'patients' may spend only 1/2 is left"
    )


def test_a_schema_of_no_data_set_is_refused(tmp_path, fake):
    party = Party(make_home(tmp_path / "home", 0, fake, schema=MIXED), 0, fake)
    fake.start(run_terms(schema=BITS))
    assert "has no data set with the schema" in refused_because(party, fake)


def test_a_roster_without_this_party_is_refused(tmp_path, fake):
    party = Party(make_home(tmp_path / "home", 3, fake, rows=(*ROWS, 5)), 3, fake)
    fake.start(run_terms())
    plan = fake.runs[RUN].terms.plan
    others = Invitation(plan=plan.hash(), step="joining", proposal=plan, schema_text=BITS.to_json())
    refusal = party.answering.handle(RUN, encode(others))
    assert "the signing key of party-4 is not in the plan's roster" in reason_of(refusal.reply)


def test_a_plan_that_knows_this_party_by_another_name_is_refused(tmp_path, fake):
    party = Party(make_home(tmp_path / "home", 0, fake), 0, fake)
    text = party.home.settings.read_text().replace('name = "party-1"', 'name = "party-9"')
    party.home.settings.write_text(text)
    fake.start(run_terms())
    task = task_of(fake, party)
    assert "under another name or exchange key" in reason_of(party.killed().answering.handle(RUN, task).reply)


def test_other_rows_than_the_plan_says_are_refused_before_anything_is_spent(tmp_path, fake):
    party = Party(make_home(tmp_path / "home", 0, fake), 0, fake)
    table = tmp_path / "home" / "patients.csv"
    table.write_text("\n".join(table.read_text().splitlines()[:-2]) + "\n")
    fake.start(run_terms())
    assert refused_because(party, fake).startswith("party-1 holds 28 rows, the plan says 30")


def test_a_table_that_does_not_fit_is_refused_without_saying_where(tmp_path, fake):
    party = Party(make_home(tmp_path / "home", 0, fake), 0, fake)
    table = tmp_path / "home" / "patients.csv"
    table.write_text(table.read_text().replace("yes", "perhaps", 1))
    fake.start(run_terms())
    reason = refused_because(party, fake)
    assert reason.startswith("the table of party-1 cannot be read under this schema; `subn-party check` shows")
    assert "perhaps" not in json.dumps(party.audited())


def test_a_plan_under_another_plans_hash_is_refused(fake, parties):
    fake.start(run_terms())
    invitation = decode(task_of(fake, parties[0]), "curator")
    forged = encode(invitation.model_copy(update={"plan": "0" * 64}))
    assert "invites under the hash of another plan" in reason_of(parties[0].answering.handle(RUN, forged).reply)


def test_small_keys_are_refused_where_no_test_allows_them(tmp_path, fake, small_secret):
    party = Party(make_home(tmp_path / "home", 0, fake), 0, fake)
    party.answering = Answering(party.opened)
    fake.start(run_terms(noise="selected"), small_secret)
    assert "a Paillier key of 512 bits is too small" in refused_because(party, fake)


def test_a_data_set_that_went_away_after_the_invitation_is_refused(tmp_path, fake):
    party = Party(make_home(tmp_path / "home", 0, fake, accept="ask"), 0, fake)
    fake.start(run_terms())
    party.turns()
    party.ledger.decide(RUN, accept=True)
    text = party.home.settings.read_text().replace("datasets.patients", "datasets.others")
    party.home.settings.write_text(text)
    party.killed().turns()
    assert fake.runs[RUN].reason == "this party no longer has the data set 'patients'"


# The data owner's word


def test_the_data_owner_is_asked_and_accepts(tmp_path, fake):
    party = Party(make_home(tmp_path / "home", 0, fake, accept="ask"), 0, fake)
    fake.start(run_terms())
    party.turns(3)
    assert fake.runs[RUN].state.waiting_for == (0, 1, 2)
    assert party.ledger.request(RUN).state == "asked"
    assert party.ledger.reserved("patients") == 0
    assert [event for event, _ in party.logged].count("waiting for the data owner's word") == 1
    party.ledger.decide(RUN, accept=True)
    party.turns()
    assert fake.runs[RUN].state.waiting_for == (1, 2)
    assert party.ledger.reserved("patients") == 1


def test_the_data_owner_is_asked_and_refuses(tmp_path, fake):
    party = Party(make_home(tmp_path / "home", 0, fake, accept="ask"), 0, fake)
    fake.start(run_terms())
    party.turns()
    party.ledger.decide(RUN, accept=False, reason="not in the holidays")
    party.turns()
    assert (fake.runs[RUN].ended, fake.runs[RUN].reason) == ("refused", "not in the holidays")
    without = Party(make_home(tmp_path / "home-2", 1, fake, accept="ask"), 1, fake)
    fake.start(run_terms("run-2"))
    without.turns()
    without.ledger.decide("run-2", accept=False)
    without.turns()
    assert fake.runs["run-2"].reason == "the data owner does not want to take part"


def test_the_end_of_a_run_is_noticed_soon(fake, parties):
    """A run may be cancelled while it waits for others: what is set aside for it must not stay so for long."""
    asked: list[str] = []
    line = fake.transport()

    class Noting(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            asked.append(request.url.query.decode())
            return await line.handle_async_request(request)

    first = parties[0]
    first.turns(transport=Noting())
    assert "wait=30" in asked
    join(fake, parties)
    asked.clear()
    first.killed().turns(transport=Noting())
    assert "wait=5" in asked


def test_other_runs_go_on_while_one_waits_for_the_data_owner(tmp_path, fake):
    """The inbox gives the oldest task first; what waits for the data owner is skipped."""
    first = parties_of(tmp_path, fake)[0]
    fake.start(run_terms("run-0"))
    text = first.home.settings.read_text()
    first.home.settings.write_text(text.replace('accept = "auto"', 'accept = "ask"'))
    first = first.killed()
    first.turns()
    assert first.ledger.request("run-0").state == "asked"
    first.home.settings.write_text(text)
    first = first.killed()
    fake.start(run_terms(RUN))
    first.turns()
    assert fake.runs[RUN].state.waiting_for == (1, 2)
    assert first.ledger.request("run-0").state == "asked"


def test_a_curator_that_repeats_an_undecided_invitation_is_not_asked_without_end(tmp_path, fake):
    party = Party(make_home(tmp_path / "home", 0, fake, accept="ask"), 0, fake)
    fake.start(run_terms())
    invitation = task_of(fake, party)

    async def work() -> list[float]:
        slept: list[float] = []

        async def sleep(seconds: float) -> None:
            slept.append(seconds)

        async def repeat(*_arguments: Any) -> tuple[str, bytes]:
            return RUN, invitation

        async with party.line() as line:
            line.inbox = repeat  # type: ignore[method-assign]
            worker = party.worker(line)
            worker._sleep = sleep
            for _ in range(3):
                await worker.turn()
        return slept

    assert asyncio.run(work()) == [5, 5]


def test_it_says_once_that_it_waits_for_the_data_owner(tmp_path, fake):
    party = Party(make_home(tmp_path / "home", 0, fake, accept="ask"), 0, fake)
    fake.start(run_terms())

    async def work() -> None:
        async with party.line() as line:
            worker = party.worker(line)
            for _ in range(3):
                await worker.turn()
            party.ledger.decide(RUN, accept=True)
            await worker.turn()

    asyncio.run(work())
    said = [fields["runs"] for event, fields in party.logged if event == "waiting for the data owner's word"]
    assert said == [[RUN]]


def test_a_run_cancelled_before_the_decision_no_longer_waits_for_it(tmp_path, fake):
    party = Party(make_home(tmp_path / "home", 0, fake, accept="ask"), 0, fake)
    fake.start(run_terms())
    party.turns()
    fake.runs[RUN].ended, fake.runs[RUN].reason, fake.runs[RUN].culprit = "cancelled", "a mistake", "operator"
    party.turns()
    request = party.ledger.request(RUN)
    assert (request.state, request.outcome, request.reason) == ("ended", "cancelled", "operator: a mistake")


# A ledger that was set back


def test_a_ledger_that_was_set_back_serves_nobody_until_that_is_acknowledged(fake, parties):
    join(fake, parties)
    party = parties[0]
    party.opened.ledger.close()
    saved = party.home.path / "saved.db"
    shutil.copy(party.home.ledger, saved)
    party = party.killed()
    party.turns()
    party.opened.ledger.close()
    for file in party.home.path.glob("ledger.db*"):
        file.unlink()
    shutil.copy(saved, party.home.ledger)
    restored = party.killed()
    before = len(fake.deliveries)
    with pytest.raises(RolledBack, match=r"has signed 1 answers that .*ledger\.db does not know"):
        restored.turns(start=True)
    assert len(fake.deliveries) == before
    assert restored.audited()[-1]["event"] == "rolled back"
    assert restored.ledger.spent("patients") == 0

    async def missing() -> Any:
        async with restored.line() as line:
            return lost(restored.opened, await line.receipts())

    restored.ledger.acknowledge(asyncio.run(missing()), "patients")
    assert restored.ledger.spent("patients") == run_terms().steps[1].charge(0)
    restored.turns(0, start=True)
    assert restored.ledger.request(RUN).state == "ended"


def test_receipts_that_this_party_did_not_sign_prove_nothing(fake, parties):
    join(fake, parties)
    forged = fake.receipts["party-2"][0] | {"run": "run-7"}
    fake.receipts["party-1"].append(forged)
    parties[0].turns(0, start=True)


# What it says when it cannot go on


def run_for(party: Party, stop_after: int, **changes: Any) -> Any:
    """The worker's own loop, cancelled after it has waited so many times."""

    async def work() -> Any:
        waits = [0]

        async def sleep(_seconds: float) -> None:
            waits[0] += 1
            if waits[0] > stop_after:
                raise asyncio.CancelledError
            await asyncio.sleep(0)

        async with party.line(**changes) as line:
            worker = party.worker(line)
            worker._sleep = sleep
            with pytest.raises(asyncio.CancelledError):
                await worker.run()
            return worker.trouble

    return asyncio.run(work())


@pytest.mark.parametrize("number", [1, 4])
def test_a_revoked_party_says_so_and_keeps_asking(fake, parties, number):
    fake.parties["party-1"]["revoked"] = True
    trouble = run_for(parties[0], number)
    assert trouble == "the party 'party-1' was revoked by the operator"
    said = [fields["reason"] for event, fields in parties[0].logged if event == "cannot go on"]
    assert said == [trouble] * (number + 1)


def test_a_wrong_clock_is_said_with_both_times(fake, parties):
    fake.now += 7200
    assert "your clock says 1800000000000 ms, the curator's says 1800007200000 ms" in run_for(parties[0], 2)


def test_a_false_curator_moves_nothing(fake, parties):
    join(fake, parties)

    def spoil(_request: Request, answer: Response) -> Response:
        answer.headers["Subn-Curator-Signature"] = "00" * 64
        return answer

    fake.after.append(spoil)
    before = parties[0].ledger.entries()
    assert "not signed by the curator" in run_for(parties[0], 3)
    assert parties[0].ledger.entries() == before


def test_trouble_that_passes_is_forgotten(fake, parties):
    fake.parties["party-1"]["revoked"] = True

    async def work() -> None:
        async with parties[0].line() as line:
            worker = parties[0].worker(line)
            assert worker.trouble == "not started yet"
            assert not await worker._patiently(worker.turn)
            assert worker.trouble
            fake.parties["party-1"]["revoked"] = False
            assert await worker._patiently(worker.turn)
            assert worker.trouble is None

    asyncio.run(work())


def test_a_full_disk_pauses_and_spends_nothing(fake, parties, monkeypatch):
    join(fake, parties)
    party = parties[0]

    def full(*_arguments: Any, **_named: Any) -> bytes:
        raise DiskFull("ledger.db: the disk is full, nothing was written; make room and try again")

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "record", full)
        with pytest.raises(DiskFull):
            party.turns()
    assert party.ledger.spent("patients") == 0
    assert sent_by(fake, party, "correlations") == []
    party.turns()
    assert len(sent_by(fake, party, "correlations")) == 1


def test_an_answer_that_the_curator_does_not_take_is_said(fake, parties):
    join(fake, parties)
    party = parties[0]
    fake.runs[RUN].stored["correlations", party.name] = b"something else"
    with pytest.raises(Declined, match="has answered 'correlations' with other bytes"):
        party.turns()
    assert party.logged[-1][0] == "the curator does not take an answer"


def test_an_answer_to_a_run_that_has_just_ended_is_let_go(fake, parties):
    join(fake, parties)
    party = parties[0]

    def cancel(request: Request) -> None:
        if request.method == "PUT":
            fake.runs[RUN].ended = "cancelled"

    fake.before.append(cancel)
    party.turns()
    request = party.ledger.request(RUN)
    assert (request.outcome, request.spent) == ("cancelled", run_terms().steps[1].charge(0))


def test_records_of_a_run_that_are_damaged_end_it_without_showing_where_they_are(fake, parties):
    join(fake, parties)
    party = parties[0].killed()
    for file in party.home.rows.iterdir():
        file.write_bytes(b"damaged")
    party.turns()
    assert fake.runs[RUN].reason == "this party cannot go on: what it kept of the run is damaged"


def test_rows_left_behind_by_a_kill_are_removed(fake, parties):
    join(fake, parties)
    party = parties[0]
    (stale,) = party.home.rows.iterdir()
    shutil.copy(stale, stale.with_name("0" * 64 + ".rows"))
    party.killed().turns(0, start=True)
    assert list(party.home.rows.iterdir()) == [stale]


def test_corrected_rows_do_not_enter_a_run_that_has_begun(fake, parties):
    """Privacy: after a restart a run goes on with the rows that it began with."""
    join(fake, parties)
    party = parties[0]
    table = party.home.path / "patients.csv"
    table.write_text(table.read_text().replace("yes", "no"))
    party = party.killed()
    party.turns()
    (joined,) = party.answering._joined.values()
    assert joined.rows.table((0,))[1] > 0


def test_a_step_that_costs_more_than_is_set_aside_is_not_even_computed(fake, parties, monkeypatch):
    join(fake, parties)
    party = parties[0]
    with party.ledger._database.transaction() as db:
        db.execute("UPDATE requests SET price = '1/1000'")
    monkeypatch.setattr("party.answering.answering.answer", None)
    party.turns()
    assert fake.runs[RUN].reason == "'correlations' costs 1/20, 1/1000 is set aside for it"
    assert party.ledger.spent("patients") == 0
