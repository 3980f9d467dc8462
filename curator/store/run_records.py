"""Stored records of runs: rows, answers and events, each function inside the caller's transaction.

It does not know when a run advances (`curator.runs.orchestrator`).
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sqlalchemy import (
    BindParameter,
    Connection,
    RowMapping,
    Select,
    Table,
    bindparam,
    delete,
    func,
    insert,
    select,
    union_all,
    update,
)

from curator.store.tables import claims, events, members, meta, replies, runs
from protocol.messages.run_states import ACTIVE

SIGNING_KEY = "signing key"  # name under which `remember` keeps the key that parties know


@dataclass(frozen=True)
class RunRecord:
    id: str
    plan: str
    plan_hash: str
    schema_hash: str
    idempotency_key: str | None
    request_digest: str
    state: str
    step: str
    culprit: str | None
    reason: str | None
    created: int
    updated: int
    step_started: int
    deadline: int | None
    step_seconds: int
    outputs: dict[str, str] | None

    @property
    def is_active(self) -> bool:
        return self.state in ACTIVE


@dataclass(frozen=True)
class ReplyRecord:
    """An answer as it was delivered, without its bytes."""

    run: str
    step: str
    party: str
    digest: str
    size: int
    charge: str  # epsilon
    receipt: bytes
    at: int
    delta: str = "0"


@dataclass(frozen=True)
class ClaimRecord:
    """An answer that a party has promised."""

    run: str
    step: str
    party: str
    digest: str
    charge: str  # epsilon
    receipt: bytes
    at: int
    delta: str = "0"


@dataclass(frozen=True)
class EventRecord:
    run: str
    seq: int
    at: int
    kind: str
    data: dict[str, Any]


@dataclass(frozen=True)
class Recovery:
    """Everything besides the answers from which a run can be rebuilt."""

    first_variable: int
    synthesis_seed: bytes
    public_key: bytes | None
    modulus_proof: bytes | None
    indicator: bytes | None
    secret: bytes | None
    knowledge: bytes | None


Place = tuple[str, str]  # of an answer in a run: its step and its party

_RUN_COLUMNS = tuple(runs.c[name] for name in RunRecord.__dataclass_fields__)
_REPLY_COLUMNS = tuple(replies.c[name] for name in ReplyRecord.__dataclass_fields__)
_RECOVERY_COLUMNS = tuple(runs.c[name] for name in Recovery.__dataclass_fields__)

# Built once: building a statement takes longer than executing it, and every answer needs all of these.
_OF: BindParameter[str] = bindparam("of")  # a run
_TO: BindParameter[str] = bindparam("to")  # a step
_BY: BindParameter[str] = bindparam("by")  # a party
_REPLY = select(*_REPLY_COLUMNS).where((replies.c.run == _OF) & (replies.c.step == _TO) & (replies.c.party == _BY))
_CLAIM = select(claims).where((claims.c.run == _OF) & (claims.c.step == _TO) & (claims.c.party == _BY))
_DROP_CLAIM = delete(claims).where((claims.c.run == _OF) & (claims.c.step == _TO) & (claims.c.party == _BY))
_ADD_CLAIM = insert(claims)
_NUMBER = select(func.count() + 1).select_from(replies).where(replies.c.run == _OF).scalar_subquery()
_ADD_REPLY = insert(replies).values(number=_NUMBER)
_SEQ = select(func.coalesce(func.max(events.c.seq), 0) + 1).where(events.c.run == _OF).scalar_subquery()
_ADD_EVENT = insert(events).values(seq=_SEQ)
_MEMBER = select(members.c.run).where((members.c.run == _OF) & (members.c.party == _BY))
_RECEIPTS = [
    select(func.count()).select_from(table).where(table.c.party == _BY).scalar_subquery() for table in (replies, claims)
]
_COUNT_RECEIPTS = select(_RECEIPTS[0] + _RECEIPTS[1])


def add_run(db: Connection, values: Mapping[str, Any], parties: Sequence[str]) -> None:
    db.execute(insert(runs).values(**values))
    db.execute(insert(members), [{"party": party, "run": values["id"]} for party in parties])


def find_run(db: Connection, run: str) -> RunRecord | None:
    return next(_run_records(db, select(*_RUN_COLUMNS).where(runs.c.id == run)), None)


def find_run_by_key(db: Connection, key: str) -> RunRecord | None:
    return next(_run_records(db, select(*_RUN_COLUMNS).where(runs.c.idempotency_key == key)), None)


def list_runs(db: Connection, limit: int, after: str = "") -> list[RunRecord]:
    """List runs, oldest first. `after` is the last run of the previous page."""
    return list(_run_records(db, select(*_RUN_COLUMNS).where(runs.c.id > after).order_by(runs.c.id).limit(limit)))


def newest_runs(db: Connection, limit: int, before: str | None = None) -> list[RunRecord]:
    """List runs, newest first. `before` is the last run of the previous page."""
    query = select(*_RUN_COLUMNS).order_by(runs.c.id.desc()).limit(limit)
    return list(_run_records(db, query if before is None else query.where(runs.c.id < before)))


def active_runs(db: Connection) -> list[RunRecord]:
    return list(_run_records(db, select(*_RUN_COLUMNS).where(runs.c.state.in_(ACTIVE)).order_by(runs.c.id)))


def finished_runs(db: Connection, ended_before: int) -> list[RunRecord]:
    """List the runs that finished before this time, oldest first."""
    wanted = (runs.c.state == "finished") & (runs.c.updated < ended_before)
    return list(_run_records(db, select(*_RUN_COLUMNS).where(wanted).order_by(runs.c.id)))


def uncounted_runs(db: Connection) -> list[RunRecord]:
    """List the runs that are not in the stored totals, oldest first: those that are active, and the latest to end."""
    return list(_run_records(db, select(*_RUN_COLUMNS).where(runs.c.counted == 0).order_by(runs.c.id)))


def active_runs_with(db: Connection, party: str) -> list[str]:
    """List the names of the active runs in which a party takes part, oldest first."""
    joined = select(runs.c.id).join(members, members.c.run == runs.c.id).where(members.c.party == party)
    return list(db.execute(joined.where(runs.c.state.in_(ACTIVE)).order_by(runs.c.id)).scalars())


def ends_with(db: Connection, party: str, after: str, limit: int) -> Sequence[RowMapping]:
    """List a party's runs and how they stand, in the order of their names: so many after the given one."""
    wanted = runs.c.id.label("run"), runs.c.plan_hash.label("plan"), runs.c.state, runs.c.reason, runs.c.culprit
    joined = select(*wanted).join(members, members.c.run == runs.c.id)
    found = joined.where((members.c.party == party) & (members.c.run > after)).order_by(members.c.run).limit(limit)
    return db.execute(found).mappings().all()


def takes_part(db: Connection, run: str, party: str | None) -> bool:
    """Whether there is such a run, and if a party is named, whether it takes part."""
    if party is not None:
        return db.execute(_MEMBER, {"of": run, "by": party}).first() is not None
    return db.execute(select(runs.c.id).where(runs.c.id == run)).first() is not None


def members_of(db: Connection, run: str) -> set[str]:
    return set(db.execute(select(members.c.party).where(members.c.run == run)).scalars())


def rosters(db: Connection, **wanted: str) -> list[set[str]]:
    """Return the parties of each run that has these values."""
    found: dict[str, set[str]] = {}
    query = select(members.c.run, members.c.party).join(runs, runs.c.id == members.c.run)
    for run, party in db.execute(query.where(*(runs.c[name] == value for name, value in wanted.items()))):
        found.setdefault(run, set()).add(party)
    return list(found.values())


def find_recovery(db: Connection, run: str) -> Recovery:
    return Recovery(**db.execute(select(*_RECOVERY_COLUMNS).where(runs.c.id == run)).mappings().one())


def change_run(db: Connection, run: str, **values: Any) -> None:
    db.execute(update(runs).where(runs.c.id == run).values(**values))


def add_reply(db: Connection, record: ReplyRecord, body: bytes) -> None:
    db.execute(_ADD_REPLY, {**vars(record), "body": body, "of": record.run})


def find_reply(db: Connection, run: str, step: str, party: str) -> ReplyRecord | None:
    row = db.execute(_REPLY, {"of": run, "to": step, "by": party}).mappings().one_or_none()
    return None if row is None else ReplyRecord(**row)


def replies_of_run(db: Connection, run: str) -> list[ReplyRecord]:
    found = select(*_REPLY_COLUMNS).where(replies.c.run == run).order_by(replies.c.number)
    return [ReplyRecord(**row) for row in db.execute(found).mappings()]


def answers_of_run(db: Connection, run: str) -> list[tuple[str, str, str]]:
    """List step, party and epsilon of every answer, in the order of arrival."""
    found = select(replies.c.step, replies.c.party, replies.c.charge).where(replies.c.run == run)
    return [tuple(row) for row in db.execute(found.order_by(replies.c.number))]


def spent(replies: Sequence[ReplyRecord], party: str) -> Fraction:
    """Return the epsilon that a party has spent by its answers."""
    return sum((Fraction(reply.charge) for reply in replies if reply.party == party), Fraction(0))


def spent_delta(replies: Sequence[ReplyRecord], party: str) -> Fraction:
    return sum((Fraction(reply.delta) for reply in replies if reply.party == party), Fraction(0))


def receipts_of_party(db: Connection, party: str, after: tuple[str, str], limit: int) -> Sequence[RowMapping]:
    """List a party's receipts, for answers given or promised, by run and step: so many after the given run and step."""
    pages = [select(_receipts_in(table, party, after, limit).subquery()) for table in (replies, claims)]
    return db.execute(union_all(*pages).order_by("run", "step").limit(limit)).mappings().all()


def plan_hashes(db: Connection, names: Collection[str]) -> dict[str, str]:
    """Return the plan's hash of each of these runs."""
    found = db.execute(select(runs.c.id, runs.c.plan_hash).where(runs.c.id.in_(names)))
    return {row.id: row.plan_hash for row in found}


def _receipts_in(table: Table, party: str, after: tuple[str, str], limit: int) -> Select[Any]:
    joined = select(*(table.c[name] for name in ("run", "step", "charge", "delta", "digest", "receipt")))
    # The order of the memberships and a lower bound of their runs: so the database finds the page by its indexes.
    joined = joined.join(members, (members.c.run == table.c.run) & (members.c.party == table.c.party))
    mine = (members.c.party == party) & (members.c.run >= after[0])
    follows = (table.c.run > after[0]) | (table.c.step > after[1])
    return joined.where(mine & follows).order_by(members.c.run, table.c.step).limit(limit)


def add_claim(db: Connection, record: ClaimRecord) -> None:
    db.execute(_ADD_CLAIM, vars(record))


def drop_claim(db: Connection, run: str, step: str, party: str) -> None:
    db.execute(_DROP_CLAIM, {"of": run, "to": step, "by": party})


def find_claim(db: Connection, run: str, step: str, party: str) -> ClaimRecord | None:
    row = db.execute(_CLAIM, {"of": run, "to": step, "by": party}).mappings().one_or_none()
    return None if row is None else ClaimRecord(**row)


def answers_known(db: Connection, run: str, steps: Collection[str]) -> dict[Place, ReplyRecord | ClaimRecord]:
    """Return the answers to these steps that were accepted or promised."""
    promised = select(claims).where((claims.c.run == run) & claims.c.step.in_(steps))
    found: dict[Place, ReplyRecord | ClaimRecord] = {
        (row["step"], row["party"]): ClaimRecord(**row) for row in db.execute(promised).mappings()
    }
    taken = select(*_REPLY_COLUMNS).where((replies.c.run == run) & replies.c.step.in_(steps))
    return found | {(row["step"], row["party"]): ReplyRecord(**row) for row in db.execute(taken).mappings()}


def count_receipts(db: Connection, party: str) -> int:
    """Return the number of a party's receipts, for answers that it has given or promised."""
    return int(db.execute(_COUNT_RECEIPTS, {"by": party}).scalar_one())


def bodies_of_run(db: Connection, run: str, step: str | None = None) -> Iterator[tuple[str, bytes]]:
    """Yield party and bytes of every answer, or of every answer to one step, in the order of arrival."""
    wanted = (replies.c.run == run) & (True if step is None else replies.c.step == step)
    found = select(replies.c.party, replies.c.body).where(wanted).order_by(replies.c.number)
    for row in db.execute(found):
        yield row.party, row.body


def drop_bodies(db: Connection, run: str) -> None:
    db.execute(update(replies).where(replies.c.run == run).values(body=None))


def add_event(db: Connection, run: str, at: int, kind: str, **data: Any) -> None:
    db.execute(_ADD_EVENT, {"of": run, "run": run, "at": at, "kind": kind, "data": json.dumps(data)})


def events_after(db: Connection, run: str, after: int = 0, kind: str | None = None) -> list[EventRecord]:
    """List a run's events after this number, of one kind or of all."""
    wanted = (events.c.run == run) & (events.c.seq > after) & (True if kind is None else events.c.kind == kind)
    found = select(events).where(wanted).order_by(events.c.seq)
    return [EventRecord(**{**row, "data": json.loads(row["data"])}) for row in db.execute(found).mappings()]


def recall(db: Connection, name: str) -> str | None:
    return db.execute(select(meta.c.value).where(meta.c.name == name)).scalar_one_or_none()


def remember(db: Connection, name: str, value: str) -> str:
    """Return the value of this name, after storing the given value if there was none."""
    found = recall(db, name)
    if found is not None:
        return found
    db.execute(insert(meta).values(name=name, value=value))
    return value


def correct(db: Connection, name: str, value: str) -> None:
    """Replace the value of this name, if there is one."""
    db.execute(update(meta).where(meta.c.name == name).values(value=value))


def _run_records(db: Connection, query: Any) -> Iterator[RunRecord]:
    for row in db.execute(query).mappings():
        outputs = None if row["outputs"] is None else json.loads(row["outputs"])
        yield RunRecord(**{**row, "outputs": outputs})
