"""One SQLite file that survives a kill at any instant: opening, migration, transactions, and meanings of errors.

It does not know what the file stores.
"""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock

from party.errors import DiskFull, LedgerError, Unreadable

BUSY_SECONDS = 30
_NO_ROOM = {"SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_SHMSIZE", "SQLITE_IOERR_SHMMAP"}
_NOT_A_LEDGER = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_PRIMARY = 0xFF  # SQLite's extended result codes keep the primary one in the lowest byte


class Database:
    """One connection that several threads may share; other processes may hold their own.

    Take a `transaction` or a `reading`, never the bare `connection`.
    """

    def __init__(self, path: Path, application: int, migrations: Sequence[Sequence[str]]) -> None:
        self._path = path
        self._turn = RLock()
        with self._explained():
            _create(path)
            self.connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
            self.connection.row_factory = sqlite3.Row
            try:
                self._prepare(application, migrations)
            except (sqlite3.Error, LedgerError):
                self.connection.close()
                raise

    def close(self) -> None:
        with self._turn:
            self.connection.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Run the body as one transaction, on disk when it ends; only one process writes at a time."""
        with self._turn, self._explained():
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield self.connection
                self.connection.execute("COMMIT")
            finally:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Run the body on one consistent view of the data."""
        with self._turn, self._explained():
            self.connection.execute("BEGIN")
            try:
                yield self.connection
            finally:
                self.connection.execute("ROLLBACK")

    def empty_log(self) -> None:
        """Move the write-ahead log into the file, so that overwritten secrets do not remain in the log.

        If that fails now, because the disk is full or somebody reads, a later commit or the next opening does it.
        """
        with self._turn, suppress(sqlite3.OperationalError):
            self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _prepare(self, application: int, migrations: Sequence[Sequence[str]]) -> None:
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA synchronous = FULL")  # a commit returns when it is on disk
        self.connection.execute("PRAGMA foreign_keys = ON")
        self.connection.execute("PRAGMA secure_delete = ON")  # secrets of ended runs do not stay in free pages
        damage = self.connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if damage != "ok":
            raise Unreadable(f"{self._path}: the file is damaged; restore it from a backup")
        with self.transaction() as connection:
            self._migrate(connection, application, migrations)

    def _migrate(self, connection: sqlite3.Connection, application: int, migrations: Sequence[Sequence[str]]) -> None:
        found = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        is_empty = not connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
        if found != application and not is_empty:
            raise Unreadable(f"{self._path}: a database of another program; a ledger of this party is expected")
        if version > len(migrations):
            raise Unreadable(
                f"{self._path}: its version is {version}, this program knows {len(migrations)}: update the program"
            )
        connection.execute(f"PRAGMA application_id = {application}")
        for statement in (statement for migration in migrations[version:] for statement in migration):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(migrations)}")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._meaning(error) from error

    def _meaning(self, error: sqlite3.Error) -> LedgerError:
        name = getattr(error, "sqlite_errorname", type(error).__name__)
        primary = getattr(error, "sqlite_errorcode", 0) & _PRIMARY
        if name in _NO_ROOM:
            return DiskFull(f"{self._path}: the disk is full ({name}), nothing was written; make room and try again")
        if primary in _NOT_A_LEDGER:
            return Unreadable(f"{self._path}: not a database, or damaged ({name}); restore it from a backup")
        if primary == sqlite3.SQLITE_BUSY:
            return LedgerError(f"{self._path}: another process has kept it locked for {BUSY_SECONDS} seconds")
        return LedgerError(f"{self._path}: cannot be used ({name}: {error}); check the disk and who may write there")


def _create(path: Path) -> None:
    """Create the file for its owner alone, as it holds secrets; SQLite gives its side files the same mode."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise LedgerError(f"{path}: cannot be opened: {error.strerror}") from None
