"""What failures of the curator, full disks and restarts leave of a run."""

import json
import logging

import pytest
from sqlalchemy import update

from crypto.randomness import Stream
from curator.errors import Busy, SettingsError, StoreUnavailable
from curator.home.keys import CuratorKeys
from curator.results import publication
from curator.runs import live_run, orchestrator, recovery
from curator.runs.orchestrator import Orchestrator
from curator.store import run_records as records
from curator.store.tables import runs
from protocol.errors import CURATOR, PlanError
from protocol.messages.tasks import decode
from tests.support.api import with_api
from tests.support.curator import START, Desk, OneKey
from tests.support.curator_runs import DAY, PLAIN, kinds, outgoing, signed, state, without_room

# The curator's own failures


@pytest.mark.parametrize("what", ["take", "move_on"])
def test_a_failure_inside_is_the_curators_and_shows_nothing(desk, monkeypatch, caplog, what):
    run = desk.run(**PLAIN)

    def broken(*_arguments):
        raise ZeroDivisionError("patient Quixote")

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
    assert "Quixote" not in record.getMessage() + reason
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


# Full disks


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
            assert other.orchestrator.inbox(party.name) == found, "the same task in the same bytes"
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


def test_a_run_that_cannot_be_rebuilt_is_held_and_the_others_go_on(desk, caplog):
    held, sound = desk.run("a", epsilon="50"), desk.run("b", epsilon="50")
    before = secret_of(desk, held)
    set_secret(desk, held, b"x" * 100)
    with caplog.at_level(logging.ERROR):
        desk.restart()
    assert "SettingsError" in caplog.text
    assert "go back to the version that began it" in (desk.orchestrator.view(held).reason or "")
    with pytest.raises(Busy, match="nothing of it has changed"):
        desk.orchestrator.awaits(held, "joining", "party-1", "0" * 64, 1)
    desk.finish(sound)
    set_secret(desk, held, before)  # the version that began it is back
    desk.restart()
    desk.finish(held)


def test_a_run_that_is_held_can_be_cancelled_or_ends_with_a_party(desk):
    cancelled, revoked = desk.run("a", epsilon="50"), desk.run("b", epsilon="50")
    for run in (cancelled, revoked):
        set_secret(desk, run, b"x" * 100)
    desk.restart()
    desk.orchestrator.cancel(cancelled, "enough")
    assert state(desk, cancelled) == ("cancelled", "operator")
    desk.orchestrator.revoke("party-1")
    assert state(desk, revoked) == ("failed", "party-1")
    assert desk.orchestrator.held.reasons == {}


def test_runs_whose_plans_another_version_made_are_shown_and_the_results_of_those_that_finished_stay(desk):
    """The curator failed at each look at such a run, also at one that had finished long before."""
    over = desk.run("a", **PLAIN)
    desk.finish(over)
    under_way = desk.run("b", **PLAIN)
    with desk.store.writing() as db:
        for run in (over, under_way):
            plan = json.loads(records.find_run(db, run).plan)
            del plan["frontier_theta"]
            db.execute(update(runs).where(runs.c.id == run).values(plan=json.dumps(plan)))
    desk.restart()
    assert "plan was made by another version" in (desk.orchestrator.view(under_way).reason or "")
    shown = desk.orchestrator.view(over)
    assert (shown.state, shown.progress, shown.waiting_for) == ("finished", [], [])
    assert set(shown.spent) == {"party-1", "party-2", "party-3"}
    with pytest.raises(PlanError, match="made by another version of the program"):
        desk.views.terms(over)

    async def fetch(api):
        names = ("table.csv", "manifest.json", "report.html", "table.csv?rows=5")
        return [await api.operator("GET", f"/v1/runs/{over}/{name}") for name in names]

    *published, new = with_api(desk, fetch)
    assert [answer.status_code for answer in published] == [200, 200, 200]
    assert "made by another version of the program" in new.json()["detail"]


def secret_of(desk, run):
    with desk.store.reading() as db:
        return records.find_recovery(db, run).secret


def set_secret(desk, run, secret):
    with desk.store.writing() as db:
        db.execute(update(runs).where(runs.c.id == run).values(secret=secret))


def test_a_store_that_is_away_fails_no_run(desk, monkeypatch):
    run = desk.run(**PLAIN)

    def away(*_arguments):
        raise StoreUnavailable("away")

    monkeypatch.setattr(recovery, "rebuilt", away)
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
    with pytest.raises(SettingsError, match=f"{which} key is not the key of this database"):
        Orchestrator(desk.store, mixed, desk.settings).recover()
    assert state(desk, run) == ("joining", None)
