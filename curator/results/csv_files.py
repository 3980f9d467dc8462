"""Tables on disk: CSV, plain or gzipped.

It does not know schemas: it reads and writes text.
"""

import csv
import gzip
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from itertools import chain
from pathlib import Path
from typing import Any

from curator.files import PUBLIC, whole_file
from protocol.errors import DataError
from protocol.services.delimited import Decimal, Given, dialect_of
from protocol.services.delimited_rows import CHUNK, UNREADABLE, DelimitedRows
from protocol.tables.batches import Batch, Row
from protocol.tables.spreadsheets import as_text


@dataclass(frozen=True)
class OpenedTable:
    header: Row
    batches: Iterator[Batch]
    decimal: Decimal

    def rows(self) -> Iterator[Row]:
        """Yield the rows one by one, with those columns that are read."""
        return chain.from_iterable(batch.in_rows() for batch in self.batches)


@contextmanager
def opened_table(
    path: Path, columns: Collection[str] = (), numbers: Collection[str] = (), wanted: Collection[str] | None = None
) -> Iterator[OpenedTable]:
    """Open a file of delimited text, to read the `wanted` columns (None: all).

    How it is written is found out by the columns that it should have.
    """
    try:
        dialect = dialect_of(str(path), _chunks(path), Given(), columns, numbers)
        rows = DelimitedRows(str(path), _chunks(path), dialect, wanted)
        if not rows.header:
            raise DataError(f"{path}: the file is empty; a header row with the columns' names is expected")
        yield OpenedTable(rows.header, rows.batches(), dialect.decimal)
    except UNREADABLE as error:
        raise DataError(f"{path}: not a readable CSV file ({type(error).__name__})") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None


def _chunks(path: Path) -> Iterator[bytes]:
    opening: Any = gzip.open if path.suffix == ".gz" else open
    with opening(path, "rb") as file:
        while chunk := file.read(CHUNK):
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
