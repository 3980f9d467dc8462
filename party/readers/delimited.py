"""Rows of a file of delimited text, plain or gzipped, in any usual encoding.

It does not know what the columns mean, or how the way of writing is found out (`protocol.services.delimited`).
"""

import gzip
import zlib
from array import array
from collections.abc import Collection, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from party.readers.table import Done, Table
from protocol.errors import DataError
from protocol.services.delimited import ENCODINGS, Dialect, Given, bounded_lines, dialect_of
from protocol.services.delimited_rows import CHUNK, UNREADABLE, DelimitedRows
from protocol.tables.batches import Batch, Row


@contextmanager
def delimited_table(
    path: Path, given: Given, columns: Collection[str] = (), numbers: Collection[str] | None = None
) -> Iterator[Table]:
    """Open a file whose header should name these columns; `numbers` are those that hold numbers.

    Without `numbers` nothing is known of the file: any column may hold numbers, and all of them are read.
    """
    with _named_errors(path):
        dialect = dialect_of(str(path), _chunks(path), given, columns, numbers)
        read = Done(path.stat().st_size)
        rows = DelimitedRows(str(path), _chunks(path, read), dialect, None if numbers is None else columns)
        with _named_line(path, dialect, rows):
            header = rows.header
        if not header:
            raise DataError(f"{path}: the file is empty; a header row with the columns' names is expected")
        batches, places = _guarded(path, dialect, rows), _places(path, dialect)
        yield Table(header, batches, dialect.decimal, dialect.in_words(), places, read.part)


def _guarded(path: Path, dialect: Dialect, rows: DelimitedRows) -> Iterator[Batch]:
    with _named_line(path, dialect, rows):
        yield from rows.batches()


@contextmanager
def _named_line(path: Path, dialect: Dialect, rows: DelimitedRows) -> Iterator[None]:
    """Name a row that cannot be read by its line alone."""
    try:
        yield
    except UNREADABLE as error:
        where = f"{type(error).__name__} at line {max(1, rows.line)} or soon after"
        raise DataError(
            f"{path}: not a readable CSV file in {ENCODINGS[dialect.encoding]} ({where}); correct the file, or say in "
            "party.toml how it is written (encoding, delimiter, quote)"
        ) from None


@contextmanager
def _named_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise DataError(f"{path}: not a readable gzipped file ({type(error).__name__}); correct the file") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None


def _text_of(path: Path, raw: Any) -> Any:
    return gzip.open(raw) if path.suffix == ".gz" else nullcontext(raw)


def _chunks(path: Path, read: Done | None = None) -> Iterator[bytes]:
    with path.open("rb") as raw, _text_of(path, raw) as file:
        while chunk := file.read(CHUNK):
            if read is not None:
                read.done = raw.tell()
            yield chunk


def _places(path: Path, dialect: Dialect) -> Any:
    """Make the function that names the line at which a row begins. The lines are counted once a place is asked for."""
    opening: Any = gzip.open if path.suffix == ".gz" else open

    @lru_cache(maxsize=1)
    def lines() -> "array[int]":
        found, end = array("q"), 0
        # A row further down may be one that cannot be read. No place is asked for behind it.
        with suppress(*UNREADABLE), opening(path, "rt", encoding=dialect.codec, errors="replace", newline="") as file:
            reader = dialect.reader(bounded_lines(str(path), file))
            names: Row = next(filter(None, reader), [])
            end = reader.line_num
            for row in reader:
                if row or len(names) <= 1:
                    found.append(end + 1)
                end = reader.line_num
        return found

    return lambda number: f"line {lines()[number - 1]}"
