"""Parties with their rows in engines, as real processes, and totals of their runs beside rows that are counted here.

It does not know engines: each party's place is a function that moves its table there.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from protocol.tables.counting import Rows
from protocol.tables.domain import Merged
from protocol.tables.encoding import Encoding
from tests.end_to_end.cluster import Cluster, Site, cluster
from tests.support.small_runs import MIXED

Place = Callable[[Site], Mapping[str, str]]  # the settings of a party whose table it has moved
NO_NOISE = "1000000"  # so much epsilon that every noise is 0, except with probability below 2^-1000


def here(_site: Site) -> Mapping[str, str]:
    return {"source": "patients.csv"}


def in_duckdb(site: Site) -> Mapping[str, str]:
    file = site.home / "patients.parquet"
    pa.parquet.write_table(typed(site), file)
    return {"source": f"duckdb:///{site.home}/scratch.duckdb", "query": f"SELECT * FROM '{file}'"}


def in_postgres(url: str) -> Place:
    def place(site: Site) -> Mapping[str, str]:
        kinds = {"int64": "int", "double": "float8", "string": "text"}
        table = typed(site)
        columns = ", ".join(f"{column.name} {kinds[str(column.type)]}" for column in table.schema)
        with psycopg.connect(url) as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE TABLE patients ({columns})")
            with cursor.copy("COPY patients FROM STDIN") as copy:
                for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
                    copy.write_row(row)
        return {"source": url, "query": "SELECT * FROM patients"}

    return place


def typed(site: Site) -> pa.Table:
    """A party's table with numbers as numbers."""
    kinds = {"integer": pa.int64(), "real": pa.float64()}
    types = {one.name: kinds.get(one.kind, pa.string()) for one in MIXED.attributes}
    options = pyarrow.csv.ConvertOptions(column_types=types, strings_can_be_null=False)
    return pyarrow.csv.read_csv(site.home / "patients.csv", convert_options=options)


@contextmanager
def parties_in(folder: Path, places: Mapping[str, Place], rows: int = 60) -> Iterator[Cluster]:
    with cluster(folder) as found:
        found.add(*places, rows=rows)
        for name, place in places.items():
            site = found.sites[name]
            given = place(site)
            lines = [f"{setting} = {json.dumps(value)}" for setting, value in given.items()]
            lines += ["engine = true"] if "query" in given else []
            settings = site.home / "party.toml"
            settings.write_text(settings.read_text().replace('source = "patients.csv"', "\n".join(lines)))
        found.acquaint(*places)
        found.enrol(*places)
        found.serve(*places)
        yield found


def check_totals(found: Cluster, run: str) -> int:
    """Compare every released table with the parties' rows, counted here; return the number of tables."""
    told = json.loads(found.get(run, "tables.json"))
    encoding = Encoding.of(MIXED, "native")
    codes = [np.concatenate(columns) for columns in zip(*(site.codes for site in found.sites.values()), strict=True)]
    rows = Rows(encoding.domain, encoding.encode(codes))
    domains = {
        is_halved: rows.over(encoding.domain.with_merged(_groups(told["halves" if is_halved else "merged"])))
        for is_halved in (False, True)
    }
    for table in told["tables"]:
        counted = domains["halved" in table].table(tuple(table["variables"]))
        assert table["counts"] == counted.ravel().tolist(), table["step"]
    return len(told["tables"])


def engines_in(found: Cluster, run: str) -> dict[str, str]:
    """Which engine counted each party's rows, as the manifest says."""
    parties = json.loads(found.get(run, "manifest.json"))["manifest"]["parties"]
    return {party["name"]: party.get("engine", "") for party in parties}


def _groups(told: list[dict[str, object]]) -> list[Merged]:
    return [(one["variable"], tuple(one["groups"])) for one in told]  # type: ignore[arg-type, misc]
