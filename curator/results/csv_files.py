"""Tables on disk: CSV, plain or gzipped.

It does not know schemas: it reads and writes text.
"""

import csv
import gzip
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from curator.files import PUBLIC, whole_file
from protocol.errors import DataError
from protocol.services.delimited import Decimal, Given, bounded_lines, dialect_of
from protocol.tables.spreadsheets import as_text

_CHUNK = 1 << 20


@dataclass(frozen=True)
class OpenedTable:
    header: list[str]
    rows: Iterator[list[str]]
    decimal: Decimal


@contextmanager
def opened_table(path: Path, columns: Collection[str] = (), numbers: Collection[str] = ()) -> Iterator[OpenedTable]:
    """Open a file of delimited text. How it is written is found out by the columns that it should have."""
    opening: Any = gzip.open if path.suffix == ".gz" else open
    try:
        dialect = dialect_of(str(path), _chunks(opening, path), Given(), columns, numbers)
        with opening(path, "rt", encoding=dialect.codec, newline="") as file:
            reader = dialect.reader(bounded_lines(str(path), file))
            header = next(filter(None, reader), None)
            if header is None:
                raise DataError(f"{path}: the file is empty; a header row with the columns' names is expected")
            yield OpenedTable(header, filter(None, reader) if len(header) > 1 else reader, dialect.decimal)
    except (UnicodeDecodeError, csv.Error, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise DataError(f"{path}: not a readable CSV file ({type(error).__name__})") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None


def _chunks(opening: Any, path: Path) -> Iterator[bytes]:
    with opening(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            yield chunk


def write_for_spreadsheets(source: Path, target: Path) -> None:
    """Copy a published table so that a spreadsheet computes nothing: cells like formulas get an apostrophe."""
    with source.open(encoding="utf-8", newline="") as table, whole_file(target, PUBLIC) as output:
        file = TextIOWrapper(output, encoding="utf-8", newline="")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([as_text(cell) for cell in row] for row in csv.reader(table))
        file.detach()  # also writes out the buffered text


def write_table(path: Path, header: Sequence[str], batches: Iterable[Sequence[Sequence[str]]]) -> None:
    """Write a table from batches of columns. The file appears whole or not at all."""
    with whole_file(path, PUBLIC) as output:
        file = TextIOWrapper(output, encoding="utf-8", newline="")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        for columns in batches:
            writer.writerows(zip(*columns, strict=True))
        file.detach()  # also writes out the buffered text
