"""Files that appear whole or not at all, outlive a crash, and are their owner's alone unless the caller says more.

It does not know what the files hold.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

UNFINISHED = ".part"  # the suffix of a file that is not whole yet
PRIVATE, PUBLIC = 0o600, 0o644


@contextmanager
def whole_file(path: Path, mode: int = PRIVATE) -> Iterator[BinaryIO]:
    """Open a draft for writing that takes the place of `path` at the end of the block, and is removed on an error.

    The draft has its final mode from the first moment. Its bytes are on disk before it has its name, and the name is
    on disk when the block is left.
    """
    draft = path.with_name(path.name + UNFINISHED)
    draft.unlink(missing_ok=True)  # left by a kill, perhaps with another mode
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        move(draft, path)
    except BaseException:  # on any interruption, also Ctrl-C, no half-written draft may stay
        draft.unlink(missing_ok=True)
        raise


def write_file(path: Path, content: str | bytes, mode: int = PRIVATE) -> None:
    """Write the text, in UTF-8, or the bytes as a whole file."""
    with whole_file(path, mode) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def move(source: Path, target: Path) -> None:
    """Put a file that is on disk already in the target's place, and write the new name to disk."""
    os.replace(source, target)
    sync_folder(target.parent)


@contextmanager
def made_alone(folder: Path) -> Iterator[None]:
    """Wait for every other process that makes a home in this folder, and let others wait while the body runs."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Write a folder's entries to disk, after files in it were made, replaced or removed."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
