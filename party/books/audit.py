"""The audit log: one JSON line for everything that was asked, decided, answered or refused, each chained to the last.

It does not know rows: there is no field for a value or a count. Whoever changes, drops or inserts a line breaks the
chain of hashes. Whoever cuts the end off, or empties the log, is found out by the ledger, which keeps the length and
the last hash.

Order of effects: a line is on disk before the ledger hears of it. A kill in between leaves a log that is longer than
the ledger says, never a shorter one, and the next line catches up.
"""

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from party.books import log_file
from party.books.marks import Head
from party.errors import DiskFull, LedgerError, RolledBack, Unreadable
from party.logs import utc_now
from protocol.exact import canonical_json

# The fields of each event; no others may be logged.
EVENTS: dict[str, frozenset[str]] = {
    "made": frozenset({"fingerprint"}),
    "enrolled": frozenset({"name", "url", "curator"}),
    "recognised": frozenset({"curator", "pin"}),
    "rotated": frozenset({"fingerprint"}),
    "started": frozenset({"version"}),
    "stopped": frozenset({"reason"}),
    "offered": frozenset({"dataset", "schema"}),
    "asked": frozenset({"run", "plan", "dataset", "price", "delta"}),
    "judged": frozenset({"run", "plan", "decision", "reasons"}),
    "decided": frozenset({"run", "decision", "reason", "by"}),
    "answered": frozenset({"run", "step", "mechanism", "charge", "delta", "request", "reply", "bytes"}),
    "refused": frozenset({"run", "step", "reason", "row"}),  # row: so many since the last charge, and not each told
    "settled": frozenset({"run", "outcome", "reason", "row"}),
    "rolled back": frozenset({"answers"}),
    "acknowledged": frozenset({"run", "step", "charge", "delta", "dataset"}),
    "exported": frozenset({"what"}),
    "restored": frozenset({"made", "digest"}),  # from a backup made then
    "signed in": frozenset(),  # to the pages
    "compared": frozenset({"run"}),  # only that it was done: the findings are for the data owner alone
    "mended": frozenset({"bytes"}),  # bytes of an unfinished last line that was removed
    "continued": frozenset({"lines", "last"}),  # a log whose end was lost: the end that the ledger knew of
}
FIRST = "0" * 64  # the predecessor's hash in the first line

Field = str | int | list[str]
Fields = Mapping[str, Field]
Told = tuple[str, Fields]  # an event and its fields


class Heads(Protocol):
    """The ledger, as far as the log needs it: where the log's end is kept."""

    def log_head(self) -> Head | None: ...

    def note_log(self, head: Head) -> None: ...


class Problem(NamedTuple):
    text: str
    is_serious: bool = True  # not if a kill cut the last line short, or if there has been no log yet


class Audit:
    def __init__(self, path: Path, now: Callable[[], str] = utc_now, heads: Heads | None = None) -> None:
        self._path = path
        self._now = now
        self._heads = heads
        self._noted = 0  # lines that the ledger has known of

    def append(self, event: str, **fields: Field) -> None:
        """Append an entry, which is on disk when this returns. Several processes may write to one log."""
        self.append_all((event, fields))

    def append_all(self, *told: Told) -> None:
        """Append entries that belong together, with one sync. A kill may leave the first of them alone."""
        for event, fields in told:
            unknown = fields.keys() - EVENTS[event]
            assert not unknown, f"{event!r} says nothing about {sorted(unknown)}"
        with self.locked() as file:
            self._append(file, *told)
            if self._heads is not None:
                self._note(file, self._heads)

    def go_on(self) -> None:
        """Go on with a log whose end was lost, once its data owner knows: the log itself says what is missing."""
        assert self._heads is not None
        with self.locked() as file:
            noted = self._heads.log_head()
            if noted is not None and not log_file.holds(file, log_file.end_of_whole_lines(file), noted):
                self._append(file, ("continued", {"lines": noted.lines, "last": noted.last}))
                self._heads.note_log(end := log_file.head(file, log_file.end_of_whole_lines(file)))
                self._noted = end.lines

    def _note(self, file: int, heads: Heads) -> None:
        """Let the ledger know of the log's end, unless the log was cut, or the ledger has been set back meanwhile.

        Privacy: the ledger that is open may be overwritten by an older copy. Nothing leaves before its line is noted.
        """
        noted, end = heads.log_head(), log_file.end_of_whole_lines(file)
        if (noted.lines if noted is not None else 0) < self._noted:
            raise RolledBack("the ledger was set back while this party was served: start the service again")
        # A log that does not hold the noted line was cut: the note stays, and tells of it.
        if noted is None or log_file.holds(file, end, noted):
            heads.note_log(noted := log_file.head(file, end))
        self._noted = noted.lines

    def _append(self, file: int, *told: Told) -> None:
        end = log_file.end_of_whole_lines(file)
        torn = os.fstat(file).st_size - end
        if torn:  # a kill cut the last write short: nothing relies on that line yet
            os.ftruncate(file, end)
            end = self._write(file, end, [("mended", {"bytes": torn})])
        self._write(file, end, told)

    def _write(self, file: int, end: int, told: Sequence[Told]) -> int:
        seq, previous = self._following(log_file.line_before(file, end))
        data = b""
        for number, (event, fields) in enumerate(told, seq):
            line = canonical_json({"seq": number, "at": self._now(), "event": event, **fields, "previous": previous})
            data, previous = data + line + b"\n", sha256(line).hexdigest()
        try:
            if os.pwrite(file, data, end) < len(data):
                raise OSError("too little room")
            os.fsync(file)
        except OSError as error:
            os.ftruncate(file, end)
            raise DiskFull(f"{self._path}: nothing was written ({error}); make room and try again") from error
        return end + len(data)

    def _following(self, last: bytes) -> tuple[int, str]:
        """The number of the next line and the hash of its predecessor."""
        if not last:
            return 1, FIRST
        try:
            return int(json.loads(last)["seq"]) + 1, sha256(last).hexdigest()
        except (ValueError, KeyError, TypeError):
            raise Unreadable(f"{self._path}: its last line is no entry of this log; put the log aside") from None

    @contextmanager
    def locked(self) -> Iterator[int]:
        """Open and lock the log, so that every line follows the line before it."""
        try:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise LedgerError(f"{self._path}: cannot be opened: {error.strerror}") from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file
        finally:
            os.close(file)


def verify(path: Path, noted: Head | None = None) -> list[str]:
    """List the problems of the log: none, or the first break of the chain, an unfinished end, or a missing end."""
    return [problem.text for problem in problems(path, noted)]


def tampering(path: Path, noted: Head | None) -> list[str]:
    """Like `verify`, without what a kill may leave behind."""
    return [problem.text for problem in problems(path, noted) if problem.is_serious]


def problems(path: Path, noted: Head | None) -> list[Problem]:
    if noted is None and not path.exists():
        return [Problem(f"{path}: is absent", False)]
    previous, number = FIRST, 0
    for line in log_file.lines(path):
        if not line.endswith(b"\n"):
            torn = f"{path}, line {number + 1}: is unfinished; the next entry will take it out and say so"
            return [Problem(torn, False), *_cut(path, number, noted)]
        number += 1
        what = _break(line[:-1], number, previous)
        previous = sha256(line[:-1]).hexdigest()
        if not what and noted == Head(number, previous):
            noted = None  # the line is there
        if not what and noted is not None and noted.lines == number:
            what = "is not the line that the ledger has noted: it was changed, or the log was cut and has grown again"
        if what:
            return [Problem(f"{path}, line {number}: {what}")]
    return _cut(path, number, noted)


def _cut(path: Path, number: int, noted: Head | None) -> list[Problem]:
    if noted is None:
        return []
    return [
        Problem(
            f"{path}: has {number} lines, the ledger knows of {noted.lines}: its end was cut off or all was removed"
        )
    ]


def entries(path: Path) -> Iterator[dict[str, Any]]:
    """The finished lines, oldest first."""
    for line in log_file.lines(path):
        if line.endswith(b"\n"):
            yield _entry(line)


def readable(path: Path) -> Iterator[dict[str, Any]]:
    """The log up to the first line that is not JSON; `verify` says what is wrong with that line."""
    try:
        yield from entries(path)
    except ValueError:
        return


def tells_of(path: Path, event: str, run: str) -> bool:
    """Whether the log has this event of this run."""
    name = json.dumps(run, ensure_ascii=False).encode()
    found = (_entry(line) for line in log_file.lines(path) if name in line and line.endswith(b"\n"))
    return any(entry.get("event") == event and entry.get("run") == run for entry in found)


def holds(entry: dict[str, Any], text: str) -> bool:
    """Whether an entry contains this text, as the log writes it."""
    return text in json.dumps(entry, ensure_ascii=False)


def _entry(line: bytes) -> dict[str, Any]:
    """The entry of a line; ValueError if the line is none."""
    try:
        found = json.loads(line)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError("it is no object")
    return found


def _break(line: bytes, number: int, previous: str) -> str:
    try:
        entry = _entry(line)
        if canonical_json(entry) != line:
            return "is not written as this log writes"
        found = entry["seq"], entry["previous"]
    except (ValueError, KeyError, TypeError):
        return "is no entry of this log"
    if found[1] != previous:
        return "does not follow from the line before: a line was changed, dropped or put in"
    return "" if found[0] == number else f"has the number {found[0]}"
