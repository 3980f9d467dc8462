"""Whole runs of one party whose rows lie in an engine, scan by scan, beside the same run over rows that are read here.

Run: python -m tests.benchmarks.engines [--rows 10000000] [--engine here postgres duckdb spark] [--method guided].

The made-up table has 15 columns that depend on hidden numbers: nine of text and six of whole numbers. Every engine gets
the same rows, and every run the same seed. A line of a run tells its step, the seconds on the clock, the bytes that
came back, and what was counted. The released tables must be those of the first run.

PostgreSQL is the tests' own server with its settings as delivered. Spark needs Java and the packages that
`make spark-test` installs (PYTHONPATH=build/spark). Spark and duckdb use `--cores` threads.

It does not know thresholds: it prints figures.
"""

import argparse
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any
from unittest import mock
from urllib.parse import urlencode

import duckdb
import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from curator.experiments.simulate import stream_of_seed
from curator.experiments.simulation import Simulation, make_identities, member_of, simulate
from party.engines.connection import Engine
from party.engines.rows import EngineRows, Frozen
from party.engines.table import EngineTable
from party.home.settings import Dataset
from party.source import table
from protocol.exact import exact
from protocol.forecast.recommendation import planned
from protocol.plan.terms import Terms
from protocol.tables.any_rows import AnyRows
from protocol.tables.counting import Rows
from protocol.tables.schema import Schema
from tests.support.postgres import postgres_server

CATEGORIES = (8, 16, 7, 14, 6, 5, 2, 41, 2)
ENDS = (91, 17, 100, 5000, 30_000, 60)
HIDDEN = 4
PART = 500_000  # rows that are made at once
TABLE = "subn_run_benchmark"
WHERE = {"schema": "schema.json", "epsilon_total": "1"}


@dataclass(frozen=True)
class Given:
    """The made-up rows as a file, and the settings of the measurement."""

    folder: Path
    rows: int
    cores: int

    @property
    def file(self) -> Path:
        return self.folder / "rows.parquet"


Opened = Callable[[Given], AbstractContextManager[Dataset]]


@dataclass
class Log:
    """The scans of a run, one after the other."""

    step: str = "joining"
    seconds: list[float] = field(default_factory=list)
    bytes: list[int] = field(default_factory=list)

    def note(self, began: float, size: int, what: str) -> None:
        self.seconds.append(perf_counter() - began)
        self.bytes.append(size)
        print(f"    {self.step:16} {self.seconds[-1]:8.2f} s {size:12,} bytes  {what}", flush=True)


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--engine", nargs="+", choices=ENGINES, default=[*ENGINES])
    parser.add_argument("--method", default="guided")
    parser.add_argument("--cores", type=int, default=1)
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        given, first = Given(Path(folder), chosen.rows, chosen.cores), None
        write_rows(given)
        for engine in chosen.engine:
            with ENGINES[engine](given) as dataset:
                told = _told(_measured(given, dataset, engine, chosen.method))
            first = first or told
            assert told == first, "this engine has not counted the same"


# Rows


def schema() -> Schema:
    listed = [
        {"name": f"c{place}", "kind": "categorical", "values": [f"Category-{place}-{value}" for value in range(size)]}
        for place, size in enumerate(CATEGORIES)
    ]
    numbers = [
        {"name": f"i{place}", "kind": "integer", "min": 0, "max": end - 1, "bins": 16} for place, end in enumerate(ENDS)
    ]
    return Schema.parse({"title": "made up", "attributes": [*listed, *numbers]})


def write_rows(given: Given) -> None:
    draw = np.random.default_rng(1)
    weights = draw.normal(size=(len(CATEGORIES) + len(ENDS), HIDDEN)) * 0.6
    writer = None
    for done in range(0, given.rows, PART):
        part = _part(draw, weights, min(PART, given.rows - done))
        writer = writer or pyarrow.parquet.ParquetWriter(given.file, part.schema)
        writer.write_table(part)
    assert writer is not None
    writer.close()


def _part(draw: np.random.Generator, weights: Any, rows: int) -> pa.Table:
    values = draw.normal(size=(rows, HIDDEN)) @ weights.T + draw.normal(size=(rows, len(weights)))
    columns = {}
    for place, size in enumerate(CATEGORIES):
        texts = pa.array([f"Category-{place}-{value}" for value in range(size)])
        codes = (size * (values[:, place] / 8 + 0.3)).clip(0, size - 1).astype(np.int64)
        columns[f"c{place}"] = texts.take(pa.array(codes))
    for place, end in enumerate(ENDS):
        value = values[:, len(CATEGORIES) + place]
        columns[f"i{place}"] = pa.array((end * (value / 8 + 0.5)).clip(0, end - 1).astype(np.int64))
    return pa.table(columns)


# Places of the rows


@contextmanager
def _here(given: Given) -> Iterator[Dataset]:
    yield Dataset.model_validate({"source": str(given.file), **WHERE})


@contextmanager
def _postgres(given: Given) -> Iterator[Dataset]:
    with postgres_server() as url:
        _copied(given, url)
        yield _in_engine(url, "SELECT * FROM patients")


def _copied(given: Given, url: str) -> None:
    file = pyarrow.parquet.ParquetFile(given.file)
    kinds = {"int64": "int", "string": "text"}
    columns = ", ".join(f"{column.name} {kinds[str(column.type)]}" for column in file.schema_arrow)
    options = pyarrow.csv.WriteOptions(include_header=False)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE patients ({columns})")  # type: ignore[arg-type]
        with connection.cursor() as cursor, cursor.copy("COPY patients FROM STDIN (FORMAT csv)") as copy:
            for batch in file.iter_batches():
                text = pa.BufferOutputStream()
                pyarrow.csv.write_csv(batch, text, options)
                copy.write(text.getvalue().to_pybytes())
        connection.execute("VACUUM ANALYZE patients")


@contextmanager
def _duckdb(given: Given) -> Iterator[Dataset]:
    def connect(connected: Callable[..., Any], *where: Any, **more: Any) -> Any:
        connection = connected(*where, **more)
        connection.execute(f"SET threads = {given.cores}")
        return connection

    opened = duckdb.connect
    with mock.patch.object(duckdb, "connect", lambda *where, **more: connect(opened, *where, **more)):
        yield _in_engine(f"duckdb:///{given.folder}/scratch.duckdb", f"SELECT * FROM '{given.file}'")


@contextmanager
def _spark(given: Given) -> Iterator[Dataset]:
    settings = {
        "spark.master": f"local[{given.cores}]",
        "spark.driver.memory": "4g",
        "spark.sql.warehouse.dir": str(given.folder / "spark"),
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
    }
    yield _in_engine(f"spark://?{urlencode(settings)}", f"SELECT * FROM parquet.`{given.file}`")


def _in_engine(url: str, query: str) -> Dataset:
    return Dataset.model_validate({"source": url, "query": query, "engine": True, **WHERE})


ENGINES: dict[str, Opened] = {"here": _here, "postgres": _postgres, "duckdb": _duckdb, "spark": _spark}


# Runs


def _measured(given: Given, dataset: Dataset, engine: str, method: Any) -> Simulation:
    print(f"{engine}: {given.rows:,} rows of {len(schema().names)}", flush=True)
    log, began = Log(), perf_counter()
    with _noted(log):
        count, found = table(given.folder, dataset, schema())
        stream = stream_of_seed(1)
        identities = make_identities(1, stream)
        members = [member_of("party", count, identities[0])]
        terms = planned("benchmark", schema(), members, exact("1"), method, fewest=1, insiders=0)
        rows = _rows(found, dataset, terms)
        joined = perf_counter() - began

        def progress(step: str, _party: str) -> None:
            log.step = step

        with mock.patch("curator.experiments.simulation.Rows", return_value=rows):
            one_row = [[np.zeros(1, np.uint8)] * len(schema().names)]
            ended = simulate(terms, one_row, identities, stream, real_crypto=False, progress=progress)
    took = perf_counter() - began
    for name, stage in ended.stages.items():
        print(f"    {name:16} {stage.seconds:8.2f} s in all")
    print(
        f"{engine}: {took:.1f} s on the clock, {joined:.1f} s of it to join; {len(log.seconds)} scans in "
        f"{sum(log.seconds):.1f} s, {sum(log.bytes):,} bytes came back\n",
        flush=True,
    )
    return ended


def _rows(found: Any, dataset: Dataset, terms: Terms) -> AnyRows:
    if not isinstance(found, EngineTable):
        return Rows(terms.finest.domain, terms.finest.encode(list(found)))
    return EngineRows.of(Frozen(dataset, terms.agreed, TABLE, found.frozen(TABLE)), terms.finest)


@contextmanager
def _noted(log: Log) -> Iterator[None]:
    fetched, made = Engine.fetched, Engine.made

    def noted_fetched(engine: Engine, relation: Any) -> Any:
        began = perf_counter()
        found = fetched(engine, relation)
        log.note(began, found.nbytes, f"{len(found):,} lines of {found.num_columns} columns")
        return found

    def noted_made(engine: Engine, name: str, relation: Any) -> None:
        began = perf_counter()
        made(engine, name, relation)
        log.note(began, 0, "the table of codes is made")

    with mock.patch.object(Engine, "fetched", noted_fetched), mock.patch.object(Engine, "made", noted_made):
        yield


def _told(run: Simulation) -> list[Any]:
    """All that the run has released, to be compared."""
    known = run.state.knowledge
    return [(one.table.variables, one.table.counts.tolist()) for one in known.released]


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
