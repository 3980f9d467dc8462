"""The store: every read and every change of the curator's data happens in one of its transactions.

It does not know what is stored (`curator.store.run_records`, `curator.accounts.registry`).
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TypeVar

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, NoSuchModuleError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from curator.errors import CuratorError, SettingsError, StoreUnavailable
from curator.store.migrations import migrate
from curator.store.single_writer import SoleCurator
from curator.store.tables import BUSY_SECONDS, WRITING, make_engine
from curator.store.turns import Queued, Turns

Result = TypeVar("Result")

_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_ERROR")  # the last: a table that is not there
_NOT_OURS = ("42P01", "42703", "XX001", "XX002")  # PostgreSQL: no such table or column, damaged data or index


class Store:
    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        # One thread writes at a time: SQLite would make the others try again, at ever longer intervals.
        self.turns = Turns(BUSY_SECONDS) if engine.dialect.name == "sqlite" else None
        self._sole: SoleCurator | None = None  # set in a service; other commands only add keys and codes

    @classmethod
    def open(cls, url: str) -> "Store":
        """Open the database at `url`, and bring its tables to this version."""
        try:
            store = cls(make_engine(url))
        except (ArgumentError, NoSuchModuleError, ModuleNotFoundError) as error:
            raise SettingsError(_unusable(error)) from None
        try:
            with _translated():
                migrate(store.engine)
        except CuratorError:
            store.close()
            raise
        return store

    def serve_alone(self, token: str) -> None:
        """Claim this database for this process. This store writes nothing if another process serves it later."""
        sole = SoleCurator(self.engine, token)
        with _translated():
            sole.take()
        self._sole = sole

    def check_alone(self) -> None:
        """Raise Displaced if another process serves this database now, StoreUnavailable if this is not known."""
        if self._sole is not None:
            with _translated():
                self._sole.check()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with _translated(), self.engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Open a transaction: at its end everything written in it is stored, or nothing."""
        with nullcontext() if self.turns is None else self.turns.own(), self._transaction() as db:
            yield db

    def write(self, change: Callable[[Connection], Result]) -> Result:
        """Carry out a small change in a transaction, together with other such changes that wait: one sync for all.

        Any of their threads may call `change`. It is stored when this returns. If it fails, it alone is undone; if the
        transaction fails, none is stored, and each of them raises.
        """
        if self.turns is None:  # PostgreSQL does the same by itself
            with self.writing() as db:
                return change(db)
        found: Result = self.turns.shared(change, self._carry_out)
        return found

    def _carry_out(self, changes: Sequence[Queued]) -> None:
        with self._transaction() as db:
            if len(changes) == 1:
                changes[0].result = changes[0].what(db)
            else:
                for one in changes:
                    _try(one, db)

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        with (
            _translated(),
            self.engine.connect().execution_options(**{WRITING: True}) as connection,
            connection.begin(),
        ):
            if self._sole is not None:
                self._sole.confirm(connection)
            yield connection

    def check(self) -> None:
        """Raise `StoreUnavailable` unless the store answers."""
        with self.reading() as db:
            db.execute(text("SELECT 1"))

    def close(self) -> None:
        if self._sole is not None:
            self._sole.release()
        self.engine.dispose()


def _try(one: Queued, db: Connection) -> None:
    """Carry out a change among others, and undo it alone if it contradicts what is stored, or refuses.

    Retry safety: after any other error of the database, as on a full disk, SQLite has undone all changes, so that this
    one cannot be undone alone. The error then ends the whole transaction, and nothing is committed.
    """
    change = db.begin_nested()
    try:
        one.result = one.what(db)
    except (IntegrityError, CuratorError) as error:
        change.rollback()
        one.error = error
    else:
        change.commit()


def _unusable(error: Exception) -> str:
    """Say why the database URL cannot be used. Privacy: it may hold a password, and is not repeated."""
    if isinstance(error, ModuleNotFoundError) and error.name == "psycopg":
        return (
            "the database is PostgreSQL, and the Python package psycopg is not installed: install dp-subn with its "
            "extra `postgres` (requirements.lock and the container image have it)"
        )
    return (
        f"the database URL names no SQLite or PostgreSQL database ({type(error).__name__}): expected "
        "postgresql://NAME:PASSWORD@HOST/DATABASE"
    )


@contextmanager
def _translated() -> Iterator[None]:
    """Turn database errors into StoreUnavailable, except conflicts with stored rows, which the caller handles."""
    try:
        yield
    except IntegrityError:
        raise
    except (DBAPIError, PoolTimeout) as error:
        cause = error.orig if isinstance(error, DBAPIError) else error
        raise StoreUnavailable(f"{_trouble(cause)} ({type(cause).__name__}: {cause}); {_remedy(cause)}") from error


def _trouble(cause: BaseException | None) -> str:
    if _is_damaged(cause):
        return "the curator's database is damaged, or is not the one that this program made"
    return "the curator's database does not answer or takes nothing more"


def _remedy(cause: BaseException | None) -> str:
    if _is_damaged(cause):
        return (
            "stop the curator, keep a copy of its files, and restore the newest backup (`subn-curator restore`): what "
            "was stored since then is lost here, and the parties' own ledgers keep what they spent"
        )
    return "what was confirmed is stored: check its disk and connection, then try again"


def _is_damaged(cause: BaseException | None) -> bool:
    """Whether the database answers that its contents are not those of a curator."""
    if isinstance(cause, sqlite3.Error):
        return getattr(cause, "sqlite_errorname", "").startswith(_DAMAGED)
    return getattr(cause, "sqlstate", None) in _NOT_OURS
