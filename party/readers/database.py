"""Columns of a database's query, as text.

It does not know what the columns mean. Privacy: no message holds the URL's password, or a value that a driver quotes.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import chain
from typing import Any, cast

from sqlalchemy import Connection, NullPool, create_engine
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from party.readers.table import Table
from party.readers.typed import Speller, typed_batches
from protocol.errors import DataError
from protocol.tables.batches import BATCH


def without_password(source: str) -> str:
    """The database's URL as messages show it."""
    return _url(source).render_as_string(hide_password=True)


@contextmanager
def database_table(
    source: str, query: str, wanted: Collection[str] | None, spelling: Callable[[str], Speller]
) -> Iterator[Table]:
    """Open the query, to read the wanted columns (None: all). Its rows are streamed."""
    url = _url(source)
    try:
        engine = create_engine(url, poolclass=NullPool)
        with engine.connect() as connection, _copied(connection, query, wanted, spelling) as copied:
            if copied is not None:
                yield copied
            else:
                with _fetched(connection, query, spelling) as table:
                    yield table
    except ImportError as error:
        shown = url.render_as_string(hide_password=True)
        raise DataError(
            f"{shown}: the Python package {error.name!r} for this database is not installed: install it beside dp-subn"
        ) from None
    except SQLAlchemyError as error:
        code = getattr(getattr(error, "orig", None), "sqlstate", None) or ""
        what = " ".join(filter(None, (type(error).__name__, code)))
        shown = url.render_as_string(hide_password=True)
        raise DataError(f"{shown}: the query gives no rows ({what}); try it with the database's own tool") from None


def _copied(
    connection: Connection, query: str, wanted: Collection[str] | None, spelling: Callable[[str], Speller]
) -> AbstractContextManager[Table | None]:
    """The query's columns, where the database sends whole columns."""
    if connection.dialect.driver != "psycopg":
        return nullcontext()
    from party.readers.postgres import copied_table  # imports the driver

    return copied_table(cast(Any, connection.connection.driver_connection), query, wanted, spelling)


@contextmanager
def _fetched(connection: Connection, query: str, spelling: Callable[[str], Speller]) -> Iterator[Table]:
    # The driver gets the query unchanged: a % or : in the query is not a parameter.
    streaming = connection.execution_options(stream_results=True, max_row_buffer=BATCH, no_parameters=True)
    with streaming.exec_driver_sql(query) as result:
        names = list(result.keys())
        rows: Iterator[Sequence[object]] = chain.from_iterable(result.partitions(BATCH))
        yield Table(names, typed_batches(rows, [spelling(name) for name in names]))


def _url(source: str) -> URL:
    try:
        return make_url(source)
    except ArgumentError:
        raise DataError("the source is not a database URL; expected dialect://user:password@host/database") from None
