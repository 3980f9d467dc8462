"""Books that were set back, and copies of a home: whatever shows it, nothing is answered before the owner's word."""

import asyncio
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from party.books.audit import verify
from party.commands.main import main
from party.curator_link.client import Waiting
from party.errors import RolledBack
from party.home.layout import Home
from party.rollback import check_own_books
from tests.support.fake_curator import FakeCurator
from tests.support.party import Party, make_home, run_terms, seams_to, write_keys
from tests.support.party_runs import RUN, join, sent_by

PRICE = run_terms().steps[1].charge(0)


def copied(party: Party, name: str) -> Party:
    """A copy of the home as it is on disk, in a process of its own."""
    party.opened.ledger.close()
    folder = party.home.path.with_name(name)
    shutil.copytree(party.home.path, folder)
    party.opened = party.killed().opened
    return Party(Home(folder), party.number, party.fake)


def set_back(party: Party, older: Party) -> Party:
    """The home with the ledger of an older copy; its log stays as it is."""
    for one in (party, older):
        one.opened.ledger.close()
    for file in party.home.path.glob("ledger.db*"):
        file.unlink()
    shutil.copy(older.home.ledger, party.home.ledger)
    return Party(party.home, party.number, party.fake)


def acknowledge(party: Party, *words: str) -> int:
    party.opened.ledger.close()
    if not party.home.keys.exists():
        write_keys(party.home, party.number)
    return main(["ledger", "acknowledge", "--home", str(party.home.path), *words], seams_to(party.fake))


@pytest.fixture
def answered(fake: FakeCurator, parties: list[Party]) -> tuple[Party, Party]:
    """A party after a priced answer, and a copy of its home from the moment before."""
    join(fake, parties)
    party = parties[0].killed()
    older = copied(party, "older")
    party = party.killed()
    party.turns()
    assert party.ledger.spent("patients") == PRICE
    return party, older


# The party's own log


def test_a_ledger_that_was_set_back_is_known_to_the_log_while_the_curator_hides_its_receipts(
    fake: FakeCurator, answered: tuple[Party, Party], capsys: pytest.CaptureFixture[str]
) -> None:
    fake.receipts.clear()
    party = set_back(*answered)
    before = len(fake.deliveries)
    with pytest.raises(RolledBack, match=r"has signed 1 answers that .* does not know .its audit log tells of them."):
        party.turns(1, start=True)
    assert (len(fake.deliveries), party.ledger.spent("patients")) == (before, 0)
    assert party.audited()[-1]["event"] == "rolled back"
    assert main(["audit", "verify", "--home", str(party.home.path)]) == 1
    assert "tells of 1 answers that" in capsys.readouterr().out

    assert acknowledge(party) == 0
    assert "charged 0.05 for correlations of run-1" in capsys.readouterr().out
    party = party.killed()
    assert party.ledger.spent("patients") == PRICE
    party.turns(1, start=True)
    assert party.ledger.request(RUN).outcome == "failed"
    assert len(sent_by(fake, party, "correlations")) == 1
    assert main(["audit", "verify", "--home", str(party.home.path)]) == 0


def test_what_the_log_knows_is_charged_even_if_the_curator_is_away(
    fake: FakeCurator, answered: tuple[Party, Party]
) -> None:
    party = set_back(*answered)
    fake.parties[party.name]["revoked"] = True
    assert acknowledge(party) == 3
    assert party.killed().ledger.spent("patients") == PRICE


def test_what_log_and_receipts_both_tell_of_is_charged_once(fake: FakeCurator, answered: tuple[Party, Party]) -> None:
    party = set_back(*answered)
    assert acknowledge(party) == 0
    assert party.killed().ledger.spent("patients") == PRICE


@pytest.mark.parametrize("left", [0, 3])
def test_a_log_that_was_emptied_or_cut_keeps_the_party_from_serving(
    fake: FakeCurator, parties: list[Party], left: int, capsys: pytest.CaptureFixture[str]
) -> None:
    join(fake, parties)
    party = parties[0]
    party.turns()
    lines = party.home.audit.read_bytes().splitlines(keepends=True)
    party.home.audit.write_bytes(b"".join(lines[:left]))
    assert verify(party.home.audit) == []
    for _ in range(2):  # however often it is started
        party = party.killed()
        party.opened.audit.append("started", version="1")
        with pytest.raises(RolledBack, match=r"its end was cut off|is not the line that the ledger"):
            party.turns(0, start=True)
    assert main(["audit", "verify", "--home", str(party.home.path)]) == 1
    assert acknowledge(party) == 0
    party = party.killed()
    party.turns(1, start=True)
    assert party.opened.audit_problems() == []
    assert [one["lines"] for one in party.audited() if one["event"] == "continued"] == [len(lines)]
    assert party.ledger.spent("patients") == PRICE


def test_a_last_line_that_was_rewritten_is_not_the_one_that_the_ledger_noted(
    fake: FakeCurator, answered: tuple[Party, Party]
) -> None:
    """No line follows it, so that the chain alone shows nothing."""
    party = answered[0].killed()
    party.home.audit.write_bytes(party.home.audit.read_bytes().replace(b'"charge":"1/20"', b'"charge":"1/90"'))
    assert verify(party.home.audit) == []
    with pytest.raises(RolledBack, match="is not the line that the ledger has noted: it was changed"):
        check_own_books(party.opened)


def test_a_log_that_was_changed_is_put_aside_first(fake: FakeCurator, answered: tuple[Party, Party]) -> None:
    party = answered[0].killed()
    data = party.home.audit.read_bytes()
    party.home.audit.write_bytes(data.replace(b'"price":"1"', b'"price":"2"'))
    with pytest.raises(RolledBack, match="does not follow from the line before"):
        check_own_books(party.opened)
    assert acknowledge(party) == 1
    party.home.audit.rename(party.home.audit.with_name("changed.jsonl"))
    assert acknowledge(party) == 0
    party.killed().turns(0, start=True)


@pytest.mark.parametrize("damaged", [b"not JSON\n", b"\xff\xfe\n", b"[" * 100_000 + b"\n", b"7\n"])
def test_a_log_with_a_line_that_is_no_entry_keeps_the_party_from_serving(
    fake: FakeCurator, answered: tuple[Party, Party], damaged: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    party = answered[0].killed()
    lines = party.home.audit.read_bytes().splitlines(keepends=True)
    party.home.audit.write_bytes(b"".join([*lines[:-1], damaged, lines[-1]]))
    with pytest.raises(RolledBack, match=rf"line {len(lines)}: is no entry of this log"):
        party.turns(1, start=True)
    assert main(["audit", "verify", "--home", str(party.home.path)]) == 1
    assert f"line {len(lines)}: is no entry of this log" in capsys.readouterr().out


def test_a_ledger_that_is_overwritten_while_it_is_served_lets_nothing_leave(
    fake: FakeCurator, parties: list[Party], tmp_path: Path
) -> None:
    """Neither the log nor the receipts are compared before the next start."""
    party, others = parties[0], parties[1:]
    with closing(sqlite3.connect(party.home.ledger)) as live, closing(sqlite3.connect(tmp_path / "old.db")) as old:
        live.backup(old)
        join(fake, parties)

        async def work() -> None:
            async with party.line() as line:
                worker = party.worker(line)
                await worker.turn()
                for other in others:
                    async with other.line() as theirs:
                        await other.worker(theirs).turn()
                old.backup(live)
                await worker.turn()

        with pytest.raises(RolledBack, match="was set back while this party was served"):
            asyncio.run(work())
    assert [step for _, step, name, _ in fake.deliveries if name == party.name] == ["joining", "correlations"]


# Copies


def test_a_copy_that_is_behind_answers_nothing(fake: FakeCurator, parties: list[Party]) -> None:
    """It was started before the other copy answered, so that nothing at its start told of it."""
    join(fake, parties)
    older = copied(parties[0], "older")
    parties[0] = parties[0].killed()

    async def work() -> None:
        async with older.line() as line:
            worker = older.worker(line)
            await worker.start()
            for party in parties:
                async with party.line() as other:
                    await party.worker(other).turn()
            assert fake.runs[RUN].state.step.name == "initial/1"
            await worker.turn()

    with pytest.raises(RolledBack, match=r"has signed 1 answers that .* does not know \(it has signed them\)"):
        asyncio.run(work())
    assert len(sent_by(fake, older, "correlations")) == 1
    assert [entry.step for entry in older.ledger.entries()] == ["joining"]


def test_receipts_are_listed_once_and_not_before_every_step(fake: FakeCurator, parties: list[Party]) -> None:
    """As long as nobody else answers in this party's name, one number says so."""
    fake.start(run_terms())

    async def work() -> None:
        lines = [party.line() for party in parties]
        workers = [party.worker(line) for party, line in zip(parties, lines, strict=True)]
        for worker in workers:
            await worker.start()
        while fake.runs[RUN].status in ("joining", "running"):
            for worker in workers:
                await worker.turn()
        for line in lines:
            await line.__aexit__()

    asyncio.run(work())
    assert fake.runs[RUN].status == "finished"
    assert fake.requests.count("GET /v1/receipts") == len(parties)


def test_of_two_live_copies_only_ones_bytes_leave(fake: FakeCurator, parties: list[Party]) -> None:
    """Both are up to date and handed the same task; both work out an answer."""
    join(fake, parties)
    party = parties[0].killed()
    other = copied(party, "copy")
    party = party.killed()

    async def both() -> None:
        async with party.line() as first, other.line() as second:
            workers = party.worker(first), other.worker(second)
            for worker in workers:
                await worker.start()
            task = await first.inbox(0)
            assert task is not None

            async def handed(*_: Any) -> Waiting:
                return task

            second.inbox = handed  # type: ignore[method-assign]
            await workers[0].turn()
            with pytest.raises(RolledBack, match=r"has signed 1 answers that .* another copy of this home answers"):
                await workers[1].turn()

    asyncio.run(both())
    assert len(sent_by(fake, party, "correlations")) == 1  # no byte of the other answer was sent
    assert other.ledger.spent("patients") == PRICE  # it had been worked out
    with pytest.raises(RolledBack):  # a supervisor starts it again
        other.killed().turns(0, start=True)
    assert acknowledge(other) == 0
    other = other.killed()
    assert other.ledger.spent("patients") == 2 * PRICE
    other.turns(1, start=True)


def test_a_refusal_is_never_taken_for_an_answer_that_was_lost(fake: FakeCurator, tmp_path: Path) -> None:
    """Its receipt has a role of its own, so that forgetting it forgets no charge."""
    party = Party(make_home(tmp_path / "home", 0, fake, per_run="1/2"), 0, fake)
    older = copied(party, "older")
    party = party.killed()
    fake.start(run_terms())
    party.turns()
    assert fake.runs[RUN].ended == "refused"
    older.turns(0, start=True)
    assert older.ledger.requests() == []
