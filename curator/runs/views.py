"""Runs as operators and parties see them: the interface's JSON, built from the store.

It does not change anything.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from sqlalchemy import Connection, RowMapping, select

from curator import interface
from curator.accounts.offered import schema_text
from curator.clock import moment, moment_or_none
from curator.errors import NotFound, RunEnded
from curator.store import run_records as records
from curator.store.run_records import EventRecord, RunRecord
from curator.store.store import Store
from curator.store.tables import parties
from protocol.errors import PlanError
from protocol.exact import exact
from protocol.messages.http import MOST_LISTED, OwnRun, SentReceipt
from protocol.plan.step import Step
from protocol.plan.stored import stored_plan
from protocol.plan.terms import Terms
from protocol.stages.methods import terms_of
from protocol.tables.schema import Schema


@dataclass(frozen=True)
class RunViews:
    store: Store

    def run(self, run: str) -> interface.Run:
        with self.store.reading() as db:
            record = _found(db, run)
            answers, begun = records.answers_of_run(db, run), records.events_after(db, run, kind="step")
            text = schema_text(db, record.schema_hash)
            names, steps = _names(record), _steps(record, text)
            answered: dict[str, list[str]] = {step.name: [] for step in steps}
            spent = dict.fromkeys(names, Fraction(0))
            for name, party, charge in answers:
                answered.setdefault(name, []).append(party)
                spent[party] += Fraction(charge)
            due = [step for step in steps if record.is_active and step.name == record.step]
            waiting = [names[p] for step in due for p in step.parties if names[p] not in answered[step.name]]
            seen = _last_seen(db, waiting)
        since = moment(record.step_started)
        return interface.Run(
            run=record.id,
            state=record.state,
            step=record.step or None,
            waiting_for=[
                interface.Waiting(party=p, since=since, last_seen=moment_or_none(seen.get(p))) for p in waiting
            ],
            deadline=moment_or_none(record.deadline),
            reason=record.reason,
            culprit=record.culprit,
            progress=_progress(steps, names, answered, begun),
            spent={name: str(amount) for name, amount in spent.items()},
            plan_hash=record.plan_hash,
            created=moment(record.created),
            updated=moment(record.updated),
        )

    def runs(self, limit: int, after: str = "") -> list[interface.RunEntry]:
        """List runs, oldest first. `after` is the last run of the previous page."""
        with self.store.reading() as db:
            return [_entry(record) for record in records.list_runs(db, limit, after)]

    def newest_runs(self, limit: int, before: str | None = None) -> list[interface.RunEntry]:
        """List runs, newest first. `before` is the last run of the previous page."""
        with self.store.reading() as db:
            return [_entry(record) for record in records.newest_runs(db, limit, before)]

    def events(self, run: str, after: int = 0) -> list[interface.Event]:
        """Return the events of a run after number `after`. Raise NotFound for an unknown run."""
        with self.store.reading() as db:
            _found(db, run)
            return [
                interface.Event(seq=event.seq, at=moment(event.at), kind=event.kind, data=event.data)
                for event in records.events_after(db, run, after)
            ]

    def record(self, run: str) -> RunRecord:
        with self.store.reading() as db:
            return _found(db, run)

    def terms(self, run: str) -> Terms:
        with self.store.reading() as db:
            record = _found(db, run)
            return _terms(record, schema_text(db, record.schema_hash))

    def of_party(self, party: str, after: str = "") -> list[OwnRun]:
        """List a party's runs, at most `MOST_LISTED`. `after` is the last run of the previous page."""
        with self.store.reading() as db:
            return [OwnRun(**row) for row in records.ends_with(db, party, after, MOST_LISTED)]

    def check_member(self, run: str, party: str | None) -> None:
        """Raise NotFound for an unknown run, or if a party is named that takes no part in it."""
        with self.store.reading() as db:
            if not records.takes_part(db, run, party):
                raise NotFound(f"there is no run {run!r}{f' of {party}' if party else ''}")

    def over(self, run: str) -> RunEnded:
        """Return the error that a run is over, with its end."""
        found = self.record(run)
        return RunEnded(f"run {run} is over: {found.state}{f', {found.reason}' if found.reason else ''}")

    def receipts_held(self, party: str) -> int:
        """Return the number of receipts of this party."""
        with self.store.reading() as db:
            return records.count_receipts(db, party)

    def receipts(self, party: str, after: str = "") -> list[SentReceipt]:
        """List the signed receipts of everything that a party has delivered or promised, at most `MOST_LISTED`.

        `after` is the place of the last receipt of the previous page.
        """
        run, _, step = after.partition("/")
        with self.store.reading() as db:
            found = records.receipts_of_party(db, party, (run, step), MOST_LISTED)
            plans = records.plan_hashes(db, {row["run"] for row in found})
        return [_receipt(row, plans[row["run"]]) for row in found]


def _receipt(row: RowMapping, plan: str) -> SentReceipt:
    said = {name: row[name] for name in ("run", "step", "digest")} | {"plan": plan}
    costs = {"charge": exact(row["charge"]), "delta": exact(row["delta"])}
    return SentReceipt(**said, **costs, signature=row["receipt"].hex())


def _entry(record: RunRecord) -> interface.RunEntry:
    plan = json.loads(record.plan)  # a list needs only the stored plan, not its terms
    return interface.RunEntry(
        run=record.id,
        method=plan["method"],
        epsilon=plan["epsilon"],
        delta=plan.get("delta", "0"),
        parties=len(plan["members"]),
        state=record.state,
        step=record.step or None,
        reason=record.reason,
        culprit=record.culprit,
        plan_hash=record.plan_hash,
        created=moment(record.created),
        updated=moment(record.updated),
    )


def _found(db: Connection, run: str) -> RunRecord:
    record = records.find_run(db, run)
    if record is None:
        raise NotFound(f"there is no run {run!r}")
    return record


def _terms(record: RunRecord, schema: str) -> Terms:
    """Return the terms of a stored plan. It was checked when the run began and is not checked again."""
    return _terms_of_texts(record.plan, schema)


@lru_cache(maxsize=32)  # whoever waits for a run asks several times a second
def _terms_of_texts(plan: str, schema: str) -> Terms:
    return terms_of(stored_plan(plan), Schema.parse(schema))


def _names(record: RunRecord) -> list[str]:
    return [member["name"] for member in json.loads(record.plan)["members"]]


def _steps(record: RunRecord, schema: str) -> Sequence[Step]:
    """Return the steps of a run, or none if another version of this program made its plan: such a run is held."""
    try:
        return _terms(record, schema).steps
    except PlanError:
        return ()


def _last_seen(db: Connection, names: Sequence[str]) -> Mapping[str, int | None]:
    found = select(parties.c.name, parties.c.last_seen).where(parties.c.name.in_(names))
    return {row.name: row.last_seen for row in db.execute(found)}


def _progress(
    steps: Sequence[Step], names: Sequence[str], answered: Mapping[str, list[str]], begun: Sequence[EventRecord]
) -> list[interface.StepProgress]:
    places = {event.data["step"]: place for place, event in reversed(list(enumerate(begun)))}
    times = [event.at for event in begun]
    found = []
    for step in steps:
        place = places.get(step.name, len(times))
        started, ended = (*times[place : place + 2], None, None)[:2]
        found.append(
            interface.StepProgress(
                step=step.name,
                stage=step.stage,
                answered=answered[step.name],
                of=[names[party] for party in step.parties],
                started=moment_or_none(started),
                ended=moment_or_none(ended),
            )
        )
    return found
