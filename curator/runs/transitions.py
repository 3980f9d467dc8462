"""Writes to the store when a run begins, advances, pauses, resumes and ends, each inside the caller's transaction.

It does not know the reasons of these changes.
"""

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection

from curator.runs.live_run import Ending, LiveRun, Pause, Standing
from curator.store import run_records as records
from curator.store.run_records import ReplyRecord
from protocol.run.kept_knowledge import knowledge_to_bytes


def write_beginning(db: Connection, live: LiveRun, row: Mapping[str, Any]) -> None:
    records.add_run(db, row, live.names)
    records.add_event(db, live.run, live.since, "created", plan=row["plan_hash"], parties=list(live.names))
    records.add_event(db, live.run, live.since, "step", **live.at.amounts)


def write_answer(db: Connection, answer: ReplyRecord, body: bytes) -> None:
    """Store one answer, which keeps its promise."""
    records.add_reply(db, answer, body)
    records.drop_claim(db, answer.run, answer.step, answer.party)
    records.add_event(db, answer.run, answer.at, "answered", step=answer.step, party=answer.party, bytes=answer.size)


def write_end(db: Connection, run: str, ending: Ending, now: int, outputs: Mapping[str, str] | None = None) -> None:
    """Store the end of a run, and destroy the secrets and answers that only an active run needs."""
    records.drop_bodies(db, run)
    published = None if outputs is None else json.dumps(outputs)
    records.change_run(
        db, run, **vars(ending), secret=None, knowledge=None, deadline=None, updated=now, outputs=published
    )
    records.add_event(db, run, now, "ended", **vars(ending))


def write_pause(db: Connection, run: str, pause: Pause) -> None:
    records.add_event(db, run, pause.since, "paused", reason=pause.reason)


def write_resumption(db: Connection, live: LiveRun, now: int) -> None:
    """Store the end of a pause, and its beginning if that could not be stored before."""
    assert live.pause is not None
    if not live.pause.noted:
        write_pause(db, live.run, live.pause)
    records.add_event(db, live.run, now, "resumed", seconds=(now - live.pause.since) / 1000)


def write_step(db: Connection, live: LiveRun, following: Standing, now: int) -> None:
    """Store the beginning of the next step, after all answers to the last one, and everything that is known by then."""
    step = following.state.step
    name, deadline = ("", None) if step is None else (step.name, now + live.step_ms)
    known = knowledge_to_bytes(following.state.knowledge)
    times = {"step_started": now, "deadline": deadline, "updated": now}
    records.change_run(db, live.run, state="running", step=name, knowledge=known, **times)
    records.add_event(db, live.run, now, "step", **following.amounts)
