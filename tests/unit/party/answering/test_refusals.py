"""A curator that keeps asking for nothing: what it leaves in ledger and log is bounded, and it has to wait."""

import asyncio
import json
import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from party import views
from party.answering.essentials import stored_essentials
from party.answering.refusals import MOST_FRUITLESS, MOST_UNDECIDED, bounded
from party.books import folding
from party.commands.main import main
from party.curator_link.client import Backoff, Waiting
from protocol.messages.tasks import LARGEST_INVITATION, Invitation, Place, encode
from protocol.plan.plan import Member, Plan
from tests.support.fake_curator import FakeCurator
from tests.support.party import Party, make_home, run_terms, write_keys
from tests.support.party_runs import RUN, join, reason_of, task_of
from tests.support.small_runs import BITS


def invitation(run: str, schema_text: str = "", **changes: Any) -> bytes:
    plan = run_terms(run).plan.model_copy(update=changes)
    plan = Plan.model_validate(plan.model_dump())
    return encode(
        Invitation(plan=plan.hash(), step="joining", proposal=plan, schema_text=schema_text or BITS.to_json())
    )


@cache
def crowd(count: int) -> tuple[Member, ...]:
    return tuple(
        Member(name=f"{number:0100}", rows=1, signing_key=bytes(32), exchange_key=bytes(32)) for number in range(count)
    )


@pytest.fixture
def party(tmp_path: Path, fake: FakeCurator) -> Party:
    """A party whose rules refuse every run of `run_terms`."""
    return Party(make_home(tmp_path / "home", 0, fake, per_run="1/2"), 0, fake)


def asks(tmp_path: Path, fake: FakeCurator) -> Party:
    return Party(make_home(tmp_path / "home", 0, fake, accept="ask", total="1000"), 0, fake)


def on_disk(party: Party) -> int:
    party.ledger.database.empty_log()
    return sum(file.stat().st_size for file in (party.home.ledger, party.home.audit))


# What is kept


def test_of_refused_invitations_only_the_essentials_are_kept(party: Party, fake: FakeCurator) -> None:
    """The attack: a ledger of 171 MB after twelve invitations of 20 MB."""
    for number in range(6):
        data = invitation(f"run-{number}", members=crowd(4000))
        assert len(data) > 900_000
        sent = party.answering.handle(f"run-{number}", data)
        assert sent is not None
        assert sent.kind == "refusal"
    assert on_disk(party) < 200_000
    request = party.ledger.request("run-3")
    assert request is not None
    assert (request.plan, request.schema_text, request.outcome) == ("", "", "refused")
    kept = json.loads(request.essentials)
    assert (kept["method"], len(kept["parties"]), kept["more_parties"]) == ("dp-subn", 20, 3980)


def test_an_invitation_larger_than_any_is_refused_unread(party: Party) -> None:
    data = invitation("run-1", members=crowd(18_000))
    assert len(data) > LARGEST_INVITATION
    sent = party.answering.handle("run-1", data)
    assert sent is not None
    assert reason_of(sent.reply) == f"curator: invites with {len(data):,} bytes, an invitation has 4,194,304 at most"
    assert on_disk(party) < 100_000


def test_a_schema_that_was_made_longer_is_not_kept(tmp_path: Path, fake: FakeCurator) -> None:
    """Blanks change no hash."""
    party = asks(tmp_path, fake)
    sent = party.answering.handle("run-1", invitation("run-1", BITS.to_json() + " " * 1_000_000))
    assert sent is not None
    assert reason_of(sent.reply) == "curator: sends a schema in another form than the canonical one"
    assert on_disk(party) < 100_000


def test_a_refused_invitation_is_shown_and_answered_alike_without_its_plan(
    party: Party, fake: FakeCurator, capsys: pytest.CaptureFixture[str]
) -> None:
    data = invitation(RUN)
    first = party.answering.handle(RUN, data)
    assert party.killed().answering.handle(RUN, data) == first
    write_keys(party.home, 0)
    assert main(["requests", "--all", "--home", str(party.home.path)]) == 0
    shown = capsys.readouterr().out
    assert "run run-1: over, refused: it costs 1, one run may cost 0.5" in shown.replace("1/2", "0.5")
    assert "together    party-2, 20 rows (compared)" in shown


def test_nobody_counts_as_compared_while_the_settings_cannot_be_read(parties: list[Party]) -> None:
    settings = parties[0].home.settings
    noted, text = parties[0].opened.peers, settings.read_text()
    assert noted
    settings.write_text(text + "[")
    assert parties[0].opened.peers == {}
    settings.write_text(text)
    assert parties[0].opened.peers == noted


def test_of_a_plan_of_another_version_the_essentials_are_shown(tmp_path: Path, fake: FakeCurator) -> None:
    party = asks(tmp_path, fake)
    assert party.answering.handle("run-1", invitation("run-1")) is None
    request = party.opened.known("run-1")
    before = json.loads(request.plan)
    members = [member | {"region": "north"} for member in before["members"]]
    of_another = {name: value for name, value in before.items() if name not in ("picks", "privacy")}
    older = json.dumps(of_another | {"members": members})
    found, known = stored_essentials(older, None), stored_essentials(request.plan, None)
    assert found == known
    with closing(sqlite3.connect(party.home.ledger)) as db, db:
        db.execute("UPDATE requests SET plan = ?", (older,))
    described = views.described(party.opened, party.opened.known("run-1"))
    assert (described["method"], described["steps"]) == (before["method"], [])


def test_a_run_that_ends_without_a_charge_keeps_its_essentials_alone(fake: FakeCurator, parties: list[Party]) -> None:
    join(fake, parties)
    fake.runs[RUN].ended = "cancelled"
    parties[0].turns()
    parties[1].answering.handle(RUN, task_of_open(fake, parties[1]))
    parties[1].turns()
    first, second = (party.ledger.request(RUN) for party in parties[:2])
    assert first is not None
    assert second is not None
    assert (first.plan, bool(second.plan)) == ("", True)
    assert [entry.step for entry in parties[0].ledger.entries()] == ["joining"]


def task_of_open(fake: FakeCurator, party: Party) -> bytes:
    fake.runs[RUN].ended = None
    task = task_of(fake, party)
    fake.runs[RUN].ended = "cancelled"
    return task


def test_the_oldest_refused_requests_are_folded(
    party: Party, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(folding, "MOST_KEPT", 10)
    for number in range(25):
        party.answering.handle(f"run-{number}", invitation(f"run-{number}"))
    assert [request.run for request in party.ledger.requests()] == [f"run-{number}" for number in range(15, 25)]
    assert len(party.ledger.entries()) == 10
    assert party.ledger.folded() == 15
    write_keys(party.home, 0)
    assert main(["ledger", "--home", str(party.home.path)]) == 0
    assert "15 older requests that were refused or withdrawn are not listed any more" in capsys.readouterr().out


def test_what_was_joined_or_waits_is_never_folded(
    tmp_path: Path, fake: FakeCurator, parties: list[Party], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folding, "MOST_KEPT", 0)
    join(fake, parties)
    party = parties[0]
    party.turns()
    party.answering.handle("run-2", invitation("run-2", "{}"))
    waiting = Party(make_home(tmp_path / "waiting", 0, fake, accept="ask"), 0, fake)
    waiting.answering.handle("run-3", invitation("run-3"))
    waiting.answering.handle("run-4", invitation("run-4", "{}"))
    assert [request.run for request in party.ledger.requests()] == [RUN]
    assert [request.run for request in waiting.ledger.requests()] == ["run-3"]
    assert party.ledger.spent("patients") > 0


# What is logged


def test_refusals_that_follow_each_other_without_end_are_counted_instead_of_told(party: Party) -> None:
    """Each with another plan: after the first hundred, one is told whenever their number has doubled."""
    for number in range(430):
        party.answering.handle("run-x", encode(Place(plan=f"{number:064x}", step="initial/1", families=())))
    refused = [entry for entry in party.audited() if entry["event"] == "refused"]
    assert [entry.get("row") for entry in refused] == [None] * MOST_FRUITLESS + [200, 400]
    party.answering.handle(RUN, invitation(RUN))
    assert len(party.audited()) == len(refused)
    assert party.ledger.fruitless() == 431


def test_a_charge_begins_the_count_anew_and_a_run_that_is_joined_is_always_told(
    fake: FakeCurator, parties: list[Party]
) -> None:
    party = parties[0]
    for _ in range(MOST_FRUITLESS):
        party.ledger.note_fruitless()
    fake.start(run_terms())
    for other in parties:
        other.turns()
    assert party.ledger.request(RUN).state == "asked"  # although its rules would accept it
    assert party.ledger.request(RUN).reasons == ("many requests in a row came to nothing: ask the operator why",)
    assert party.audited() == []
    party.opened.decide(RUN, True, "", "test")
    party.turns()
    assert [entry["event"] for entry in party.audited()][:4] == ["decided", "asked", "judged", "answered"]
    for other in parties:
        other.turns()
    assert party.ledger.spent("patients") > 0
    assert party.ledger.fruitless() == 0


def test_reasons_are_bounded_however_many_a_plan_makes() -> None:
    found = bounded([f"{number} " + "x" * 1000 for number in range(500)])
    assert (len(found), found[-1], max(map(len, found))) == (21, "and 480 more reasons", 300)
    assert bounded(["a"]) == ("a",)


# What waits


def test_only_so_many_requests_wait_for_the_data_owner(tmp_path: Path, fake: FakeCurator) -> None:
    party = asks(tmp_path, fake)
    for number in range(MOST_UNDECIDED):
        assert party.answering.handle(f"run-{number}", invitation(f"run-{number}")) is None
    sent = party.answering.handle("one-more", invitation("one-more"))
    assert sent is not None
    assert reason_of(sent.reply) == "25 requests wait for the data owner already: ask again later"
    party.opened.decide("run-0", False, "", "test")
    party.answering.decided()
    assert party.answering.handle("another", invitation("another")) is None


def slept(party: Party, tasks: list[bytes]) -> list[float]:
    """The longest that the worker may wait after each of these tasks."""
    waits: list[float] = []

    class Longest(Backoff):
        def seconds(self, failures: int, stream: Any) -> float:
            return min(self.longest, self.first * 2**failures)

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async def work() -> None:
        async with party.line() as line:

            async def inbox(*_: Any) -> Waiting:
                return Waiting("run-x", tasks.pop(0))

            line.inbox = inbox  # type: ignore[method-assign]
            worker = party.worker(line, sleep, Longest())
            while tasks:
                await worker.turn()

    asyncio.run(work())
    return waits


def test_after_refusals_the_party_waits_longer_and_longer(party: Party, fake: FakeCurator) -> None:
    tasks = []
    for number in range(9):
        fake.start(run_terms(f"run-{number}"))
        tasks.append(invitation(f"run-{number}"))
    assert slept(party, tasks) == [1, 2, 4, 8, 16, 30, 30, 30, 30]


def test_a_task_that_is_repeated_without_end_is_answered_ever_more_slowly(
    fake: FakeCurator, parties: list[Party]
) -> None:
    join(fake, parties)
    task = task_of(fake, parties[0])
    assert slept(parties[0], [task] * 5) == [1, 2, 4, 8]
