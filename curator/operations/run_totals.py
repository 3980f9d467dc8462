"""Totals over all runs, computed from the store and from the same records as manifests.

It does not know how the totals are used. Ended runs do not change, so each of them is counted once, and their totals
are stored: with thousands of runs, a process that has just begun answers as fast as any.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from threading import Lock
from typing import get_args

from sqlalchemy import Connection, func, select

from curator.errors import StoreUnavailable
from curator.results.publication import stage_costs
from curator.store import run_records as records
from curator.store.run_records import EventRecord, ReplyRecord, RunRecord
from curator.store.store import Store
from curator.store.tables import parties, runs
from protocol.messages.run_states import RunStateName

_SCHEMA_DIGITS = 12
TOTALS = "totals of ended runs"
AT_ONCE = 100  # runs counted in one transaction, so that nobody waits for the store
Labels = tuple[str, ...]


@dataclass
class Figures:
    """Totals by label values, and the time when each party was last seen."""

    states: dict[Labels, int] = field(default_factory=dict)
    seconds: dict[Labels, float] = field(default_factory=lambda: defaultdict(float))
    cells: Counter[Labels] = field(default_factory=Counter)
    ciphertexts: Counter[Labels] = field(default_factory=Counter)
    bytes: Counter[Labels] = field(default_factory=Counter)
    answers: Counter[Labels] = field(default_factory=Counter)
    charges: dict[Labels, Fraction] = field(default_factory=lambda: defaultdict(Fraction))
    deltas: dict[Labels, Fraction] = field(default_factory=lambda: defaultdict(Fraction))
    last_seen: dict[str, int] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> "Figures":
        found = cls()
        for name, entries in json.loads(text).items():
            getattr(found, name).update({tuple(labels): _SUMS[name](value) for *labels, value in entries})
        return found

    def text(self) -> str:
        """The sums over runs, without what is read anew each time."""
        return json.dumps({name: [[*of, str(value)] for of, value in getattr(self, name).items()] for name in _SUMS})


_SUMS: Mapping[str, Callable[[str], float | Fraction]] = {
    "seconds": float,
    "cells": int,
    "ciphertexts": int,
    "bytes": int,
    "answers": int,
    "charges": Fraction,
    "deltas": Fraction,
}


class RunFigures:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = Lock()

    def read(self, now: int) -> Figures:
        with self._lock:
            with suppress(StoreUnavailable):  # where nothing can be stored, the latest ends are read again next time
                self._count_ended()
            with self._store.reading() as db:
                return _figures(db, now)

    def _count_ended(self) -> None:
        """Add the runs that have ended since the last time to the stored totals, some in each transaction."""
        with self._store.reading() as db:
            ended = [record for record in records.uncounted_runs(db) if not record.is_active]
        for start in range(0, len(ended), AT_ONCE):
            with self._store.writing() as db:
                totals = _totals(db)
                for record in ended[start : start + AT_ONCE]:
                    count_run(totals, db, record, record.updated)
                    records.change_run(db, record.id, counted=1)
                records.remember(db, TOTALS, "")
                records.correct(db, TOTALS, totals.text())


def _figures(db: Connection, now: int) -> Figures:
    found = _totals(db)
    for record in records.uncounted_runs(db):
        count_run(found, db, record, now if record.is_active else record.updated)
    by_state = select(runs.c.state, func.count()).group_by(runs.c.state)
    counted: dict[str, int] = {state: int(count) for state, count in db.execute(by_state)}
    found.states = {(state,): counted.get(state, 0) for state in get_args(RunStateName)}
    found.last_seen = {row.name: row.last_seen for row in db.execute(_SEEN)}
    return found


_SEEN = select(parties.c.name, parties.c.last_seen).where(parties.c.last_seen.is_not(None), parties.c.revoked.is_(None))


def _totals(db: Connection) -> Figures:
    """The stored totals of the runs that were counted."""
    return Figures.parse(records.recall(db, TOTALS) or "{}")


def count_run(figures: Figures, db: Connection, record: RunRecord, end: int) -> None:
    replies, events = records.replies_of_run(db, record.id), records.events_after(db, record.id)
    method = str(json.loads(record.plan)["method"])
    stages = {event.data["step"]: str(event.data["stage"]) for event in events if event.kind == "step"}
    received = _received(replies, stages)
    for stage, seconds in _seconds(events, end).items():
        figures.seconds[method, stage] += seconds
    for cost in stage_costs(replies, events):
        place = (method, cost.name)
        figures.cells[place] += cost.cells
        figures.ciphertexts[place] += cost.ciphertexts
        figures.bytes["in", *place] += received[cost.name]
        figures.bytes["out", *place] += cost.bytes - received[cost.name]
    for reply in replies:
        figures.answers[reply.party, stages[reply.step]] += 1
        account = reply.party, record.schema_hash[:_SCHEMA_DIGITS]
        figures.charges[account] += Fraction(reply.charge)
        figures.deltas[account] += Fraction(reply.delta)


def _seconds(events: Sequence[EventRecord], end: int) -> Mapping[str, float]:
    """Return for every stage the time from the beginning of each of its steps to the next one's."""
    begun = [event for event in events if event.kind == "step"]
    found: dict[str, float] = defaultdict(float)
    for event, ended in zip(begun, [*(event.at for event in begun[1:]), end], strict=True):
        if event.data["step"]:
            found[event.data["stage"]] += (ended - event.at) / 1000
    return found


def _received(replies: Sequence[ReplyRecord], stages: Mapping[str, str]) -> Counter[str]:
    sizes: Counter[str] = Counter()
    for reply in replies:
        sizes[stages[reply.step]] += reply.size
    return sizes
