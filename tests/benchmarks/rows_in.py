"""Reading and coding of a party's table, beside what duckdb needs to read it: `python -m tests.benchmarks.rows_in`.

A made-up table like Adult, 15 columns, as CSV and as Parquet; the same table row by row, as files are read whose
quotes or types leave a doubt; and a table of amounts, numbers and moments, of which nearly every one is a text of its
own. Seconds are those of processors, of all threads.
"""

import argparse
import os
import resource
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from party.home.settings import Dataset
from party.readers import parquet
from party.source import load
from protocol.services import delimited_rows
from protocol.tables.schema import Schema
from tests.benchmarks.ratio import Ratio, seconds

KINDS = ("csv", "parquet")
ROWS = 1_000_000
PART = 100_000  # rows that are made at once
CATEGORIES = (8, 16, 7, 14, 6, 5, 2, 41, 2)
WHOLE = ((17, 91), (1, 17), (1, 100), (0, 30_000))  # numbers whose texts repeat
WIDE = 1_500_000
Random = np.random.Generator


def like_adult(draw: Random, rows: int) -> pa.Table:
    columns: dict[str, Any] = {}
    for number, size in enumerate(CATEGORIES):
        texts = pa.array([f"Category-{number}-{value}" for value in range(size)])
        shares = np.arange(1, size + 1) ** -1.3
        codes = draw.choice(size, rows, p=shares / shares.sum())
        columns[f"c{number}"] = texts.take(pa.array(codes))
    for number, (low, end) in enumerate(WHOLE):
        columns[f"i{number}"] = pa.array(draw.integers(low, end, rows))
    columns["zeros"] = pa.array(np.where(draw.random(rows) < 0.9, 0, draw.integers(0, 5000, rows)))
    columns["weight"] = pa.array((draw.lognormal(12, 0.6, rows) % WIDE).astype(np.int64) // 50 * 50)
    return pa.table(columns)


def adult_schema() -> Schema:
    listed = [
        {"name": f"c{number}", "kind": "categorical", "values": [f"Category-{number}-{value}" for value in range(size)]}
        for number, size in enumerate(CATEGORIES)
    ]
    ends = {f"i{number}": (low, end - 1) for number, (low, end) in enumerate(WHOLE)}
    ends |= {"zeros": (0, 5000), "weight": (0, WIDE)}
    numbers = [
        {"name": name, "kind": "integer", "min": low, "max": high, "bins": 16} for name, (low, high) in ends.items()
    ]
    return Schema.parse({"attributes": [*listed, *numbers]})


def amounts(draw: Random, rows: int) -> pa.Table:
    seconds = draw.integers(0, 365 * 86_400, rows).astype("timedelta64[s]")
    moments = np.datetime64("2021-01-01T00:00:00") + seconds
    return pa.table(
        {
            "amount": pa.array([f"{value:.2f}" for value in draw.lognormal(4, 1, rows).clip(0, 99_999).tolist()]),
            "number": pa.array(draw.integers(0, 10**9, rows)),
            "at": pa.array([text.replace("T", " ") for text in moments.astype(str).tolist()]),
        }
    )


AMOUNTS = Schema.parse(
    {
        "attributes": [
            {"name": "amount", "kind": "real", "min": 0, "max": 100_000, "bins": 40},
            {"name": "number", "kind": "integer", "min": 0, "max": 10**9, "bins": 20},
            {"name": "at", "kind": "datetime", "min": "2021", "max": "2021", "resolution": "month"},
        ]
    }
)


def written(
    folder: Path, name: str, make: Callable[[Random, int], pa.Table], rows: int, kinds: Sequence[str] = KINDS
) -> None:
    draw = np.random.default_rng(1)
    first = make(draw, min(rows, PART))
    with ExitStack() as files:
        writers = [files.enter_context(_writer(folder / f"{name}.{kind}", first.schema)) for kind in kinds]
        for done in range(0, rows, PART):
            part = make(draw, min(PART, rows - done)) if done else first
            for writer in writers:
                writer.write_table(part)


def _writer(path: Path, schema: pa.Schema) -> Any:
    if path.suffix == ".parquet":
        return pyarrow.parquet.ParquetWriter(path, schema)
    return pyarrow.csv.CSVWriter(path, schema, write_options=pyarrow.csv.WriteOptions(quoting_style="none"))


def cost(act: Callable[[], object]) -> float:
    before = os.times()
    act()
    after = os.times()
    return after.user + after.system - before.user - before.system


def by_duckdb(path: Path) -> None:
    """Look at every value of a CSV file; hand every value of a Parquet file out, which does not only look."""
    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar = false")
        if path.suffix == ".parquet":
            connection.execute("CREATE TABLE t AS SELECT * FROM read_parquet(?)", [str(path)])
            return
        reader = "read_csv(?, all_varchar = true)"
        names = [row[0] for row in connection.execute(f"DESCRIBE SELECT * FROM {reader}", [str(path)]).fetchall()]
        each = ", ".join(f'max("{name}")' for name in names)
        connection.execute(f"SELECT {each} FROM {reader}", [str(path)]).fetchall()


def by_party(path: Path, schema: Schema) -> None:
    load(path.parent, Dataset.model_validate({"source": path.name, "schema": "s", "epsilon_total": "1"}), schema)


@contextmanager
def row_by_row() -> Iterator[None]:
    with (
        mock.patch.object(delimited_rows, "is_plain", return_value=False),
        mock.patch.object(parquet, "file_by_columns", return_value=None),
    ):
        yield


def ratios() -> Iterator[Ratio]:
    with tempfile.TemporaryDirectory() as folder:
        written(Path(folder), "adult", like_adult, ROWS // 5)
        for kind in KINDS:
            path = Path(folder) / f"adult.{kind}"
            ours, other = seconds(lambda: by_party(path, adult_schema())), seconds(lambda: by_duckdb(path))  # noqa: B023
            yield Ratio(f"{ROWS // 5:,} rows of {kind} read and coded", "duckdb's reading", ours, other)


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    chosen, _ = parser.parse_known_args(given)
    with tempfile.TemporaryDirectory() as folder:
        for name, make, schema in (("adult", like_adult, adult_schema()), ("amounts", amounts, AMOUNTS)):
            written(Path(folder), name, make, chosen.rows)
            for kind in KINDS:
                path = Path(folder) / f"{name}.{kind}"
                by_party(path, schema)  # the libraries are loaded, and the file is at hand
                own, coded = cost(lambda: by_duckdb(path)), cost(lambda: by_party(path, schema))  # noqa: B023
                with row_by_row():
                    slow = cost(lambda: by_party(path, schema))  # noqa: B023
                print(
                    f"{name:8}{kind:8}{chosen.rows:11,} rows: read and coded {coded:6.2f} s, {coded / own:4.1f} times "
                    f"duckdb's reading ({own:.2f} s); row by row {slow:6.2f} s, {slow / coded:4.1f} times",
                    flush=True,
                )
    print(f"largest memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MB")


if __name__ == "__main__":
    main()
