"""Rows of a database's query, as text.

It does not know what the columns mean. Privacy: no message holds the URL's password, or a value that a driver quotes.
"""

from collections.abc import Callable, Generator, Sequence

from sqlalchemy import NullPool, create_engine
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from party.readers.typed import Speller
from protocol.errors import DataError
from protocol.tables.batches import BATCH


def without_password(source: str) -> str:
    """The database's URL as messages show it."""
    return _url(source).render_as_string(hide_password=True)


def database_rows(source: str, query: str, spelling: Callable[[str], Speller]) -> Generator[Sequence[str], None, None]:
    """The names of the columns, then every row."""
    url = _url(source)
    try:
        engine = create_engine(url, poolclass=NullPool)
        with engine.connect() as connection:
            # The driver gets the query unchanged: a % or : in the query is not a parameter.
            streaming = connection.execution_options(stream_results=True, max_row_buffer=BATCH, no_parameters=True)
            with streaming.exec_driver_sql(query) as result:
                names = list(result.keys())
                yield names
                spellers = [spelling(name) for name in names]
                for batch in result.partitions(BATCH):
                    for row in batch:
                        yield [spell(value) for spell, value in zip(spellers, row, strict=True)]
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


def _url(source: str) -> URL:
    try:
        return make_url(source)
    except ArgumentError:
        raise DataError("the source is not a database URL; expected dialect://user:password@host/database") from None
