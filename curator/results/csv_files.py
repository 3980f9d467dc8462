"""Tables on disk: CSV, plain or gzipped.

It does not know schemas: it reads and writes text.
"""

import csv
import gzip
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from itertools import chain
from pathlib import Path
from typing import TextIO

from curator.files import PUBLIC, whole_file
from protocol.errors import DataError
from protocol.tables.spreadsheets import as_text


@contextmanager
def opened_table(path: Path) -> Iterator[tuple[list[str], Iterator[list[str]]]]:
    """Open a CSV file and return its header and its rows."""
    try:
        with _open_text(path) as file:
            reader = csv.reader(file, strict=True)
            header = next(reader, None)
            if not header:
                raise DataError(f"{path}: the file is empty; a header row with the columns' names is expected")
            yield header, reader
    except (UnicodeDecodeError, csv.Error, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise DataError(f"{path}: not a readable CSV file in UTF-8 ({type(error).__name__})") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None


def _open_text(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def write_for_spreadsheets(source: Path, target: Path) -> None:
    """Copy a table so that a spreadsheet computes nothing: cells that begin like a formula get an apostrophe."""
    with opened_table(source) as (header, rows), whole_file(target, PUBLIC) as output:
        file = TextIOWrapper(output, encoding="utf-8", newline="")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([as_text(cell) for cell in row] for row in chain([header], rows))
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
