"""Folding of requests that came to nothing, so that a curator cannot fill the disk with them.

It does not know why a request was refused or a run ended.

A request that ended without a charge keeps its essentials alone. Of requests that were never joined, the newest are
kept and older ones counted. Nothing that was charged, and no answer but refusals, is ever touched.
"""

from sqlite3 import Connection

from party.books import marks

MOST_KEPT = 1000  # requests that were refused or withdrawn

_CHARGED = "EXISTS (SELECT 1 FROM answers WHERE run = requests.run AND (charge != '0' OR delta != '0'))"
_JOINED = "EXISTS (SELECT 1 FROM answers WHERE run = requests.run AND mechanism != 'refusal')"
_OLDEST = f"""
SELECT run FROM requests WHERE state = 'ended' AND NOT {_JOINED} ORDER BY rowid DESC LIMIT -1 OFFSET ?
"""  # noqa: S608 - nothing of it comes from outside
_REDUCED = f"""
UPDATE requests SET plan = '', schema_text = '' WHERE run = ? AND essentials != '' AND NOT {_CHARGED}
"""  # noqa: S608 - nothing of it comes from outside


def reduce(db: Connection, run: str) -> None:
    """Keep only the essentials of an ended run that was charged nothing."""
    db.execute(_REDUCED, (run,))


def fold(db: Connection) -> None:
    """Forget the oldest requests that were never joined, but for their number."""
    oldest = db.execute(_OLDEST, (MOST_KEPT,)).fetchall()
    for (run,) in oldest:
        db.execute("DELETE FROM answers WHERE run = ?", (run,))
        db.execute("DELETE FROM requests WHERE run = ?", (run,))
    if oldest:
        marks.add(db, "folded", len(oldest))
