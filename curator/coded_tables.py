"""A schema and the tables that follow it, read from files.

It does not know what they are for.
"""

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from curator.tables import opened_table
from protocol.coding import Coder, gather
from protocol.errors import DataError
from protocol.schema import Schema


def read_schema(path: Path) -> Schema:
    try:
        return Schema.parse(path.read_bytes())
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None


def read_codes(path: Path, schema: Schema) -> list[NDArray[Any]]:
    """One column of codes per attribute; DataError for the first value that the schema does not cover."""
    coder = Coder(schema, "refuse", str(path))
    with opened_table(path) as (header, rows):
        coder.columns(header)
        codes = gather(schema, coder.batches(rows))
    if not len(codes[0]):
        raise DataError(f"{path}: it has no rows; at least one is needed")
    return codes
