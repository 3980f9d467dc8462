"""Runs at the curator: how they begin and end, whose doing it is, and what is told of them."""

import hashlib
import json
import threading
from fractions import Fraction

import pytest
from sqlalchemy import select

from curator.errors import (
    Conflict,
    NotAsked,
    NotFound,
    RunEnded,
)
from curator.results.publication import PUBLISHED
from curator.runs import orchestrator
from curator.store.tables import replies
from protocol.errors import PlanError
from protocol.run.manifest import verify_manifest
from tests.support.curator import START
from tests.support.curator_runs import DAY, PLAIN, column, kinds, outgoing, state
from tests.support.small_runs import BITS, MIXED, SMALL_BITS

# Plans and new runs


def test_a_plan_spends_and_keeps_nothing(desk):
    terms = desk.orchestrator.planner.plan(desk.request(parties=["party-3", "party-1"], epsilon="4/5")).terms
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
        {"epsilon": "50", "method": "privbayes"},
        {"epsilon": "50", "method": "privabn"},
        {"epsilon": "50", "method": "jtree"},
        {"epsilon": "50", "method": "dp-ccbn", "degree": 1},
        {"epsilon": "50", "method": "independent"},
    ],
)
def test_a_run_finishes_with_a_manifest_that_verifies(desk, wishes):
    run = desk.run(**wishes)
    desk.finish(run)
    folder = desk.orchestrator.folder(run)
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
    assert set(digests) == {*PUBLISHED, "manifest.json"}
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


def test_what_is_published_does_not_tell_how_long_a_stage_took(desk):
    run = desk.run(**PLAIN)
    desk.finish(run)
    folder = desk.orchestrator.folder(run)
    manifest, report = (json.loads((folder / name).read_text()) for name in ("manifest.json", "report.json"))
    for stage in (*manifest["manifest"]["phases"], *report["stages"]):
        assert set(stage) == {"name", "cells", "ciphertexts", "bytes"}
    page = (folder / "report.html").read_text()
    assert "Work of each stage" in page
    assert ">Time<" not in page


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
    with pytest.raises(Conflict, match=f"run {run} still uses the present keys of party-1"):
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
    told = {"name": "party-1", "rows": 30, "rows_per_person": None, "spent": "50", "delta": "0", "phases": phases}
    assert report["parties"][0] == told
    assert BITS.names == tuple(sorted({edge["attribute"] for edge in report["network"]}))
