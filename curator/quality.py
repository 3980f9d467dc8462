"""How well a synthetic table fits the pooled rows: for demonstrations with made-up rows only.

It does not know how either table was made. What it returns is not private.
"""

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from curator.tables import opened_table
from protocol.coding import Coder, gather
from protocol.comparison import average_distance
from protocol.schema import Schema


def errors_against(pooled: Path, synthetic: Path, schema: Schema) -> tuple[float, float]:
    """The mean total variation distance of all tables of one attribute, and of two."""
    one, other = _codes(pooled, schema), _codes(synthetic, schema)
    return average_distance(one, other, schema.sizes, 1), average_distance(one, other, schema.sizes, 2)


def _codes(path: Path, schema: Schema) -> list[NDArray[Any]]:
    coder = Coder(schema, "refuse", str(path))
    with opened_table(path) as (header, rows):
        coder.columns(header)
        return gather(schema, coder.batches(rows))
