"""Effects that outlive a process, and kills before, inside and after them.

It does not know what a process is for (`tests.simulation.nodes`), or which kills a schedule holds
(`tests.simulation.schedules`).

Every effect of the product comes by here: a commit of SQLite, an appended line, a file that is synced or renamed, a
request, an answer. A kill copies the home as it is on the disk at this instant; the next life goes on with the copy.
Whatever the killed process does while its exception unwinds happens in a home that nobody reads any more.
"""

import asyncio
import contextvars
import errno
import os
import shutil
import sqlite3
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import patch

import curator.files
import party.books.audit
import party.files
from tests.simulation.schedules import Death, Effect

_SHARED_MEMORY = "-shm"  # SQLite makes it anew
_DRAFT = ".part"


class Killed(BaseException):
    """Thrown where a process is killed."""


class Life:
    """One life of a node's process: from its start on what the disk holds to a kill."""

    def __init__(self, node: "Mortal", home: Path) -> None:
        self.node, self.home = node, home
        self.is_alive = True
        self.tasks: set[asyncio.Task[Any]] = set()
        self.context = contextvars.copy_context()
        self.context.run(LIFE.set, self)

    def spawn(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        task = asyncio.get_running_loop().create_task(work, context=self.context.copy())
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    def effect(self, kind: Effect, action: Callable[[], Any]) -> Any:
        death = self.node.comes_by(kind)
        if death is None:
            self.node.may_write(kind)
            return action()
        if death.edge == "before":
            self.kill(death)
        before = _contents(self.home, is_synced=kind == "sync") if death.edge == "torn" else None
        action()
        return self.kill(death, before)

    def kill(self, death: Death, before: dict[str, bytes] | None = None) -> NoReturn:
        """End this life; `before` is what the disk held before the effect that is torn."""
        copy = copied(self.home, f"{self.node.name}.{self.node.lives}")
        if before is not None:
            _tear(copy, before, death.torn)
        self.end(copy, death)

    def end(self, copy: Path, death: Death) -> NoReturn:
        """End this life, and let the next one begin with this copy of the home."""
        self.is_alive = False
        self.node.dies(self, copy, death)
        raise Killed(self.node.name)


class Mortal:
    """What has lives, one after the other."""

    name: str
    lives = 0

    def comes_by(self, kind: Effect) -> Death | None:
        """Count an effect; the kill that is due at it, if there is one."""
        raise NotImplementedError

    def may_write(self, kind: Effect) -> None:
        """Raise an error if the disk takes nothing more."""
        raise NotImplementedError

    def dies(self, life: Life, home: Path, death: Death) -> None:
        raise NotImplementedError


LIFE: contextvars.ContextVar[Life | None] = contextvars.ContextVar("life", default=None)


def effect(kind: Effect, action: Callable[[], Any]) -> Any:
    life = LIFE.get()
    return action() if life is None or not life.is_alive else life.effect(kind, action)


class _Connection(sqlite3.Connection):
    _changes = 0

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        act = super().execute
        if sql == "COMMIT":
            return self._committed(lambda: act(sql))
        if sql.startswith("PRAGMA wal_checkpoint"):
            return effect("checkpoint", lambda: act(sql))
        return act(sql, *values)

    def commit(self) -> None:
        self._committed(super().commit)

    def _committed(self, act: Callable[[], Any]) -> Any:
        if self.total_changes == self._changes:  # it has only read
            return act()
        self._changes = self.total_changes
        return effect("commit", act)


class _System:
    """The module `os`, with effects."""

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def fsync(self, file: int) -> None:
        effect("sync", lambda: os.fsync(file))

    def replace(self, source: Path, target: Path) -> None:
        effect("rename", lambda: os.replace(source, target))

    def pwrite(self, file: int, data: bytes, position: int) -> int:
        return int(effect("append", lambda: os.pwrite(file, data, position)))

    def ftruncate(self, file: int, size: int) -> None:
        effect("cut", lambda: os.ftruncate(file, size))


def _connect(*arguments: Any, **named: Any) -> sqlite3.Connection:
    return _REAL_CONNECT(*arguments, **({"factory": _Connection} | named))


_REAL_CONNECT = sqlite3.connect


@contextmanager
def watched() -> Iterator[None]:
    """Let all effects of the product come by here."""
    with ExitStack() as patches:
        patches.enter_context(patch("sqlite3.connect", _connect))
        patches.enter_context(patch("sqlite3.dbapi2.connect", _connect))
        for module in (party.files, curator.files, party.books.audit):
            patches.enter_context(patch.object(module, "os", _System()))
        yield


def copied(home: Path, name: str) -> Path:
    """A copy of the home as it is on the disk now."""
    copy = home.with_name(name)
    shutil.copytree(home, copy, ignore=shutil.ignore_patterns(f"*{_SHARED_MEMORY}"))
    return copy


def refused(kind: Effect) -> Exception:
    """The error with which a full disk refuses an effect."""
    if kind != "commit":
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorcode, error.sqlite_errorname = sqlite3.SQLITE_FULL, "SQLITE_FULL"
    return error


def _contents(home: Path, *, is_synced: bool) -> dict[str, bytes]:
    """What every file holds; of a draft that is being synced, nothing need be on the disk yet."""
    files = [file for file in home.rglob("*") if file.is_file() and not file.name.endswith(_SHARED_MEMORY)]
    return {
        str(file.relative_to(home)): b"" if is_synced and file.name.endswith(_DRAFT) else file.read_bytes()
        for file in files
    }


def _tear(home: Path, before: dict[str, bytes], part: float) -> None:
    """Leave of every change since `before` only its first part."""
    for name, after in _contents(home, is_synced=False).items():
        former = before.get(name, b"")
        if after != former:
            same = next(
                (at for at, (a, b) in enumerate(zip(after, former, strict=False)) if a != b),
                min(len(after), len(former)),
            )
            cut = same + int(part * (len(after) - same))
            (home / name).write_bytes(after[:cut] + former[cut:])
