"""Columns of a query of PostgreSQL, as text: `COPY` sends them as CSV, which is split by columns.

It does not know what the columns mean. Each distinct text of a column goes through the driver's own loader, so that a
value has the text that it has when its row is fetched. `COPY` in binary form would be decoded value by value instead,
which takes longer.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import psycopg
from psycopg.adapt import Transformer
from psycopg.pq import ExecStatus, Format
from sqlalchemy.exc import DBAPIError

from crypto.randomness import Stream
from party.readers.table import Table
from party.readers.typed import Speller
from protocol.errors import DataError
from protocol.services.delimited import Dialect
from protocol.services.delimited_rows import CHUNK, UNREADABLE, DelimitedRows
from protocol.tables.batches import Batch, Column

_NOT_COPIED = ("42", "0A")  # classes of errors with which PostgreSQL rejects a statement
_WRITTEN_ALIKE = ("int2", "int4", "int8", "text", "varchar")  # types that are written as their loaded values are
_DIALECT = Dialect(codec="utf-8")

Connection = psycopg.Connection[tuple[object, ...]]
Respell = Callable[[str], str]


@contextmanager
def copied_table(
    connection: Connection, query: str, wanted: Collection[str] | None, spelling: Callable[[str], Speller]
) -> Iterator[Table | None]:
    """Open the query, to read the wanted columns (None: all); None if its rows have to be fetched one by one.

    That is so for a single column, of which a row may be an empty line, and where the connection's encoding is not that
    of the texts.
    """
    types = _types(connection, query)
    nothing = Stream.system().take(16).hex()  # the text of a value that is not there: no value can be meant to have it
    try:
        with ExitStack() as opened:
            copying = None
            if len(types) > 1 and connection.info.encoding == "utf-8":
                cursor = opened.enter_context(connection.cursor())
                try:
                    copying = opened.enter_context(cursor.copy(_statement(query, nothing)))
                except psycopg.Error as error:
                    if not (error.sqlstate or "").startswith(_NOT_COPIED):
                        raise
                    connection.rollback()
            yield None if copying is None else _table(connection, copying, types, nothing, wanted, spelling)
    except psycopg.Error as error:
        raise DBAPIError(None, None, error) from None


def _types(connection: Connection, query: str) -> list[int]:
    """The types of the query's columns, by number; none if PostgreSQL cannot prepare it."""
    if connection.pgconn.prepare(b"", query.encode()).status != ExecStatus.COMMAND_OK:
        return []
    found = connection.pgconn.describe_prepared(b"")
    return [found.ftype(place) for place in range(found.nfields)]


def _statement(query: str, nothing: str) -> bytes:
    inner = query.rstrip().rstrip(";")
    return f"COPY ({inner}\n) TO STDOUT (FORMAT csv, HEADER, NULL '{nothing}', ENCODING 'UTF8')".encode()


def _table(
    connection: Connection,
    copying: psycopg.Copy,
    types: Sequence[int],
    nothing: str,
    wanted: Collection[str] | None,
    spelling: Callable[[str], Speller],
) -> Table:
    rows = DelimitedRows("the query", _chunks(copying), _DIALECT, wanted)
    respell = [
        _respelling(connection, kind, nothing, spelling(name)) for name, kind in zip(rows.header, types, strict=True)
    ]
    return Table(rows.header, _batches(rows, respell))


def _chunks(copying: psycopg.Copy) -> Iterator[bytes]:
    parts: list[bytes] = []
    size = 0
    for row in copying:
        parts.append(bytes(row))
        size += len(row)
        if size >= CHUNK:
            yield b"".join(parts)
            parts, size = [], 0
    yield b"".join(parts)


def _respelling(connection: Connection, kind: int, nothing: str, spell: Speller) -> Respell:
    """Make the function that writes a text of `COPY` as the column's attribute reads it."""
    absent = spell(None)
    if kind in {connection.adapters.types.get_oid(name) for name in _WRITTEN_ALIKE}:
        return lambda text: absent if text == nothing else text
    loader = Transformer(connection).get_loader(kind, Format.TEXT)

    def respell(text: str) -> str:
        return absent if text == nothing else spell(loader.load(text.encode()))

    return respell


def _batches(rows: DelimitedRows, respell: Sequence[Respell]) -> Iterator[Batch]:
    try:
        for batch in rows.batches():
            columns = batch.columns.items()
            yield replace(batch, columns={place: _respelled(column, respell[place]) for place, column in columns})
    except UNREADABLE as error:
        raise DataError(
            f"the query gives a row that cannot be read ({type(error).__name__}); select fewer columns"
        ) from None


def _respelled(column: Column, respell: Respell) -> Column:
    return Column([*map(respell, column.texts)], column.places)
