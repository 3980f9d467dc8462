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
        self.unsynced = Unsynced()
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
        if death.is_power_cut:
            self.unsynced.lose(self.home, copy)
        self.end(copy, death)

    def end(self, copy: Path, death: Death) -> NoReturn:
        """End this life, and let the next one begin with this copy of the home."""
        self.is_alive = False
        self.node.dies(self, copy, death)
        raise Killed(self.node.name)


class Unsynced:
    """What a process has told the system to write and not yet to sync: when the power fails, none of it is left.

    Files of a database are left out: SQLite syncs them itself.
    """

    def __init__(self) -> None:
        self._sizes: dict[Path, int] = {}  # how much of a file is on the disk
        self._names: dict[Path, bytes | None] = {}  # what a name stood for before it was given to another file

    def grows(self, file: Path, size: int) -> None:
        self._sizes.setdefault(file, size)

    def moves(self, source: Path, target: Path) -> None:
        self._names.setdefault(target, target.read_bytes() if target.exists() else None)
        if source in self._sizes:
            self._sizes[target] = self._sizes.pop(source)

    def synced(self, place: Path) -> None:
        self._sizes.pop(place, None)
        for target in [target for target in self._names if target.parent == place]:
            del self._names[target]

    def lose(self, home: Path, copy: Path) -> None:
        for file, size in self._sizes.items():
            if (there := copy / file.relative_to(home)).exists():
                there.write_bytes(there.read_bytes()[:size])
        for target, former in self._names.items():
            there = copy / target.relative_to(home)
            there.unlink(missing_ok=True)
            if former is not None:
                there.write_bytes(former)


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

    def open(self, path: Path, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_EXCL:
            _unsynced().grows(Path(path), 0)
        return os.open(path, flags, mode)

    def fsync(self, file: int) -> None:
        def sync() -> None:
            os.fsync(file)
            _unsynced().synced(_path(file))

        effect("sync", sync)

    def replace(self, source: Path, target: Path) -> None:
        def move() -> None:
            _unsynced().moves(source, target)
            os.replace(source, target)

        effect("rename", move)

    def pwrite(self, file: int, data: bytes, position: int) -> int:
        _unsynced().grows(_path(file), position)
        return int(effect("append", lambda: os.pwrite(file, data, position)))

    def ftruncate(self, file: int, size: int) -> None:
        effect("cut", lambda: os.ftruncate(file, size))


def _unsynced() -> Unsynced:
    life = LIFE.get()
    return Unsynced() if life is None else life.unsynced


def _path(file: int) -> Path:
    return Path(os.readlink(f"/proc/self/fd/{file}"))


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
