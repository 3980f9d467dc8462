"""How well a synthetic table fits the pooled rows: for demonstrations with made-up rows only.

It does not know how either table was made. What it returns is not private.
"""

from pathlib import Path

from curator.experiments.coded_tables import read_codes
from protocol.tables.distance import average_distance
from protocol.tables.schema import Schema


def errors_against(pooled: Path, synthetic: Path, schema: Schema) -> tuple[float, float]:
    """The mean total variation distance of all tables of one attribute, and of two."""
    one, other = read_codes(pooled, schema), read_codes(synthetic, schema)
    return average_distance(one, other, schema.sizes, 1), average_distance(one, other, schema.sizes, 2)
