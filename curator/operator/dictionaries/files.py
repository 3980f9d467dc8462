"""A data dictionary on disk: which form it has, and its columns.

It does not know how a form is read, which is the work of the modules beside it.
"""

from collections.abc import Sequence
from pathlib import Path

from curator.operator.dictionaries import frictionless, sql, table
from curator.operator.dictionaries.described import Dictionary
from curator.results.csv_files import opened_table
from protocol.errors import DataError
from protocol.outside_json import read_json
from protocol.services.spreadsheet_size import check_size

_LARGEST = 64 << 20  # bytes
_MOST_COLUMNS = 2000
_MOST_CELLS = 1 << 20  # of a sheet: every column of a table in a row of some hundred cells

Table = tuple[Sequence[str], Sequence[Sequence[str]]]  # a header and its rows


def read_dictionary(path: Path, name: str | None = None) -> Dictionary:
    """Read CREATE TABLE (.sql), Frictionless (.json), Excel, or CSV, also REDCap's. `name` chooses a table or sheet."""
    if path.is_file() and path.stat().st_size > _LARGEST:
        raise DataError(f"{path}: is larger than {_LARGEST >> 20} MB: a data dictionary describes columns, not rows")
    found = _read(path, name)
    if not 1 <= len(found.columns) <= _MOST_COLUMNS:
        raise DataError(f"{path}: describes {len(found.columns)} columns; 1 to {_MOST_COLUMNS} are expected")
    return found


def _read(path: Path, name: str | None) -> Dictionary:
    suffix = path.suffix.lower()
    if suffix == ".sql":
        return Dictionary(sql.columns_of(str(path), _text(path), name))
    if suffix == ".json":
        try:
            found = read_json(_bytes(path), _LARGEST, exact=True)
        except ValueError as error:
            raise DataError(f"{path}: this is not JSON that can be read: {error}") from None
        return Dictionary(frictionless.columns_of(str(path), found, name))
    header, rows = _sheet(path, name) if suffix in (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods") else _table(path)
    return table.columns_of(str(path), header, rows)


def _table(path: Path) -> Table:
    with opened_table(path) as opened:
        return opened.header, list(opened.rows())


def _sheet(path: Path, name: str | None) -> Table:
    from python_calamine import CalamineError, CalamineWorkbook

    try:
        with path.open("rb") as file:
            check_size(str(path), file, _MOST_CELLS)
        with CalamineWorkbook.from_path(str(path)) as book:
            sheet = book.sheet_names[0] if name is None and book.sheet_names else name
            if sheet not in book.sheet_names:
                raise DataError(f"{path}: the file has the sheets {', '.join(book.sheet_names)}; choose one by --table")
            rows = [[_cell(cell) for cell in row] for row in book.get_sheet_by_name(str(sheet)).to_python()]
    except CalamineError as error:
        raise DataError(f"{path}: not a readable Excel file ({type(error).__name__}); save it anew as .xlsx") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or type(error).__name__}") from None
    filled = [row for row in rows if any(row)]
    return (filled[0], filled[1:]) if filled else ([], [])


def _cell(cell: object) -> str:
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def _text(path: Path) -> str:
    try:
        return _bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(f"{path}: is not in UTF-8; save it as UTF-8") from None


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
