"""Streams of published files, and of new tables of any length drawn from a run's published model.

It does not know HTTP, or how runs are published (`curator.results.publication`).
"""

import tempfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from crypto.randomness import KEY_BYTES, Stream
from curator.results.csv_files import csv_pieces, of_one_row
from curator.results.publication import TABLE, load_knowledge, synthetic_labels
from protocol.plan.terms import Terms
from protocol.run.synthesis import published_terms
from protocol.tables.schema import Schema

MOST_PARQUET_ROWS = 20_000_000
_CHUNK = 1 << 20


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
    yield from csv_pieces(of_one_row(terms.schema.names))
    for columns in synthetic_labels(terms, load_knowledge(folder, terms), rows, stream.take(KEY_BYTES)):
        yield from csv_pieces(columns)


def published_parquet(folder: Path, terms: Terms) -> Iterator[bytes]:
    from curator.results.typed_tables import csv_batches  # only who asks for Parquet waits for its library

    yield from _parquet(folder, terms, csv_batches(folder / TABLE, _schema(folder, terms)))


def fresh_parquet(folder: Path, terms: Terms, rows: int, stream: Stream) -> Iterator[bytes]:
    """Yield a new table as Parquet. The whole table is never in memory."""
    from curator.results.typed_tables import text_batches

    drawn = synthetic_labels(terms, load_knowledge(folder, terms), rows, stream.take(KEY_BYTES))
    yield from _parquet(folder, terms, text_batches(drawn))


def _parquet(folder: Path, terms: Terms, batches: Iterator[Any]) -> Iterator[bytes]:
    """Write Parquet to a file that is deleted afterwards: its index is at the end, so it cannot be streamed."""
    from curator.results.typed_tables import write_parquet

    with tempfile.TemporaryDirectory(prefix="subn-", dir=folder) as scratch:
        target = Path(scratch) / "table.parquet"
        write_parquet(target, _schema(folder, terms), batches)
        yield from published_chunks(target)


def _schema(folder: Path, terms: Terms) -> Schema:
    return published_terms(terms, load_knowledge(folder, terms)).schema if terms.plan.edges else terms.schema
