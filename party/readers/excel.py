"""Rows of a sheet of Excel or LibreOffice, as text.

It does not know what the columns mean.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from python_calamine import CalamineError, CalamineSheet, CalamineWorkbook

from party.readers.table import Table
from party.readers.typed import Speller, typed_batches
from protocol.errors import DataError
from protocol.services.spreadsheet_size import check_size
from protocol.tables.attributes import quoted

MOST_CELLS = 1 << 25  # a million rows of 32 columns; an empty cell takes some 40 bytes


@contextmanager
def excel_table(path: Path, sheet: str | None, spelling: Callable[[str], Speller]) -> Iterator[Table]:
    """Open a sheet, the first unless one is named. Its header is the first row that is not empty."""
    if not path.is_file():
        raise DataError(f"{path}: cannot be read: there is no such file")
    try:
        with path.open("rb") as file:
            check_size(str(path), file, MOST_CELLS)
        with CalamineWorkbook.from_path(str(path)) as book:
            found = _sheet(path, book, sheet)
            rows = _numbered(found)
            first, header = next(rows, (0, []))
            names = [str(cell) for cell in header]
            if not any(names):
                raise DataError(f"{path}: the sheet is empty; a header row with the columns' names is expected")
            numbers: list[int] = []
            yield Table(
                names,
                typed_batches(_noting(rows, numbers), [_filled(spelling(name)) for name in names]),
                how=f"sheet {quoted(found.name)}, whose header is row {first}",
                place=lambda number: f"row {numbers[number - 1]}",
            )
    except CalamineError as error:
        raise DataError(f"{path}: not a readable Excel file ({type(error).__name__}); save it anew as .xlsx") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or type(error).__name__}") from None


def _sheet(path: Path, book: CalamineWorkbook, name: str | None) -> CalamineSheet:
    names = book.sheet_names
    if not names or (name is not None and name not in names):
        listed = ", ".join(map(quoted, names)) or "none"
        raise DataError(f"{path}: the file has no sheet {quoted(name or '')}; it has {listed}")
    return book.get_sheet_by_name(names[0] if name is None else name)


def _numbered(sheet: CalamineSheet) -> Iterator[tuple[int, Sequence[object]]]:
    """Yield every row that is not empty, with its number in the sheet."""
    start = (sheet.start or (0, 0))[0]
    for number, row in enumerate(sheet.to_python(skip_empty_area=True), start=start + 1):
        if any(cell != "" for cell in row):
            yield number, row


def _noting(rows: Iterable[tuple[int, Sequence[object]]], numbers: list[int]) -> Iterator[Sequence[object]]:
    for number, row in rows:
        numbers.append(number)
        yield row


def _filled(spell: Speller) -> Speller:
    """Spell an empty cell as a value that the source does not have."""
    return lambda cell: spell(None if cell == "" else cell)
