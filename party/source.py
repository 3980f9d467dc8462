"""Sources of a party's rows: CSV (also gzipped), Parquet, or a database, read in batches into columns of codes.

It does not know runs or the ledger.

Privacy: a message about a row names the row's number, the column and the class of the value, and stays with the data
owner. Messages of drivers and parsers may quote values, so only the class of such an error is repeated.
"""

import csv
import gzip
import zlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from party.home.settings import Dataset
from protocol.errors import DataError
from protocol.tables.attributes import quoted
from protocol.tables.coding import Coder, Problem, gather
from protocol.tables.domain import Codes
from protocol.tables.schema import Schema

Row = Sequence[str]
Rows = Generator[Row, None, None]  # the header comes first

TWICE = "a person who has a row already"
UNNAMED = "a row without its person's key"


@dataclass(frozen=True)
class Findings:
    """The findings of `subn-party check`, shown to the data owner and to nobody else."""

    rows: int
    problems: tuple[Problem, ...]


def load(folder: Path, dataset: Dataset, schema: Schema) -> list[Codes]:
    """Read one column of codes per attribute; raise DataError at the first value that no rule covers."""
    coder = Coder(schema, dataset.out_of_range, _called(folder, dataset))
    with _opened(folder, dataset, schema) as (header, rows):
        coder.columns(header)
        keys = _Keys(header, dataset, _called(folder, dataset))
        codes = gather(schema, coder.batches(keys.noting(rows)))
    if (row := keys.first_bad()) is not None:
        number, what = row
        raise DataError(f"{_called(folder, dataset)}, row {number}, column {quoted(keys.column)}: {what}; correct it")
    if not len(codes[0]):
        raise DataError(f"{_called(folder, dataset)}: the source has no rows; a party needs at least one row")
    return codes


def check(folder: Path, dataset: Dataset, schema: Schema) -> Findings:
    """Count the values that the schema does not cover, by column and class, before any rule of the settings applies."""
    coder = Coder(schema, dataset.out_of_range, _called(folder, dataset))
    with _opened(folder, dataset, schema) as (header, rows):
        coder.columns(header)
        keys = _Keys(header, dataset, _called(folder, dataset))
        counted = _Counted(keys.noting(rows))
        problems = coder.problems(counted)
    return Findings(counted.count, (*keys.problems(), *problems))


class _Counted:
    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows, self.count = rows, 0

    def __iter__(self) -> Iterator[Row]:
        for self.count, row in enumerate(self._rows, start=1):  # noqa: B020
            yield row


class _Keys:
    """The person keys of all rows, kept as 128-bit hashes, which suffice to find repeated keys."""

    def __init__(self, header: Row, dataset: Dataset, source: str) -> None:
        self.column = dataset.person_key or ""
        if dataset.person_key is not None and list(header).count(self.column) != 1:
            raise DataError(f"{source}: the person key {quoted(self.column)} names no single column; correct its name")
        self._place = None if dataset.person_key is None else list(header).index(self.column)
        self._hashes = bytearray()
        self._empty: list[int] = []

    def noting(self, rows: Iterable[Row]) -> Iterable[Row]:
        return rows if self._place is None else self._noted(rows, self._place)

    def _noted(self, rows: Iterable[Row], place: int) -> Iterator[Row]:
        for number, row in enumerate(rows, start=1):
            key = row[place] if place < len(row) else ""
            if not key:
                self._empty.append(number)
            # A row without a key gets a key of its own (its number), so that two such rows do not count as one person.
            self._hashes += blake2b((key or f"\0{number}").encode(), digest_size=16).digest()
            yield row

    def first_bad(self) -> tuple[int, str] | None:
        found = [(int(row) + 1, TWICE) for row in self._repeated()] + [(row, UNNAMED) for row in self._empty]
        return min(found, default=None)

    def problems(self) -> list[Problem]:
        found = [Problem(self.column, TWICE, len(self._repeated())), Problem(self.column, UNNAMED, len(self._empty))]
        return [problem for problem in found if problem.count]

    def _repeated(self) -> NDArray[np.intp]:
        """The rows whose key occurs in an earlier row."""
        hashes = np.frombuffer(bytes(self._hashes), dtype="V16")
        _, first = np.unique(hashes, return_index=True)
        again = np.ones(hashes.size, dtype=np.bool_)
        again[first] = False
        return np.flatnonzero(again)


@contextmanager
def _opened(folder: Path, dataset: Dataset, schema: Schema) -> Iterator[tuple[Row, Rows]]:
    """The header and the rows, as text. Readers of Parquet and databases are imported only when needed."""
    wanted = {*schema.names, *([dataset.person_key] if dataset.person_key else [])}
    if dataset.is_database:
        from party.readers.database import database_rows

        reader = database_rows(dataset.source, str(dataset.query))
    elif dataset.source.endswith(".parquet"):
        from party.readers.parquet import parquet_rows

        reader = parquet_rows(folder / dataset.source, wanted)
    else:
        reader = _csv_rows(folder / dataset.source)
    with closing(reader) as rows:
        yield next(rows), rows


def _called(folder: Path, dataset: Dataset) -> str:
    """The source as messages name it, without a password."""
    if not dataset.is_database:
        return str(folder / dataset.source)
    from party.readers.database import without_password

    return without_password(dataset.source)


# CSV


def _csv_rows(path: Path) -> Rows:
    opening = gzip.open if path.suffix == ".gz" else open
    try:
        with opening(path, "rt", encoding="utf-8-sig", newline="") as file:
            yield from _parsed(path, file)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None


def _parsed(path: Path, file: Iterable[str]) -> Rows:
    reader = csv.reader(file, strict=True)
    try:
        header = next(reader, None)
        if not header:
            raise DataError(f"{path}: the file is empty; a header row with the columns' names is expected")
        yield header
        yield from reader
    except (UnicodeDecodeError, csv.Error, gzip.BadGzipFile, zlib.error, EOFError) as error:
        where = f"{type(error).__name__} at line {max(1, reader.line_num)} or soon after"
        raise DataError(f"{path}: not a readable CSV file in UTF-8 ({where}); correct the file") from None
