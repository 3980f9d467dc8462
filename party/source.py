"""Sources of a party's rows: CSV (also gzipped), Excel, Parquet, or a database, read in batches as columns of codes.

It does not know runs or the ledger. Rows that an engine counts stay there, and are looked at there (`party.engines`).

Privacy: a message about a row names the row's number, the column and the class of the value, and stays with the data
owner. Messages of drivers and parsers may quote values, so only the class of such an error is repeated.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from party.home.settings import Dataset
from party.persons import Persons, PersonsFound
from party.readers.delimited import delimited_table
from party.readers.table import Table
from party.readers.typed import Speller, speller_of
from protocol.errors import DataError
from protocol.services.reading_line import ReadingLine
from protocol.services.schema_profile import Profile
from protocol.tables.attributes import Numeric, quoted
from protocol.tables.batches import Batch
from protocol.tables.coding import Cell, Coder, Problem, gather
from protocol.tables.domain import Codes
from protocol.tables.schema import Schema

if TYPE_CHECKING:
    from party.engines.table import EngineTable


@dataclass(frozen=True)
class Findings:
    """The findings of `subn-party check`, shown to the data owner and to nobody else."""

    rows: int
    problems: tuple[Problem, ...]
    how: str  # the way in which a file was read, in words
    persons: PersonsFound | None  # where the settings name a person key


def table(
    folder: Path, dataset: Dataset, schema: Schema, secret: bytes = b"", watch: ReadingLine | None = None
) -> "tuple[int, Sequence[Codes] | EngineTable]":
    """Return the number of rows, and the rows' codes or the place in an engine where they are.

    Raise DataError at the first value that no rule covers.
    """
    if not dataset.engine:
        codes = load(folder, dataset, schema, secret, watch)
        return len(codes[0]), codes
    from party.engines.table import EngineTable, examined

    found = examined(dataset, schema)
    if found.refused:
        raise DataError(found.refused)
    if not found.rows:
        raise _no_rows(folder, dataset)
    return found.rows, EngineTable(dataset, schema, found.rows)


def load(
    folder: Path, dataset: Dataset, schema: Schema, secret: bytes = b"", watch: ReadingLine | None = None
) -> list[Codes]:
    """Read one column of codes per attribute; raise DataError at the first value that no rule covers.

    Rows of a person beyond the settings' bound are left out; `secret` decides which.
    """
    with _opened(folder, dataset, schema, watch) as table:
        coder = _coder(folder, dataset, schema, table)
        persons = Persons(table.header, dataset, _called(folder, dataset))
        codes = gather(schema, coder.batches(persons.noting(table.batches)))
        if (row := persons.first_bad()) is not None:
            number, what = row
            place = f"{_called(folder, dataset)}, {table.place(number)}, column {quoted(persons.column)}"
            raise DataError(f"{place}: {what}")
        codes = persons.bounded(codes, secret)
    if not len(codes[0]):
        raise _no_rows(folder, dataset)
    return codes


def _no_rows(folder: Path, dataset: Dataset) -> DataError:
    return DataError(f"{_called(folder, dataset)}: the source has no rows; a party needs at least one row")


def check(folder: Path, dataset: Dataset, schema: Schema, watch: ReadingLine | None = None) -> Findings:
    """Count the values that the schema does not cover, by column and class, before any rule of the settings applies."""
    if dataset.engine:
        from party.engines.table import examined

        seen = examined(dataset, schema)
        return Findings(seen.rows, seen.problems, "", seen.persons)
    with _opened(folder, dataset, schema, watch) as table:
        coder = _coder(folder, dataset, schema, table)
        persons = Persons(table.header, dataset, _called(folder, dataset))
        counted = _Counted(persons.noting(table.batches))
        problems = coder.problems(counted)
    return Findings(counted.count, (*persons.problems(), *problems), table.how, persons.found())


def offending(folder: Path, dataset: Dataset, schema: Schema, most: int) -> list[tuple[str, Cell]]:
    """Return the values that the schema does not cover, at most `most` of each column and class, with their places.

    Privacy: for the data owner's screen alone; no log, page or message may hold them.
    """
    with _opened(folder, dataset, schema) as table:
        coder = _coder(folder, dataset, schema, table)
        return [(table.place(cell.row), cell) for cell in coder.offending(table.batches, most)]


def _coder(folder: Path, dataset: Dataset, schema: Schema, table: Table) -> Coder:
    called = _called(folder, dataset)
    coder = Coder(schema, dataset.out_of_range, called, table.decimal, table.place)
    try:
        coder.columns(table.header)
    except DataError as error:
        raise DataError(f"{error} (read with {table.how})" if table.how else str(error)) from None
    return coder


class _Counted:
    def __init__(self, batches: Iterable[Batch]) -> None:
        self._batches, self.count = batches, 0

    def __iter__(self) -> Iterator[Batch]:
        for batch in self._batches:
            self.count += batch.rows
            yield batch


def described(folder: Path, dataset: Dataset) -> tuple[Profile, str]:
    """Describe the columns of a source that has no schema yet, and say how its file is read.

    Privacy: for the data owner who drafts a schema on the spot.
    """
    with _opened(folder, dataset, None) as table:
        return Profile(table.header, table.decimal, dataset.person_key).read(table.batches), table.how


@contextmanager
def _opened(folder: Path, dataset: Dataset, schema: Schema | None, watch: ReadingLine | None = None) -> Iterator[Table]:
    """Open the source. Readers of Parquet, Excel and databases are imported only when needed."""
    if dataset.engine:
        called = _called(folder, dataset)
        raise DataError(f"{called}: the rows stay in their engine; look at them with the engine's own tools")
    attributes = {attribute.name: attribute for attribute in schema.attributes} if schema else {}
    path, key = folder / dataset.source, [dataset.person_key] if dataset.person_key else []

    def spelling(name: str) -> Speller:
        return speller_of(attributes.get(name))

    if dataset.is_database:
        from party.readers.database import database_table

        opened = database_table(dataset.source, str(dataset.query), {*attributes, *key} if schema else None, spelling)
    elif dataset.is_parquet:
        from party.readers.parquet import parquet_table

        opened = parquet_table(path, {*attributes, *key} if schema else None, spelling)
    elif dataset.is_excel:
        from party.readers.excel import excel_table

        opened = excel_table(path, dataset.sheet, spelling)
    else:
        numbers = {name for name, attribute in attributes.items() if isinstance(attribute, Numeric)}
        opened = delimited_table(path, dataset.given, {*attributes, *key}, numbers if schema else None)
    with opened as table:
        batches = table.batches
        if watch is not None:
            batches = watch.watched(_called(folder, dataset), batches, table.part)
        yield replace(table, batches=batches)


def _called(folder: Path, dataset: Dataset) -> str:
    """The source as messages name it, without a password."""
    if not dataset.is_database:
        return str(folder / dataset.source)
    if dataset.engine:
        return dataset.engine_shown
    from party.readers.database import without_password

    return without_password(dataset.source)
