"""Single facts that the ledger keeps beside its tables: how far the audit log went, why it was stopped, and counts.

It does not know what follows from them.
"""

from dataclasses import dataclass
from sqlite3 import Connection
from typing import Literal

Mark = Literal["log lines", "log last", "stopped", "fruitless", "folded"]


@dataclass(frozen=True)
class Head:
    """The end of an audit log: the number of its lines, and the hash of the last of them."""

    lines: int
    last: str


def read(db: Connection, name: Mark) -> str:
    """The value of a mark; empty if it is not set."""
    row = db.execute("SELECT value FROM marks WHERE name = ?", (name,)).fetchone()
    return "" if row is None else str(row[0])


def write(db: Connection, name: Mark, value: object) -> None:
    db.execute("INSERT OR REPLACE INTO marks (name, value) VALUES (?, ?)", (name, str(value)))


def add(db: Connection, name: Mark, count: int = 1) -> int:
    """Add to a count; return the sum."""
    found = int(read(db, name) or 0) + count
    write(db, name, found)
    return found


def read_head(db: Connection) -> Head | None:
    lines, last = read(db, "log lines"), read(db, "log last")
    return Head(int(lines), last) if lines else None


def write_head(db: Connection, head: Head) -> None:
    write(db, "log lines", head.lines)
    write(db, "log last", head.last)
