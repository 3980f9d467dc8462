"""Verdicts on a simulated run: what must hold when all is over, and which ends a schedule allows.

It does not know how the run went; it reads what is on the disks, and what the witness has noted.
"""

import json
import traceback
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from curator.runs.views import RunViews
from curator.store.run_records import ReplyRecord
from curator.store.store import Store
from party.home.layout import Home
from protocol.messages.run_states import ENDS
from tests.faults.books import check_publication, check_run
from tests.simulation.homes import CANARIES
from tests.simulation.nodes import JOIN
from tests.simulation.schedules import Cancel, Jump, Restored, Rules
from tests.simulation.witness import Answer, Witness
from tests.simulation.world import World
from tests.support.small_runs import SMALL_BITS

_NEAR = 30  # seconds: a clock that jumps so far may miss a near deadline


def failures(world: World) -> list[str]:
    """Everything that must not have happened in this world, in words; empty if all is well."""
    found = list(world.witness.failures)
    store = Store.open(f"sqlite:///{world.curator.folder / 'curator.db'}")
    try:
        if (runs := {one.run for one in RunViews(store).runs(100)}) != set(world.runs):
            found.append(f"{len(runs)} runs were begun, {len(world.runs)} were ordered")
        for run in world.runs:
            try:
                _check(world, store, run)
            except AssertionError as error:
                found.append(f"{_place(error)}: {error}")
    finally:
        store.close()
    return found


def _check(world: World, store: Store, run: str) -> None:
    ended = RunViews(store).run(run)
    world.ends.append(ended.state)
    assert ended.state in ENDS, f"lost or stuck: the run is {ended.state}"
    assert _is_allowed(world, ended.state, ended.culprit), f"{ended.state} by {ended.culprit}: {ended.reason}"
    told = f"{ended.reason}" + "".join(event.model_dump_json() for event in RunViews(store).events(run))
    assert not [canary for canary in CANARIES if canary in told], f"a value in {told}"
    homes = {party.name: party.home for party in world.parties}
    replies = check_run(store, homes, run, world.witness.sent, forgotten_end=_forgotten_end(world))
    if ended.state == "finished":
        check_publication(world.curator.folder, run, SMALL_BITS)
        _check_tables(world.curator.folder / "runs" / run, world.witness, replies)
    for home in homes.values():
        _check_log(home)


def _forgotten_end(world: World) -> str | None:
    """A cancellation of which a curator that was set back knows nothing: its run goes on with those who can."""
    kinds = {type(fault) for fault in world.happened}
    return "cancelled" if {Cancel, Restored} <= kinds else None


def _is_allowed(world: World, state: str, culprit: str | None) -> bool:
    """Whether this schedule may have ended a run so: any may finish, and only some end otherwise."""
    happened, is_patient = world.happened, world.schedule.is_patient
    rules = [fault for fault in happened if isinstance(fault, Rules)]
    if state == "finished":
        return True
    if state == "cancelled":
        return any(isinstance(fault, Cancel) for fault in happened)
    if state == "refused":
        return culprit in [fault.party for fault in rules]
    if state == "timed_out":
        far = [fault for fault in happened if isinstance(fault, Jump) and abs(fault.jump) > JOIN[0] / 5]
        asked = [fault for fault in rules if fault.rule in ("ask", "stranger")]
        return bool(happened) if not is_patient else bool(far or asked)
    return False


def _check_tables(folder: Path, witness: Witness, replies: Sequence[ReplyRecord]) -> None:
    """What was published is the plain sum of the rows and the noise that was drawn for it."""
    tables = json.loads((folder / "tables.json").read_text())["tables"]
    answers = [witness.computed[reply.digest] for reply in replies if reply.step != "joining"]
    for party in {answer.party for answer in answers}:
        joints = [answer.joint for answer in answers if answer.party == party]
        assert all(np.array_equal(joint, joints[0]) for joint in joints), "rows changed in mid-run"
    for step in {table["step"] for table in tables}:
        published = [table for table in tables if table["step"] == step]
        of_step = [answer for answer in answers if answer.step == step]
        if step == "models":
            _check_models(published, of_step)
        else:
            _check_sum(published, of_step, witness)


def _check_sum(published: Sequence[dict[str, object]], answers: Sequence[Answer], witness: Witness) -> None:
    counts = np.concatenate([np.array(table["counts"]) for table in published])
    rest = counts - sum(answer.counts() for answer in answers)
    noise = {answer.party: answer.noise for answer in answers}
    keepers = witness.keepers.get(answers[0].plan, set()) if len(answers) > 1 else {tuple(noise)}
    assert any(np.array_equal(rest, sum(noise[party] for party in who)) for who in keepers), "a wrong total"


def _check_models(published: Sequence[dict[str, object]], answers: Sequence[Answer]) -> None:
    rest = list(published)
    for answer in sorted(answers, key=lambda one: one.party):
        own, cells = [], 0
        while cells < answer.noise.size:
            own.append(rest.pop(0))
            cells += len(own[-1]["counts"])
        counts = np.concatenate([np.array(table["counts"]) for table in own])
        plain = answer.counts([tuple(table["variables"]) for table in own])
        assert np.array_equal(counts, plain + answer.noise), "a wrong table of one party"


def _check_log(home: Home) -> None:
    text = home.audit.read_text()
    assert not [canary for canary in CANARIES if canary in text], "a value in the audit log"


def _place(error: AssertionError) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(last.filename).name}:{last.lineno}: {last.line}"
