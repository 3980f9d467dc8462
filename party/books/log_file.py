"""Lines of a log file: reading them forwards, and the last of them from the end.

It does not know what a line says, but for its number.
"""

import json
import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from party.books.marks import Head

BLOCK = 1 << 13


def lines(path: Path) -> Iterator[bytes]:
    if path.exists():
        with path.open("rb") as file:
            yield from file


def end_of_whole_lines(file: int) -> int:
    """The position just after the last newline."""
    end = os.fstat(file).st_size
    while end:
        start = max(0, end - BLOCK)
        newline = os.pread(file, end - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0


def holds(file: int, end: int, noted: Head) -> bool:
    """Whether the log up to `end` has the noted line in its place; looks from the end backwards."""
    while end:
        line = line_before(file, end)
        try:
            number = int(json.loads(line)["seq"])
        except (ValueError, KeyError, TypeError):
            return False
        if number <= noted.lines:
            return number == noted.lines and sha256(line).hexdigest() == noted.last
        end -= len(line) + 1
    return False


def head(file: int, end: int) -> Head:
    """The head of the log whose last line ends at `end`."""
    last = line_before(file, end)
    return Head(int(json.loads(last)["seq"]), sha256(last).hexdigest())


def line_before(file: int, end: int) -> bytes:
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
