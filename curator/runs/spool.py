"""Answers on their way in: kept on disk while they arrive, one for each question, and bounded in number and bytes.

It does not know HTTP or what an answer says. The files have no names, so that the system removes them with the process.
"""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from threading import Lock
from typing import IO

from curator.errors import Busy, StoreUnavailable

MOST_BODIES = 200
IN_MEMORY = 1 << 18  # bytes of an answer that needs no file
_SPOOL_MODE = 0o700

Question = tuple[str, str, str]  # run, step, party


class Spool:
    def __init__(self, folder: Path, most_bytes: int) -> None:
        """Make an empty spool. Files of an earlier process, on disks that know no files without names, are removed."""
        self._folder, self._most_bytes = folder, most_bytes
        self._arriving: dict[Question, int] = {}
        self._lock, self._in_memory = Lock(), asyncio.Lock()
        folder.mkdir(mode=_SPOOL_MODE, parents=True, exist_ok=True)
        for left in folder.iterdir():
            left.unlink()

    @contextmanager
    def place(self, question: Question, size: int) -> Iterator[IO[bytes]]:
        """Open a place for an answer of so many bytes. Its room is reserved before the first of them arrives."""
        with self._lock:
            if question in self._arriving:
                raise Busy("this answer is arriving already, on another connection: send it again if that one breaks")
            if len(self._arriving) >= MOST_BODIES or sum(self._arriving.values()) + size > self._most_bytes:
                raise Busy("too many answers are arriving at once: send this one again in a moment")
            self._arriving[question] = size
        try:
            with tempfile.SpooledTemporaryFile(IN_MEMORY, dir=str(self._folder)) as file:
                yield file
        finally:
            with self._lock:
                del self._arriving[question]

    @asynccontextmanager
    async def turn(self, size: int) -> AsyncIterator[None]:
        """Wait until no other large answer is read into memory."""
        if size <= IN_MEMORY:
            yield
            return
        async with self._in_memory:
            yield


def no_room(error: OSError) -> StoreUnavailable:
    """Return the error of a curator whose disk takes no more of an answer that arrives."""
    return StoreUnavailable(
        f"the curator's disk takes no answers now ({error.strerror or os.strerror(error.errno or 0)}): make room; the "
        "answer is sent again by itself"
    )
