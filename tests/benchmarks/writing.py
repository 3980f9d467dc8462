"""Writing a drawn table: CPU seconds of CSV and Parquet per million rows, beside Python's `csv`, in one process.

It does not know thresholds: it prints figures.
"""

import csv
import io
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from crypto.randomness import Stream
from curator.experiments.sample_data import SCHEMA
from curator.results.csv_files import write_table
from curator.results.typed_tables import parquet_pieces, text_batches
from protocol.tables.coding import labels
from protocol.tables.schema import Schema
from tests.benchmarks.ratio import Ratio, seconds

_BATCH, _BATCHES = 1 << 16, 8


def costs() -> dict[str, float]:
    """Return the seconds of each way to write the same batches, drawing numbers within bins included."""
    schema, draw = Schema.parse(SCHEMA), np.random.default_rng(1)
    codes = [draw.integers(0, one.size, _BATCH).astype(one.code_type) for one in schema.attributes]
    with tempfile.TemporaryDirectory() as folder:
        csv_file, parquet_file = Path(folder) / "t.csv", Path(folder) / "t.parquet"
        ways: dict[str, Callable[[Any], object]] = {
            "texts alone": lambda batches: [None for _ in batches],
            "csv of Python": lambda batches: [_by_rows(columns) for columns in batches],
            "CSV": lambda batches: write_table(csv_file, schema.names, batches),
            "Parquet": lambda batches: parquet_file.write_bytes(
                b"".join(parquet_pieces(schema, text_batches(batches)))
            ),
        }
        return {
            name: seconds(lambda: way(labels(schema, codes, Stream.system()) for _ in range(_BATCHES)))  # noqa: B023
            for name, way in ways.items()
        }


def ratios() -> Iterator[Ratio]:
    found = costs()
    for kind in ("CSV", "Parquet"):
        name = f"{_BATCH * _BATCHES:,} rows written as {kind}"
        yield Ratio(name, "csv of Python", found[kind], found["csv of Python"])


def main() -> None:
    print(f"{'':16} {'s per 10^6 rows':>16}")
    for name, cost in costs().items():
        print(f"{name:16} {cost / (_BATCH * _BATCHES) * 1e6:16.2f}")


def _by_rows(columns: list) -> None:
    csv.writer(io.StringIO(newline=""), lineterminator="\n").writerows(zip(*columns, strict=True))


if __name__ == "__main__":
    main()
