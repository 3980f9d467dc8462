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
from protocol.services.reading_line import ReadingLine
from protocol.tables.attributes import Numeric
from protocol.tables.batches import Batch
from protocol.tables.coding import Coder, gather
from protocol.tables.schema import Schema


@dataclass(frozen=True)
class DividedTable:
    """Codes by attribute. `owners` names the holder of each row if a column of the file does, else it is empty."""

    schema: Schema
    codes: list[NDArray[Any]]
    owners: list[str]


def read_codes(path: Path, schema: Schema) -> list[NDArray[Any]]:
    """Return one column of codes per attribute. Raise DataError for the first value that the schema does not cover."""
    codes = read_divided(path, schema, "").codes
    if not len(codes[0]):
        raise DataError(f"{path}: it has no rows; at least one is needed")
    return codes


def read_divided(path: Path, schema: Schema, column: str, watch: ReadingLine | None = None) -> DividedTable:
    """Like `read_codes`, but also read the texts of `column`, unless its name is empty. The table may have no rows."""
    owners: list[str] = []
    numbers = [attribute.name for attribute in schema.attributes if isinstance(attribute, Numeric)]
    with opened_table(path, schema.names, numbers, {*schema.names, column}) as table:
        coder = Coder(schema, "refuse", str(path), table.decimal)
        coder.columns(table.header)
        if column and column not in table.header:
            raise DataError(f"{path}: no column {column!r} to divide the rows by")
        place = table.header.index(column) if column else -1
        batches = table.batches if watch is None else watch.watched(str(path), table.batches)
        batches = _noting_owner(batches, place, owners) if column else batches
        codes = gather(schema, coder.batches(batches))
    return DividedTable(schema, codes, owners)


def _noting_owner(batches: Iterable[Batch], place: int, owners: list[str]) -> Iterator[Batch]:
    for batch in batches:
        owners.extend(batch.columns[place].by_row())
        yield batch
