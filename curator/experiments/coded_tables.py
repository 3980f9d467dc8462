"""Read a schema, and tables that follow it, from files.

It does not know their use.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from curator.results.csv_files import opened_table
from protocol.errors import DataError
from protocol.tables.coding import Coder, gather
from protocol.tables.schema import Schema


@dataclass(frozen=True)
class DividedTable:
    """Codes by attribute. `owners` names the holder of each row if a column of the file does, else it is empty."""

    schema: Schema
    codes: list[NDArray[Any]]
    owners: list[str]


def read_schema(path: Path) -> Schema:
    try:
        return Schema.parse(path.read_bytes())
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None


def read_codes(path: Path, schema: Schema) -> list[NDArray[Any]]:
    """Return one column of codes per attribute. Raise DataError for the first value that the schema does not cover."""
    codes = read_divided(path, schema, "").codes
    if not len(codes[0]):
        raise DataError(f"{path}: it has no rows; at least one is needed")
    return codes


def read_divided(path: Path, schema: Schema, column: str) -> DividedTable:
    """Like `read_codes`, but also read the texts of `column`, unless its name is empty. The table may have no rows."""
    coder = Coder(schema, "refuse", str(path))
    owners: list[str] = []
    with opened_table(path) as (header, rows):
        coder.columns(header)
        if column and column not in header:
            raise DataError(f"{path}: no column {column!r} to divide the rows by")
        place = header.index(column) if column else -1
        codes = gather(schema, coder.batches(_noting_owner(rows, place, owners) if column else rows))
    return DividedTable(schema, codes, owners)


def _noting_owner(rows: Iterable[list[str]], place: int, owners: list[str]) -> Iterator[list[str]]:
    for row in rows:
        owners.append(row[place] if place < len(row) else "")
        yield row
