"""Totals over all runs, computed from the store and from the same records as manifests.

It does not know how the totals are used. Ended runs do not change, so each of them is read only once.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from threading import Lock
from typing import get_args

from sqlalchemy import Connection, func, select

from curator.results.publication import stage_costs
from curator.store import run_records as records
from curator.store.run_records import EventRecord, ReplyRecord, RunRecord
from curator.store.store import Store
from curator.store.tables import parties, runs
from protocol.messages.run_states import RunStateName

_SCHEMA_DIGITS = 12
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

    def copy(self) -> "Figures":
        return Figures(**{name: value.copy() for name, value in vars(self).items()})


class RunFigures:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = Lock()
        self._ended = Figures()
        self._counted: set[str] = set()

    def read(self, now: int) -> Figures:
        with self._lock, self._store.reading() as db:
            new = _runs_besides(db, self._counted)
            for record in (record for record in new if not record.is_active):
                _add(self._ended, db, record, record.updated)
                self._counted.add(record.id)
            found = self._ended.copy()
            for record in (record for record in new if record.is_active):
                _add(found, db, record, now)
            by_state = select(runs.c.state, func.count()).group_by(runs.c.state)
            counted: dict[str, int] = {state: int(count) for state, count in db.execute(by_state)}
            found.states = {(state,): counted.get(state, 0) for state in get_args(RunStateName)}
            found.last_seen = {row.name: row.last_seen for row in db.execute(_SEEN)}
        return found


_SEEN = select(parties.c.name, parties.c.last_seen).where(parties.c.last_seen.is_not(None), parties.c.revoked.is_(None))


def _runs_besides(db: Connection, known: set[str]) -> Sequence[RunRecord]:
    new = [run for run in db.execute(select(runs.c.id).order_by(runs.c.id)).scalars() if run not in known]
    return [found for run in new if (found := records.find_run(db, run)) is not None]


def _add(figures: Figures, db: Connection, record: RunRecord, end: int) -> None:
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
