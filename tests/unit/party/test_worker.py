"""A party at work: whole runs, the data owner's word, and what it says when it cannot go on."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import Request, Response

from party import source
from party.books.ledger import Ledger
from party.curator_link.client import Backoff, Unreachable, Untrusted, Waiting
from party.errors import DiskFull, RolledBack
from party.home import settings
from party.rollback import lost
from protocol.messages.signatures import RUN_HEADER
from protocol.messages.tasks import Place, encode
from protocol.run.party import answer
from tests.support.party import Party, fingerprint_of, finish, make_home, parties_of, run_terms
from tests.support.party_runs import RUN, join, reason_of, sent_by, task_of

# Whole runs


@pytest.mark.parametrize(
    "wishes",
    [
        {"noise": "distributed"},
        {"noise": "selected", "method": "privbayes"},
        {"noise": "distributed", "method": "privabn"},
        {"noise": "local", "method": "jtree"},
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


def test_a_fingerprint_that_is_noted_while_the_party_serves_counts_from_the_next_request_on(tmp_path, fake):
    """A party that ran knew it from its next start on, so that its data owner was asked without need."""
    party = Party(make_home(tmp_path, 0, fake), 0, fake)
    text = party.home.settings.read_text()
    party.home.settings.write_text(text[: text.index("[peers.party-3]")])
    party = party.killed()
    fake.start(run_terms())
    party.turns()
    (reason,) = party.ledger.request(RUN).reasons
    assert reason.startswith("compare the fingerprint of party-3 with its data owner")
    settings.add_peer(party.home, "party-3", fingerprint_of(2))
    fake.start(run_terms("run-2"))
    party.turns()
    assert party.ledger.request("run-2").state == "active"
    party.home.settings.write_text("this is no TOML")  # somebody edits it just now: nobody counts as noted
    fake.start(run_terms("run-3"))
    party.turns()
    asked = party.ledger.request("run-3")
    assert asked.state == "asked"
    assert len(asked.reasons) == 2
    assert asked.reasons[1].startswith("compare the fingerprint of party-3 with its data owner")


def test_a_run_reads_the_table_once(tmp_path, fake, monkeypatch):
    readings = count_readings(monkeypatch)
    parties = parties_of(tmp_path, fake)
    join(fake, parties)
    finish(fake, parties, RUN)
    assert fake.runs[RUN].status == "finished"
    assert readings == [party.home.path for party in parties]


def test_a_run_that_waits_for_the_data_owner_reads_the_table_again_when_decided(tmp_path, fake, monkeypatch):
    readings = count_readings(monkeypatch)
    party = Party(make_home(tmp_path, 0, fake, accept="ask"), 0, fake)
    fake.start(run_terms())
    party.turns()
    assert len(readings) == 1  # whether the table fits is known before anybody is asked
    party.opened.decide(RUN, True, "", "test")
    party.turns()
    assert party.ledger.request(RUN).state == "active"
    assert len(readings) == 2


def count_readings(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The homes whose tables are read from now on, in order."""
    readings, read = [], source.load

    def counted(folder, *more):
        readings.append(folder)
        return read(folder, *more)

    monkeypatch.setattr(source, "load", counted)
    return readings


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


def test_the_data_owners_word_is_noticed_soon(tmp_path, fake):
    asked: list[str] = []
    line = fake.transport()

    class Noting(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            asked.append(request.url.query.decode())
            return await line.handle_async_request(request)

    party = Party(make_home(tmp_path / "home", 0, fake, accept="ask"), 0, fake)
    party.turns(transport=Noting())
    fake.start(run_terms())
    party.turns()
    asked.clear()
    party.turns(transport=Noting())
    assert asked[0].startswith("wait=5")


def test_the_end_of_a_run_is_noticed_soon(fake, parties):
    """A run may end while a party answers or does not ask: what is set aside for it must not stay so for long.

    A run that ends while the party asks ends the poll (`curator.runs.relay`): the polls that follow may be long.
    """
    asked: list[str] = []
    line = fake.transport()

    class Noting(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            asked.extend([request.url.query.decode()] * request.url.path.endswith("/inbox"))
            return await line.handle_async_request(request)

    first = parties[0]
    first.turns(transport=Noting())
    assert asked[0] == "wait=30"
    join(fake, parties)
    asked.clear()
    first.killed().turns(3, transport=Noting())
    assert (asked[0], asked[-1]) == ("wait=5", "wait=30")


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

        async def repeat(*_arguments: Any) -> Waiting:
            return Waiting(RUN, invitation, 0)

        async with party.line() as line:
            line.inbox = repeat  # type: ignore[method-assign]
            worker = party.worker(line, sleep)
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
            worker = party.worker(line, sleep)
            with pytest.raises(asyncio.CancelledError):
                await worker.run()
            return worker.trouble

    return asyncio.run(work())


def test_a_curator_that_was_away_is_seen_soon_and_other_troubles_are_asked_about_less(parties):
    """A party waited up to half a minute for a curator that had been started anew."""

    class Longest(Backoff):
        def seconds(self, failures: int, stream: Any) -> float:
            return min(self.longest, self.first * 2**failures)

    def waits_after(error: Exception) -> list[float]:
        waits: list[float] = []

        async def sleep(seconds: float) -> None:
            waits.append(seconds)
            if len(waits) == 9:
                raise asyncio.CancelledError

        async def work() -> None:
            async with parties[0].line() as line:

                async def fails() -> int:
                    raise error

                line.clock_difference = fails
                with pytest.raises(asyncio.CancelledError):
                    await parties[0].worker(line, sleep, Longest()).run()

        asyncio.run(work())
        return waits

    assert waits_after(Unreachable("nobody is there")) == [0.5, 1, 2, 4, 4, 4, 4, 4, 4]
    assert waits_after(Untrusted("somebody else is there")) == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]


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

    troubles: list[str | None] = []

    async def mend(_seconds: float) -> None:
        troubles.append(worker.trouble)
        fake.parties["party-1"]["revoked"] = False

    async def work() -> None:
        nonlocal worker
        async with parties[0].line() as line, asyncio.timeout(60):
            worker = parties[0].worker(line, mend)
            assert worker.trouble == "not started yet"
            working = asyncio.create_task(worker.run())
            while worker.trouble is not None:
                await asyncio.sleep(0)
            working.cancel()

    worker: Any = None
    asyncio.run(work())
    assert len(troubles) == 1
    assert "revoked" in str(troubles[0])


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


def test_other_bytes_for_an_answered_step_stop_the_party_for_good(fake, parties):
    """Another copy of the home has answered, even if the curator shows no receipt for that."""
    join(fake, parties)
    party = parties[0]
    fake.runs[RUN].stored["correlations", party.name] = b"something else"
    with pytest.raises(RolledBack, match="the curator knows of other bytes for 'correlations' of 'run-1'"):
        party.turns()
    assert party.logged[-1][0] == "the curator does not take an answer"
    assert party.ledger.spent("patients") == run_terms().steps[1].charge(0)
    restarted = party.killed()
    with pytest.raises(RolledBack, match="stop the other copy for good"):  # a supervisor starts it again
        restarted.turns(0, start=True)
    restarted.ledger.resume()
    restarted.turns(0, start=True)


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
    assert fake.runs[RUN].reason == "this party cannot go on: the state that it kept of the run is damaged"


def test_rows_left_behind_by_a_kill_are_removed(fake, parties):
    join(fake, parties)
    party = parties[0]
    (stale,) = party.home.rows.iterdir()
    shutil.copy(stale, stale.with_name("0" * 64 + ".rows"))
    party.killed().turns(0, start=True)
    assert list(party.home.rows.iterdir()) == [stale]


def test_corrected_rows_do_not_enter_a_run_that_has_begun(fake, parties, monkeypatch):
    """Privacy: after a restart a run goes on with the rows that it began with."""
    join(fake, parties)
    party = parties[0]
    table = party.home.path / "patients.csv"
    table.write_text(table.read_text().replace("yes", "no"))
    party, counted = party.killed(), []

    def spy(state: Any, checked: Any, rows: Any, stream: Any) -> Any:
        counted.append(rows.table((0,))[1])
        return answer(state, checked, rows, stream)

    monkeypatch.setattr("party.answering.answering.answer", spy)
    party.turns()
    assert len(counted) == 1
    assert counted[0] > 0


def test_a_step_that_costs_more_than_is_set_aside_is_not_even_computed(fake, parties, monkeypatch):
    join(fake, parties)
    party = parties[0]
    with party.ledger.database.transaction() as db:
        db.execute("UPDATE requests SET price = '1/1000'")
    monkeypatch.setattr("party.answering.answering.answer", None)
    party.turns()
    assert fake.runs[RUN].reason == "'correlations' costs 1/20, 1/1000 is set aside for it"
    assert party.ledger.spent("patients") == 0


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


# Tasks that cannot be read


def unreadable(fake, monkeypatch, run=RUN):
    """From now on, what this run asks cannot be read."""
    original = fake.task

    def task(found, name):
        asked = original(found, name)
        return b"garbage" if asked is not None and found is fake.runs[run] else asked

    monkeypatch.setattr(fake, "task", task)


def test_an_invitation_that_cannot_be_read_is_refused_at_once(fake, parties, monkeypatch):
    fake.start(run_terms())
    unreadable(fake, monkeypatch)
    parties[0].turns(2)
    run = fake.runs[RUN]
    assert (run.ended, run.culprit) == ("refused", "party-1")
    assert "expected a message that starts with" in run.reason
    assert parties[0].ledger.request(RUN) is None
    parties[0].turns(start=True)  # the receipt of the refusal is no answer that the ledger has lost


def test_a_task_that_cannot_be_read_ends_the_run_at_once(fake, parties, monkeypatch):
    join(fake, parties)
    unreadable(fake, monkeypatch)
    parties[0].turns()
    run = fake.runs[RUN]
    assert (run.ended, run.culprit) == ("failed", "party-1")
    assert "expected a message that starts with" in run.reason
    assert parties[0].ledger.spent("patients") == parties[0].ledger.reserved("patients") == 0


def test_a_run_that_cannot_even_be_refused_holds_up_no_other(fake, parties, monkeypatch):
    """Say, of a ledger that has lost the run: the curator goes on asking, and the party goes on with other runs."""
    join(fake, parties)
    unreadable(fake, monkeypatch)
    parties[0].ledger.settle(RUN, "cancelled", "")
    fake.start(run_terms("run-2"))
    parties[0].turns(3)
    assert 0 not in fake.runs["run-2"].state.waiting_for
    assert [fields["run"] for event, fields in parties[0].logged if event == "cannot read a task"] == [RUN]
