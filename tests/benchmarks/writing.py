"""Writing a drawn table: CPU seconds of CSV and Parquet per million rows, beside Python's `csv`, in one process.

It does not know thresholds: it prints figures.
"""

import csv
import io
import tempfile
from pathlib import Path
from time import process_time

import numpy as np

from crypto.randomness import Stream
from curator.experiments.sample_data import SCHEMA
from curator.results.csv_files import write_table
from curator.results.typed_tables import parquet_pieces, text_batches
from protocol.tables.coding import labels
from protocol.tables.schema import Schema

_BATCH, _BATCHES = 1 << 16, 8


def main() -> None:
    schema, draw = Schema.parse(SCHEMA), np.random.default_rng(1)
    codes = [draw.integers(0, one.size, _BATCH).astype(one.code_type) for one in schema.attributes]
    with tempfile.TemporaryDirectory() as folder:
        ways = {
            "texts alone": lambda batches: [None for _ in batches],
            "csv of Python": lambda batches: [_by_rows(columns) for columns in batches],
            "CSV": lambda batches: write_table(Path(folder) / "t.csv", schema.names, batches),
            "Parquet": lambda batches: (Path(folder) / "t.parquet").write_bytes(
                b"".join(parquet_pieces(schema, text_batches(batches)))
            ),
        }
        print(f"{'':16} {'s per 10^6 rows':>16}")
        for name, way in ways.items():
            begun = process_time()
            way(labels(schema, codes, Stream.system()) for _ in range(_BATCHES))
            print(f"{name:16} {(process_time() - begun) / (_BATCH * _BATCHES) * 1e6:16.2f}")


def _by_rows(columns: list) -> None:
    csv.writer(io.StringIO(newline=""), lineterminator="\n").writerows(zip(*columns, strict=True))


if __name__ == "__main__":
    main()
