"""Columns of a Parquet file, as text.

It does not know what the columns mean. pyarrow reads the file in batches, and finds each distinct value of a column
once. The text of a value is the one that duckdb gives it, whatever reads the file; columns of a type that both might
understand differently (such as moments with a time zone, or lists) are read by duckdb, row by row.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet

from party.readers.table import Done, Table
from party.readers.typed import Speller
from protocol.errors import DataError
from protocol.tables.batches import BATCH, Batch, Column, Row, batched

_TYPED = ("DATE", "TIMESTAMP", "BOOLEAN")  # a schema says how these are written
_ALIKE: Mapping[str, Any] = {  # types of duckdb and of pyarrow that hold the same values
    "VARCHAR": pa.string(),
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "UTINYINT": pa.uint8(),
    "USMALLINT": pa.uint16(),
    "UINTEGER": pa.uint32(),
    "UBIGINT": pa.uint64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
}
CELLS = 1 << 22  # of a batch; each takes a few bytes
_BUFFER = 1 << 20  # bytes of a column that are read at once, so that no group of rows is held whole

Connection = duckdb.DuckDBPyConnection


@contextmanager
def parquet_table(path: Path, wanted: set[str] | None, spelling: Callable[[str], Speller]) -> Iterator[Table]:
    """Open a file, to read the wanted columns (None: all). All other columns stay in the file."""
    if any(character in str(path) for character in "*?["):
        raise DataError(f"{path}: a Parquet file's path must not contain *, ? or [; rename it")
    if not path.is_file():
        raise DataError(f"{path}: cannot be read: there is no such file")
    try:
        with duckdb.connect() as connection:
            connection.execute("SET autoinstall_known_extensions = false")  # nothing is ever downloaded
            connection.execute("SET enable_progress_bar = false")  # commands print JSON
            described = connection.execute("DESCRIBE SELECT * FROM read_parquet(?)", [str(path)]).fetchall()
            types = {name: str(kind) for name, kind, *_ in described if wanted is None or name in wanted}
            spellers = {name: spelling(name) for name in types}
            file = file_by_columns(path, types)
            if file is None:
                yield Table([*types], batched(_rows(connection, path, types, spellers), len(types)))
            else:
                read = Done(file.metadata.num_rows)
                yield Table([*types], _batches(connection, file, types, spellers, read), part=read.part)
    except (duckdb.Error, pa.ArrowException, UnicodeDecodeError, OSError) as error:
        raise DataError(f"{path}: not a readable Parquet file ({type(error).__name__})") from None


# By columns


def file_by_columns(path: Path, types: Mapping[str, str]) -> Any:
    """Open the file for pyarrow, or return None if it may not understand a column as duckdb does."""
    schema = pyarrow.parquet.read_schema(path)
    for name, kind in types.items():
        places = schema.get_all_field_indices(name)
        if len(places) != 1 or not _is_alike(kind, schema.field(places[0]).type):
            return None
    texts = [name for name, kind in types.items() if kind == "VARCHAR"]
    return pyarrow.parquet.ParquetFile(path, read_dictionary=texts, buffer_size=_BUFFER, pre_buffer=False)


def _is_alike(kind: str, found: Any) -> bool:
    value = found.value_type if pa.types.is_dictionary(found) else found
    if pa.types.is_decimal128(value):
        return kind == f"DECIMAL({value.precision},{value.scale})"
    return bool(_ALIKE.get(kind) == (pa.string() if pa.types.is_large_string(value) else value))


def _batches(
    connection: Connection, file: Any, types: Mapping[str, str], spellers: Mapping[str, Speller], read: Done
) -> Iterator[Batch]:
    for batch in file.iter_batches(_rows_of_batch(len(types)), columns=[*types], use_threads=False):
        columns = {
            place: _column(connection, batch.column(name), _is_typed(kind), spellers[name])
            for place, (name, kind) in enumerate(types.items())
        }
        read.done += batch.num_rows
        yield Batch(batch.num_rows, columns)


def _rows_of_batch(columns: int) -> int:
    return max(1, CELLS // max(columns, 1))


def _column(connection: Connection, values: Any, is_typed: bool, spell: Speller) -> Column:
    if pa.types.is_dictionary(values.type) and len(values.dictionary) > len(values):
        values = values.dictionary_decode()  # most of these values are not of this batch
    found = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
    texts = found.dictionary.to_pylist() if is_typed else _texts(connection, found.dictionary)
    if is_typed or found.dictionary.null_count:
        texts = [*map(spell, texts)]
    if not found.null_count:
        return Column(texts, found.indices.to_numpy(zero_copy_only=False))
    return Column([*texts, spell(None)], found.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False))


def _texts(connection: Connection, values: Any) -> list[Any]:
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        return list(values.to_pylist())
    if pa.types.is_integer(values.type) and not values.null_count:
        return [*map(str, values.to_pylist())]
    connection.register("found", pa.table({"value": values}))
    return [text for (text,) in connection.execute("SELECT CAST(value AS VARCHAR) FROM found").fetchall()]


# By rows


def _rows(
    connection: Connection, path: Path, types: Mapping[str, str], spellers: Mapping[str, Speller]
) -> Iterator[Row]:
    texts = ", ".join(
        _identifier(name) if _is_typed(kind) else f"coalesce(CAST({_identifier(name)} AS VARCHAR), ?)"
        for name, kind in types.items()
    )
    nothing = [spellers[name](None) for name, kind in types.items() if not _is_typed(kind)]
    connection.execute(f"SELECT {texts} FROM read_parquet(?)", [*nothing, str(path)])  # noqa: S608 - quoted
    typed = [(place, spellers[name]) for place, (name, kind) in enumerate(types.items()) if _is_typed(kind)]
    while batch := connection.fetchmany(BATCH):
        yield from _spelled(batch, typed) if typed else batch


def _is_typed(kind: str) -> bool:
    return kind.startswith(_TYPED)


def _spelled(rows: Sequence[Sequence[object]], typed: Sequence[tuple[int, Speller]]) -> Iterator[Row]:
    for row in rows:
        texts: list[Any] = list(row)  # texts but for the typed columns
        for place, spell in typed:
            texts[place] = spell(row[place])
        yield texts


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
