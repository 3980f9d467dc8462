"""Streams of published files, and of new tables of any length drawn from a run's published model.

It does not know HTTP, or how runs are published (`curator.results.publication`).
"""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from crypto.randomness import KEY_BYTES, Stream
from curator.results.csv_files import csv_pieces, of_one_row
from curator.results.publication import TABLE, load_knowledge, synthetic_labels
from protocol.plan.terms import Terms
from protocol.run.synthesis import published_terms
from protocol.tables.schema import Schema

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
    drawn = synthetic_labels(terms, load_knowledge(folder, terms), rows, stream.take(KEY_BYTES))
    yield from csv_pieces(chain([of_one_row(terms.schema.names)], drawn))


def published_parquet(folder: Path, terms: Terms) -> Iterator[bytes]:
    from curator.results.typed_tables import csv_batches, parquet_pieces  # only who asks for Parquet waits for it

    schema = _schema(folder, terms)
    yield from parquet_pieces(schema, csv_batches(folder / TABLE, schema))


def fresh_parquet(folder: Path, terms: Terms, rows: int, stream: Stream) -> Iterator[bytes]:
    """Yield a new table as Parquet, part by part. The whole table is never in memory or on disk."""
    from curator.results.typed_tables import parquet_pieces, text_batches

    drawn = synthetic_labels(terms, load_knowledge(folder, terms), rows, stream.take(KEY_BYTES))
    yield from parquet_pieces(_schema(folder, terms), text_batches(drawn))


def _schema(folder: Path, terms: Terms) -> Schema:
    return published_terms(terms, load_knowledge(folder, terms)).schema if terms.plan.edges else terms.schema
