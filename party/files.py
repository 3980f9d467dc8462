"""Files that appear whole or not at all, outlive a crash, and are their owner's alone.

It does not know what the files hold.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import BinaryIO

_OTHERS = 0o077
UNFINISHED = ".part"  # the suffix of a file that is not whole yet


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Open a draft for writing that takes the place of `path` at the end of the block, and is removed on an error.

    Nobody else can read the draft, not even for a moment. Its bytes are on disk before it has its name, and the name is
    on disk when the block is left.
    """
    draft = path.with_name(path.name + UNFINISHED)
    draft.unlink(missing_ok=True)  # left by a kill
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        move(draft, path)
    except BaseException:  # also on Ctrl-C: no half file may remain
        draft.unlink(missing_ok=True)
        raise


def write_file(path: Path, content: str | bytes) -> None:
    """Write the text, in UTF-8, or the bytes as a whole file."""
    with whole_file(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def move(source: Path, target: Path) -> None:
    """Put a file that is on disk already in the target's place, and write the new name to disk."""
    os.replace(source, target)
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Write a folder's entries to disk, after files in it were made, replaced or removed."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class _OwnFiles:
    """How many blocks want this process's new files to be its owner's alone, and the mask from before the first."""

    def __init__(self) -> None:
        self.lock, self.blocks, self.before = Lock(), 0, 0


_own_files = _OwnFiles()


@contextmanager
def own_files() -> Iterator[None]:
    """Make all files and folders that appear in the block their owner's alone, also those that a library makes.

    The mask is the whole process's: meanwhile, other threads make files that nobody else can read either.
    """
    with _own_files.lock:
        if not _own_files.blocks:
            _own_files.before = os.umask(_OTHERS)
        _own_files.blocks += 1
    try:
        yield
    finally:
        with _own_files.lock:
            _own_files.blocks -= 1
            if not _own_files.blocks:
                os.umask(_own_files.before)
