"""Sources of a party's rows: CSV (also gzipped), Excel, Parquet, or a database, read in batches as columns of codes.

It does not know runs or the ledger.

Privacy: a message about a row names the row's number, the column and the class of the value, and stays with the data
owner. Messages of drivers and parsers may quote values, so only the class of such an error is repeated.
"""

from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from party.home.settings import Dataset
from party.readers.delimited import delimited_table
from party.readers.table import Row, Table
from party.readers.typed import Speller, speller_of
from protocol.errors import DataError
from protocol.services.schema_profile import Profile
from protocol.tables.attributes import Numeric, quoted
from protocol.tables.coding import Cell, Coder, Problem, gather
from protocol.tables.domain import Codes
from protocol.tables.schema import Schema

TWICE = "a person who has a row already"
UNNAMED = "a row without its person's key"


@dataclass(frozen=True)
class Findings:
    """The findings of `subn-party check`, shown to the data owner and to nobody else."""

    rows: int
    problems: tuple[Problem, ...]
    how: str  # the way in which a file was read, in words


def load(folder: Path, dataset: Dataset, schema: Schema) -> list[Codes]:
    """Read one column of codes per attribute; raise DataError at the first value that no rule covers."""
    with _opened(folder, dataset, schema) as table:
        coder = _coder(folder, dataset, schema, table)
        keys = _Keys(table.header, dataset, _called(folder, dataset))
        codes = gather(schema, coder.batches(keys.noting(table.rows)))
        if (row := keys.first_bad()) is not None:
            number, what = row
            place = f"{_called(folder, dataset)}, {table.place(number)}, column {quoted(keys.column)}"
            raise DataError(f"{place}: {what}; correct it")
    if not len(codes[0]):
        raise DataError(f"{_called(folder, dataset)}: the source has no rows; a party needs at least one row")
    return codes


def check(folder: Path, dataset: Dataset, schema: Schema) -> Findings:
    """Count the values that the schema does not cover, by column and class, before any rule of the settings applies."""
    with _opened(folder, dataset, schema) as table:
        coder = _coder(folder, dataset, schema, table)
        keys = _Keys(table.header, dataset, _called(folder, dataset))
        counted = _Counted(keys.noting(table.rows))
        problems = coder.problems(counted)
    return Findings(counted.count, (*keys.problems(), *problems), table.how)


def offending(folder: Path, dataset: Dataset, schema: Schema, most: int) -> list[tuple[str, Cell]]:
    """Return the values that the schema does not cover, at most `most` of each column and class, with their places.

    Privacy: for the data owner's screen alone; no log, page or message may hold them.
    """
    with _opened(folder, dataset, schema) as table:
        coder = _coder(folder, dataset, schema, table)
        return [(table.place(cell.row), cell) for cell in coder.offending(table.rows, most)]


def _coder(folder: Path, dataset: Dataset, schema: Schema, table: Table) -> Coder:
    called = _called(folder, dataset)
    coder = Coder(schema, dataset.out_of_range, called, table.decimal, table.place)
    try:
        coder.columns(table.header)
    except DataError as error:
        raise DataError(f"{error} (read with {table.how})" if table.how else str(error)) from None
    return coder


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


def described(folder: Path, dataset: Dataset) -> tuple[Profile, str]:
    """Describe the columns of a source that has no schema yet, and say how its file is read.

    Privacy: for the data owner who drafts a schema on the spot.
    """
    with _opened(folder, dataset, None) as table:
        keyless = [name for name in table.header if name != dataset.person_key]
        places = [list(table.header).index(name) for name in dict.fromkeys(keyless)]
        rows = ([row[place] for place in places] for row in table.rows if len(row) == len(table.header))
        return Profile(list(dict.fromkeys(keyless)), table.decimal).read(rows), table.how


@contextmanager
def _opened(folder: Path, dataset: Dataset, schema: Schema | None) -> Iterator[Table]:
    """Open the source. Readers of Parquet, Excel and databases are imported only when needed."""
    attributes = {attribute.name: attribute for attribute in schema.attributes} if schema else {}
    path, key = folder / dataset.source, [dataset.person_key] if dataset.person_key else []

    def spelling(name: str) -> Speller:
        return speller_of(attributes.get(name))

    if dataset.is_database:
        from party.readers.database import database_rows

        opened = _streamed(database_rows(dataset.source, str(dataset.query), spelling))
    elif dataset.is_parquet:
        from party.readers.parquet import parquet_rows

        opened = _streamed(parquet_rows(path, {*attributes, *key} if schema else None, spelling))
    elif dataset.is_excel:
        from party.readers.excel import excel_table

        opened = excel_table(path, dataset.sheet, spelling)
    else:
        numbers = {name for name, attribute in attributes.items() if isinstance(attribute, Numeric)}
        opened = delimited_table(path, dataset.given, {*attributes, *key}, numbers if schema else None)
    with opened as table:
        yield table


@contextmanager
def _streamed(reader: Generator[Row, None, None]) -> Iterator[Table]:
    with closing(reader) as rows:
        yield Table(next(rows), rows)


def _called(folder: Path, dataset: Dataset) -> str:
    """The source as messages name it, without a password."""
    if not dataset.is_database:
        return str(folder / dataset.source)
    from party.readers.database import without_password

    return without_password(dataset.source)
