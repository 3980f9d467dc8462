"""Exclusive locks, so that one process makes or serves a home; the system releases them when their holder dies.

It does not know what the process serves.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from party.errors import HomeInUse, LedgerError


@contextmanager
def served_alone(path: Path) -> Iterator[None]:
    """Hold the lock file `path` for as long as the body runs; HomeInUse names the process that holds it already."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise LedgerError(f"{path}: cannot be opened: {error.strerror}") from None
    try:
        _lock(file, path)
        os.ftruncate(file, 0)
        os.pwrite(file, b"%d\n" % os.getpid(), 0)
        yield
    finally:
        os.close(file)  # which unlocks; the file stays, for removing it would let two processes lock two files


@contextmanager
def made_alone(folder: Path) -> Iterator[None]:
    """Wait for every other process that makes the home in this folder, and let others wait while the body runs."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _lock(file: int, path: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(file, 32, 0).decode("ascii", "replace").strip()
        by = f"process {holder}" if holder else "another process"
        raise HomeInUse(f"{path.parent}: {by} serves this home already; stop it first") from None
