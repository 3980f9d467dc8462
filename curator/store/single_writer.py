"""One curator serves a database: a lock that ends with its process, and a token that the service's writes require.

It does not know what is stored.

The lock is a file lock beside a SQLite file, or an advisory lock of a PostgreSQL server. It ends at once with the
process that holds it, even if the process is killed, so that a successor need not wait. But a running process can lose
a PostgreSQL lock, when the server restarts or the connection is cut. Then the token decides: the serving process has
written it into the database, every writing transaction checks that it is still there, and a successor replaces it.
"""

import fcntl
import json
import os
import platform
import time
from pathlib import Path
from typing import Protocol

from sqlalchemy import Connection, Engine, insert, select, text, update
from sqlalchemy.exc import DBAPIError

from curator.errors import Displaced, SettingsError
from curator.store.tables import WRITING, meta

_ROW = "served by"
_LOCK = 5824902  # number of the PostgreSQL advisory lock; the migrations use 5824901
PATIENCE = 3.0  # seconds that a killed process may need to disappear
_POLL = 0.05
# The row stays locked until the transaction ends, so that no successor can take over in between.
_SERVED_BY = select(meta.c.value).where(meta.c.name == _ROW).with_for_update(read=True)
# PostgreSQL notices within 25 seconds that the machine which held the lock is gone.
_KEEPALIVE = "SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3"


class _Lock(Protocol):
    def take(self) -> bool: ...

    def is_held(self) -> bool: ...

    def release(self) -> None: ...


class SoleCurator:
    def __init__(self, engine: Engine, token: str) -> None:
        self._engine, self._token = engine, token
        self._lock = _lock_of(engine)

    def take(self) -> None:
        """Claim this database for this process. Refused while another process serves it."""
        deadline = time.monotonic() + PATIENCE
        while not self._lock.take():
            if time.monotonic() > deadline:
                raise SettingsError(
                    f"{self._holder()} serves this database already: stop it first. Two curators on one database "
                    "would contradict each other"
                )
            time.sleep(_POLL)
        said = {"token": self._token, "process": os.getpid(), "host": platform.node()}
        try:
            with self._engine.connect().execution_options(**{WRITING: True}) as db, db.begin():
                _write(db, json.dumps(said))
        except BaseException:  # a claim that cannot be written claims nothing, however long this process lives
            self._lock.release()
            raise

    def confirm(self, db: Connection) -> None:
        """Raise Displaced unless this process still serves the database. Every writing transaction calls this."""
        if _token_in(db.execute(_SERVED_BY).scalar_one_or_none()) != self._token:
            raise Displaced("another curator serves this database now, so this one writes nothing more: stop it")

    def check(self) -> None:
        """Take a lost lock again. Raise Displaced if another process has served the database meanwhile."""
        if not self._lock.is_held() and not self._lock.take():
            raise Displaced(f"{self._holder()} serves this database now; this curator stops")
        with self._engine.connect() as db, db.begin():
            self.confirm(db)

    def release(self) -> None:
        self._lock.release()

    def _holder(self) -> str:
        with self._engine.connect() as db:
            said = db.execute(select(meta.c.value).where(meta.c.name == _ROW)).scalar_one_or_none()
        found = json.loads(said) if said else {}
        return f"process {found['process']} on {found['host']}" if found else "another process"


class _FileLock:
    """A file lock beside a SQLite file. The system releases it when its holder dies."""

    def __init__(self, database: Path) -> None:
        self._path = database.with_name(database.name + ".lock")
        self._file: int | None = None

    def take(self) -> bool:
        file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            return False
        self._file = file
        return True

    def is_held(self) -> bool:
        return self._file is not None

    def release(self) -> None:
        if self._file is not None:  # the file stays: removing it would let two processes lock two files
            os.close(self._file)
            self._file = None


class _AdvisoryLock:
    """A lock held by one PostgreSQL session, that is, by the connection in `_session`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._session: Connection | None = None

    def take(self) -> bool:
        self.release()
        session = self._engine.connect()
        try:
            session.execute(text(_KEEPALIVE))
            is_taken = bool(session.execute(text("SELECT pg_try_advisory_lock(:lock)"), {"lock": _LOCK}).scalar_one())
        except DBAPIError:
            session.invalidate()
            session.close()
            raise
        if is_taken:
            self._session = session
        else:
            session.close()
        return is_taken

    def is_held(self) -> bool:
        try:
            return self._session is not None and self._session.execute(text("SELECT 1")).scalar_one() == 1
        except DBAPIError:
            return False

    def release(self) -> None:
        if self._session is not None:
            self._session.invalidate()  # ends the session: a pooled one would keep the lock
            self._session.close()
            self._session = None


def _lock_of(engine: Engine) -> _Lock:
    if engine.dialect.name != "sqlite":
        return _AdvisoryLock(engine)
    assert engine.url.database
    return _FileLock(Path(engine.url.database))


def _write(db: Connection, said: str) -> None:
    if not db.execute(update(meta).where(meta.c.name == _ROW).values(value=said)).rowcount:
        db.execute(insert(meta).values(name=_ROW, value=said))


def _token_in(said: str | None) -> str | None:
    return None if said is None else str(json.loads(said)["token"])
