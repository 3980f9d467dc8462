"""Streams of published files, and of new tables of any length drawn from a run's published model.

It does not know HTTP, or how runs are published (`curator.results.publication`).
"""

import csv
import io
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

import duckdb

from crypto.randomness import KEY_BYTES, Stream
from curator.results.publication import TABLE, load_knowledge, synthetic_labels
from protocol.plan.terms import Terms
from protocol.tables.attributes import Attribute, Integer, Numeric

MOST_PARQUET_ROWS = 20_000_000
_CHUNK = 1 << 20
# One thread and little memory, so that other requests are not slowed down. Nothing is downloaded.
_SMALL: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,
    "memory_limit": "256MB",
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}


def started(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Draw the first chunk now, so that an early failure can still be answered with an error. Return all chunks."""
    first = next(chunks, b"")
    return chain([first], chunks)


def published_chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            yield chunk


def fresh_csv(folder: Path, terms: Terms, rows: int, stream: Stream) -> Iterator[bytes]:
    """Yield a new table as CSV, batch by batch. The whole table is never in memory or on disk."""
    yield _csv_text([terms.schema.names])
    for columns in synthetic_labels(terms, load_knowledge(folder, terms), rows, stream.take(KEY_BYTES)):
        yield _csv_text(zip(*columns, strict=True))


def published_parquet(folder: Path, terms: Terms) -> Iterator[bytes]:
    with _as_parquet(folder / TABLE, terms) as parquet:
        yield from published_chunks(parquet)


def fresh_parquet(folder: Path, terms: Terms, rows: int, stream: Stream) -> Iterator[bytes]:
    """Yield a new table as Parquet. Its index is at the end, so the table is written to files, deleted afterwards."""
    with tempfile.TemporaryDirectory(prefix="subn-", dir=folder) as scratch:
        source = Path(scratch) / TABLE
        with source.open("wb") as file:
            file.writelines(fresh_csv(folder, terms, rows, stream))
        yield from published_parquet(Path(scratch), terms)


@contextmanager
def _as_parquet(source: Path, terms: Terms) -> Iterator[Path]:
    schema = terms.schema
    texts = dict.fromkeys(schema.names, "VARCHAR")
    selected = ", ".join(map(_column, schema.attributes))
    reading = (
        f"SELECT {selected} FROM read_csv(?, header=true, auto_detect=false, delim=',', quote='\"', escape='\"', "  # noqa: S608
        "columns=?, force_not_null=?, parallel=false)"
    )
    with tempfile.TemporaryDirectory(prefix="subn-", dir=source.parent) as scratch:
        target = Path(scratch) / "table.parquet"
        with duckdb.connect(config=_SMALL) as database:
            table = database.sql(reading, params=[str(source), texts, list(schema.names)])
            table.write_parquet(str(target), compression="zstd")
        yield target


def _column(attribute: Attribute) -> str:
    """Select a column: numbers as numbers, missing numbers as NULL, categories as text."""
    name = '"' + attribute.name.replace('"', '""') + '"'
    if not isinstance(attribute, Numeric):
        return name
    kind = "BIGINT" if isinstance(attribute, Integer) else "DOUBLE"
    token = "'" + attribute.missing[0].replace("'", "''") + "'" if attribute.missing else "NULL"
    return f"CAST(nullif({name}, {token}) AS {kind}) AS {name}"


def _csv_text(rows: object) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)  # type: ignore[arg-type]
    return text.getvalue().encode()
