"""The audit log: one JSON line for everything that was asked, decided, answered or refused, each chained to the last.

It does not know rows: there is no field for a value or a count. Whoever changes, drops or inserts a line breaks the
chain of hashes. A missing end shows only in a comparison with a copy or with the ledger.
"""

import fcntl
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from party.books.ledger import REFUSAL
from party.books.ledger_tables import RECOVERED, Entry
from party.errors import DiskFull, LedgerError, Unreadable
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
    "refused": frozenset({"run", "step", "reason"}),
    "settled": frozenset({"run", "outcome", "reason"}),
    "rolled back": frozenset({"answers"}),
    "acknowledged": frozenset({"run", "step", "charge", "delta", "dataset"}),
    "exported": frozenset({"what"}),
    "restored": frozenset({"made", "digest"}),  # from a backup made then
    "signed in": frozenset(),  # to the pages
    "compared": frozenset({"run"}),  # only that it was done: the findings are for the data owner alone
    "mended": frozenset({"bytes"}),  # bytes of an unfinished last line that was removed
}
FIRST = "0" * 64  # the predecessor's hash in the first line
BLOCK = 1 << 13

Field = str | int | list[str]


class Audit:
    def __init__(self, path: Path, now: Callable[[], str] = utc_now) -> None:
        self._path = path
        self._now = now

    def append(self, event: str, **fields: Field) -> None:
        """Append an entry, which is on disk when this returns. Several processes may write to one log."""
        unknown = fields.keys() - EVENTS[event]
        assert not unknown, f"{event!r} says nothing about {sorted(unknown)}"
        with self._opened() as file:
            end = _end_of_whole_lines(file)
            torn = os.fstat(file).st_size - end
            if torn:  # a kill cut the last write short: nothing relies on that line yet
                os.ftruncate(file, end)
                end = self._write(file, end, "mended", {"bytes": torn})
            self._write(file, end, event, fields)

    def _write(self, file: int, end: int, event: str, fields: dict[str, Any]) -> int:
        seq, previous = self._following(_line_before(file, end))
        line = {"seq": seq, "at": self._now(), "event": event, **fields, "previous": previous}
        data = canonical_json(line) + b"\n"
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
    def _opened(self) -> Iterator[int]:
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


def verify(path: Path) -> list[str]:
    """List the problems of the log: none, or the first break of the chain, or an unfinished end."""
    if not path.exists():
        return [f"{path}: is absent"]
    previous, number = FIRST, 0
    for number, line in enumerate(_lines(path), start=1):
        if not line.endswith(b"\n"):
            return [f"{path}, line {number}: is unfinished; the next entry will take it out and say so"]
        what = _break(line[:-1], number, previous)
        if what:
            return [f"{path}, line {number}: {what}"]
        previous = sha256(line[:-1]).hexdigest()
    return []


def entries(path: Path) -> Iterator[dict[str, Any]]:
    """The finished lines, oldest first."""
    for line in _lines(path):
        if line.endswith(b"\n"):
            yield _entry(line)


def readable(path: Path) -> Iterator[dict[str, Any]]:
    """The log up to the first line that is not JSON; `verify` says what is wrong with that line."""
    try:
        yield from entries(path)
    except ValueError:
        return


def holds(entry: dict[str, Any], text: str) -> bool:
    """Whether an entry contains this text, as the log writes it."""
    return text in json.dumps(entry, ensure_ascii=False)


def unlogged(path: Path, answers: Iterable[Entry]) -> list[Entry]:
    """Answers in the ledger that are not in the log, because a kill came between the two or the log was cut."""
    try:
        told = list(entries(path))
    except ValueError:
        raise Unreadable(
            f"{path}: a line is no entry of this log, so that nobody knows which answers the log tells of; keep it as "
            "it is, find out who changed it, and move it away to go on"
        ) from None
    logged = {(e["run"], e["step"], e["reply"]) for e in told if e["event"] == "answered"}
    refused = {(e["run"], e["step"]) for e in told if e["event"] == "refused"}
    return [
        a
        for a in answers
        if a.mechanism != RECOVERED
        and (a.run, a.step, a.reply_digest) not in logged
        and not (a.mechanism == REFUSAL and (a.run, a.step) in refused)
    ]


def _lines(path: Path) -> Iterator[bytes]:
    if path.exists():
        with path.open("rb") as file:
            yield from file


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


def _end_of_whole_lines(file: int) -> int:
    """The position just after the last newline."""
    end = os.fstat(file).st_size
    while end:
        start = max(0, end - BLOCK)
        newline = os.pread(file, end - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0


def _line_before(file: int, end: int) -> bytes:
    """The line whose newline stands just before `end`, without it; empty at the file's beginning."""
    line = b""
    start = end - 1  # leaves out the newline
    while start > 0:
        block = max(0, start - BLOCK)
        before, newline, after = os.pread(file, start - block, block).rpartition(b"\n")
        line = after + line if newline else before + after + line
        if newline:
            break
        start = block
    return line
