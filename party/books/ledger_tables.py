"""The ledger's tables: their SQL, one migration per version, and the meaning of their rows.

It does not know which changes are allowed (`party.books.ledger`).
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from sqlite3 import Connection, Row
from typing import Literal

from party.errors import LedgerError

Amounts = tuple[Fraction, Fraction]  # of epsilon and delta
State = Literal["asked", "accepted", "refused", "active", "ended"]

RECOVERED = "recovered"  # the mechanism of an answer of which only the receipt is left

APPLICATION = 0x5355424E  # "SUBN"
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE requests (
            run TEXT PRIMARY KEY,
            plan_hash TEXT NOT NULL UNIQUE,  -- a plan is joined once, ever
            dataset TEXT,  -- NULL: none of this party's
            plan TEXT NOT NULL,
            schema_text TEXT NOT NULL,
            price TEXT NOT NULL,
            verdict TEXT NOT NULL,
            reasons TEXT NOT NULL,
            state TEXT NOT NULL CHECK (state IN ('asked', 'accepted', 'refused', 'active', 'ended')),
            outcome TEXT NOT NULL DEFAULT '',
            reason TEXT NOT NULL DEFAULT '',
            kept BLOB,
            at TEXT NOT NULL
        ) STRICT""",
        """CREATE TABLE answers (
            run TEXT NOT NULL REFERENCES requests (run),
            step TEXT NOT NULL,
            mechanism TEXT NOT NULL,
            charge TEXT NOT NULL,
            request_digest TEXT NOT NULL,
            reply_digest TEXT NOT NULL,
            reply BLOB NOT NULL,
            at TEXT NOT NULL,
            PRIMARY KEY (run, step)
        ) STRICT""",
        """CREATE TABLE recovered (
            run TEXT NOT NULL,
            plan_hash TEXT NOT NULL,
            step TEXT NOT NULL,
            dataset TEXT NOT NULL,
            charge TEXT NOT NULL,
            reply_digest TEXT NOT NULL,
            at TEXT NOT NULL,
            PRIMARY KEY (plan_hash, step, reply_digest)
        ) STRICT""",
        *(
            f"""CREATE TRIGGER {table}_refuse_{action} BEFORE {action} ON {table}
                BEGIN SELECT RAISE(ABORT, 'what was spent stays as it is'); END"""
            for table in ("answers", "recovered")
            for action in ("UPDATE", "DELETE")
        ),
        "CREATE TRIGGER requests_refuse_DELETE BEFORE DELETE ON requests "
        "BEGIN SELECT RAISE(ABORT, 'what was asked stays known'); END",
    ),
    # zcdp: beside every epsilon a delta, which is 0 for all that was pure
    tuple(
        f"ALTER TABLE {table} ADD COLUMN delta TEXT NOT NULL DEFAULT '0'"
        for table in ("requests", "answers", "recovered")
    ),
)


@dataclass(frozen=True)
class Request:
    """A run that this party was invited to."""

    run: str
    plan_hash: str
    dataset: str | None
    plan: str = field(repr=False)  # JSON
    schema_text: str = field(repr=False)
    price: Fraction
    verdict: str  # of the policy: accept, ask or refuse
    reasons: tuple[str, ...]
    state: State
    outcome: str  # of an ended run: finished, failed, refused, cancelled, timed_out
    reason: str  # of a decision or an end
    at: str
    spent: Fraction
    reserved: Fraction
    delta: Fraction = Fraction(0)  # of the whole run, as price is its epsilon
    spent_delta: Fraction = Fraction(0)
    reserved_delta: Fraction = Fraction(0)


@dataclass(frozen=True)
class StoredReply:
    request_digest: str
    reply: bytes = field(repr=False)


@dataclass(frozen=True)
class Entry:
    """One line of the account."""

    dataset: str | None
    run: str
    plan_hash: str
    step: str
    mechanism: str
    charge: Fraction  # epsilon
    request_digest: str
    reply_digest: str
    reply_bytes: int
    at: str
    delta: Fraction = Fraction(0)


_ENTRIES = """
SELECT * FROM (
    SELECT 1 AS part, answers.rowid AS number, dataset, run, plan_hash, step, mechanism, charge, request_digest,
           reply_digest, length(reply) AS reply_bytes, answers.at AS at, answers.delta AS delta
    FROM answers JOIN requests USING (run)
    UNION ALL
    SELECT 2, rowid, dataset, run, plan_hash, step, 'recovered', charge, '', reply_digest, 0, at, delta FROM recovered
)
WHERE (:dataset IS NULL OR dataset = :dataset) AND (:run IS NULL OR run = :run)
ORDER BY part, number
"""
_KNOWN_ANSWERS = """
SELECT plan_hash, step, reply_digest, charge, answers.delta FROM answers JOIN requests USING (run)
UNION ALL
SELECT plan_hash, step, reply_digest, charge, delta FROM recovered
"""


_ENTRY_FIELDS = [entry.name for entry in fields(Entry)]


def find_request(db: Connection, run: str) -> Request | None:
    row = db.execute("SELECT * FROM requests WHERE run = ?", (run,)).fetchone()
    return None if row is None else _request(db, row)


def find_plan(db: Connection, plan_hash: str) -> Request | None:
    row = db.execute("SELECT * FROM requests WHERE plan_hash = ?", (plan_hash,)).fetchone()
    return None if row is None else _request(db, row)


def known_request(db: Connection, run: str) -> Request:
    request = find_request(db, run)
    if request is None:
        raise LedgerError(f"the ledger knows no run {run!r}: look at the list of requests")
    return request


def requests_in(db: Connection, state: State | None) -> list[Request]:
    rows = db.execute("SELECT * FROM requests WHERE ?1 IS NULL OR state = ?1 ORDER BY rowid", (state,))
    return [_request(db, row) for row in rows]


def find_reply(db: Connection, run: str, step: str) -> StoredReply | None:
    row = db.execute("SELECT request_digest, reply FROM answers WHERE run = ? AND step = ?", (run, step)).fetchone()
    return None if row is None else StoredReply(*row)


def find_entries(db: Connection, dataset: str | None, run: str | None) -> list[Entry]:
    rows = db.execute(_ENTRIES, {"dataset": dataset, "run": run})
    return [
        Entry(
            **{name: row[name] for name in _ENTRY_FIELDS}
            | {"charge": Fraction(row["charge"]), "delta": Fraction(row["delta"])}
        )
        for row in rows
    ]


def known_answers(db: Connection) -> set[tuple[str, str, str, Fraction, Fraction]]:
    """Plan, step, digest, charge and delta of every answer with an entry in this ledger."""
    found = db.execute(_KNOWN_ANSWERS)
    return {(plan, step, reply, Fraction(charge), Fraction(delta)) for plan, step, reply, charge, delta in found}


def is_recovered(db: Connection, plan_hash: str) -> bool:
    return db.execute("SELECT 1 FROM recovered WHERE plan_hash = ?", (plan_hash,)).fetchone() is not None


def spent_on(db: Connection, dataset: str) -> Amounts:
    answers = db.execute(
        "SELECT charge, answers.delta FROM answers JOIN requests USING (run) WHERE dataset = ?", (dataset,)
    )
    recovered = db.execute("SELECT charge, delta FROM recovered WHERE dataset = ?", (dataset,))
    return _total([*answers, *recovered])


def reserved_on(db: Connection, dataset: str) -> Amounts:
    rows = db.execute("SELECT * FROM requests WHERE dataset = ? AND state = 'active'", (dataset,)).fetchall()
    active = [_request(db, row) for row in rows]
    return _total([(one.reserved, one.reserved_delta) for one in active])


def _total(charges: Iterable[Sequence[str | Fraction]]) -> Amounts:
    epsilon = delta = Fraction(0)
    for charge, with_delta in charges:
        epsilon, delta = epsilon + Fraction(charge), delta + Fraction(with_delta)
    return epsilon, delta


def _request(db: Connection, row: Row) -> Request:
    columns = {name: row[name] for name in row.keys() if name != "kept"}  # noqa: SIM118 - a Row iterates over values
    spent, spent_delta = _total(db.execute("SELECT charge, delta FROM answers WHERE run = ?", (row["run"],)))
    price, delta = Fraction(row["price"]), Fraction(row["delta"])
    columns |= {"price": price, "delta": delta, "reasons": tuple(json.loads(row["reasons"]))}
    columns |= {"spent": spent, "spent_delta": spent_delta}
    is_active = row["state"] == "active"
    return Request(
        **columns,
        reserved=price - spent if is_active else Fraction(0),
        reserved_delta=delta - spent_delta if is_active else Fraction(0),
    )
