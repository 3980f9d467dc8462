"""The ledger's tables: their SQL, one migration per version, and the meaning of their rows.

It does not know which changes are allowed (`party.books.ledger`).
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from sqlite3 import Connection, Row
from typing import Literal

from party.books.budget import Amounts, Claims, added
from party.errors import LedgerError

State = Literal["asked", "accepted", "refused", "active", "ended"]

REFUSAL = "refusal"  # the mechanism of an answer that refuses
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
    # charges bear the source of the rows and a named budget; of what came to nothing only essentials stay
    (
        *(
            f"ALTER TABLE {table} ADD COLUMN {column} TEXT NOT NULL DEFAULT ''"
            for table, columns in (
                ("requests", ("source", "budget", "essentials", "invitation")),
                ("recovered", ("source", "budget")),
            )
            for column in columns
        ),
        "CREATE TABLE marks (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT",
        "DROP TRIGGER answers_refuse_DELETE",
        "DROP TRIGGER requests_refuse_DELETE",
        "CREATE TRIGGER answers_refuse_DELETE BEFORE DELETE ON answers"
        " WHEN OLD.mechanism != 'refusal' OR OLD.charge != '0' OR OLD.delta != '0' "
        "BEGIN SELECT RAISE(ABORT, 'what was spent stays as it is'); END",
        "CREATE TRIGGER requests_refuse_DELETE BEFORE DELETE ON requests"
        " WHEN OLD.state != 'ended' OR EXISTS (SELECT 1 FROM answers WHERE run = OLD.run) "
        "BEGIN SELECT RAISE(ABORT, 'what was asked stays known'); END",
    ),
)


@dataclass(frozen=True)
class Request:
    """A run that this party was invited to."""

    run: str
    plan_hash: str
    dataset: str | None
    plan: str = field(repr=False)  # JSON; empty when the run was refused or ended without a charge
    schema_text: str = field(repr=False)  # likewise
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
    source: str = ""  # digest of the source of the data set's rows
    budget: str = ""  # the budget that the data set named
    essentials: str = field(default="", repr=False)  # JSON for the data owner: what stays when the plan does not
    invitation: str = ""  # SHA-256 of the invitation's bytes


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


CLAIMED = """(
    dataset IN (SELECT value FROM json_each(:names)) OR source IN (SELECT value FROM json_each(:sources))
    OR budget IN (SELECT value FROM json_each(:budgets))
)"""
_ENTRIES = f"""
SELECT * FROM (
    SELECT 1 AS part, answers.rowid AS number, dataset, source, budget, run, plan_hash, step, mechanism, charge,
           request_digest, reply_digest, length(reply) AS reply_bytes, answers.at AS at, answers.delta AS delta
    FROM answers JOIN requests USING (run)
    UNION ALL
    SELECT 2, rowid, dataset, source, budget, run, plan_hash, step, '{RECOVERED}', charge, '', reply_digest, 0, at,
           delta
    FROM recovered
)
WHERE (:every OR {CLAIMED}) AND (:run IS NULL OR run = :run)
ORDER BY part, number
"""  # noqa: S608 - nothing of it comes from outside
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


def find_entries(db: Connection, claims: Claims | None, run: str | None) -> list[Entry]:
    rows = db.execute(_ENTRIES, {"every": claims is None, "run": run} | claimed_by(claims or Claims()))
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


def claimed_by(claims: Claims) -> dict[str, str]:
    """The parameters of CLAIMED. An empty text is no source and no budget."""
    named = {"names": claims.names, "sources": claims.sources, "budgets": claims.budgets}
    return {name: json.dumps(sorted(values - {""})) for name, values in named.items()}


def total(charges: Iterable[Sequence[str]]) -> Amounts:
    return added(*((Fraction(charge), Fraction(delta)) for charge, delta in charges))


def is_recovered(db: Connection, plan_hash: str) -> bool:
    return db.execute("SELECT 1 FROM recovered WHERE plan_hash = ?", (plan_hash,)).fetchone() is not None


def _request(db: Connection, row: Row) -> Request:
    columns = {name: row[name] for name in row.keys() if name != "kept"}  # noqa: SIM118 - a Row iterates over values
    spent, spent_delta = total(db.execute("SELECT charge, delta FROM answers WHERE run = ?", (row["run"],)))
    price, delta = Fraction(row["price"]), Fraction(row["delta"])
    columns |= {"price": price, "delta": delta, "reasons": tuple(json.loads(row["reasons"]))}
    columns |= {"spent": spent, "spent_delta": spent_delta}
    is_active = row["state"] == "active"
    return Request(
        **columns,
        reserved=price - spent if is_active else Fraction(0),
        reserved_delta=delta - spent_delta if is_active else Fraction(0),
    )
