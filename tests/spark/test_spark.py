"""Spark with two workers, PostgreSQL and a file, each at one party of runs over HTTPS: `make spark-test`.

It prints the scans and the bytes that came back.
"""

import csv
import os
import time
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path

import psutil
import pyarrow.parquet
import pytest

from crypto.randomness import Stream
from party.engines.connection import connected, end_spark
from party.home.settings import Dataset
from party.source import check
from protocol.errors import DataError
from protocol.run.scans import TO_JOIN
from protocol.tables.coding import labels
from protocol.tables.counting import Rows
from protocol.tables.encoding import Encoding
from tests.end_to_end.cluster import Site
from tests.support.engine_cluster import NO_NOISE, check_totals, engines_in, here, in_postgres, parties_in, typed
from tests.support.engines import in_engine, rows_there
from tests.support.postgres import postgres_server
from tests.support.small_runs import MIXED, random_codes

PATIENCE = 900.0  # a session of Spark takes a minute to begin on a busy machine, and every scan some seconds
ROWS = 300
MASTER = os.environ.get("SPARK_MASTER", "local-cluster[2,1,1024]")


@pytest.fixture(autouse=True)
def no_session_stays() -> Iterator[None]:
    """End the session of this process: commands that a test runs here begin one, and a party at work has its own."""
    yield
    end_spark()


@pytest.fixture(autouse=True, scope="module")
def no_program_of_spark_stays(no_process_is_left: None) -> Iterator[None]:
    """End the Java program of this process's sessions, which stays until the process ends."""
    yield
    programs = [one for one in psutil.Process().children() if one.name() == "java"]
    for program in programs:
        program.terminate()
    psutil.wait_procs(programs, 60)


@pytest.fixture
def spark(tmp_path) -> tuple[Site, Dataset]:
    site = Site("A", tmp_path, random_codes(MIXED, [ROWS])[0])
    columns = zip(*labels(MIXED, list(site.codes), Stream.keyed(b"labels")), strict=True)
    with (tmp_path / "patients.csv").open("w", newline="") as file:
        csv.writer(file).writerows([MIXED.names, *columns])
    place = in_spark(site)
    return site, in_engine(place["source"], place["query"])


def in_spark(site: Site) -> Mapping[str, str]:
    file = site.home / "patients.parquet"
    pyarrow.parquet.write_table(typed(site), file)
    return {"source": spark_at(site.home / "spark"), "query": f"SELECT * FROM parquet.`{file}`"}


def spark_at(folder: Path, master: str = MASTER) -> str:
    given = {
        "spark.master": master,
        "spark.sql.warehouse.dir": str(folder),
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
    }
    return "spark://?" + "&".join(f"{name}={value}" for name, value in given.items())


def test_spark_codes_and_counts_as_it_is_done_here(spark, capsys):
    site, dataset = spark
    assert check(site.home, dataset, MIXED).problems == ()
    for name in ("native", "binary", "hierarchical"):
        encoding = Encoding.of(MIXED, name)
        own = Rows(encoding.domain, encoding.encode(list(site.codes)))
        there = rows_there(dataset, MIXED, ROWS, encoding, f"subn_run_{name}")
        sets = [*combinations(range(encoding.domain.count), 2), (0, 2, 4), (1,)]
        there.expect(sets)
        for one, other in zip(own.tables(sets), there.tables(sets), strict=True):
            assert one.tolist() == other.tolist()
        with capsys.disabled():
            print(
                f"\n{name}: {len(sets)} tables, {TO_JOIN} scans to join, {there.scans} to count, {there.bytes:,} bytes"
            )


def test_a_second_session_with_other_settings_is_refused_and_one_with_the_same_is_joined(tmp_path):
    one, other = spark_at(tmp_path / "one", "local[1]"), spark_at(tmp_path / "one", "local[2]")
    for _ in range(2):
        with connected(one, "the engine") as engine:
            assert engine.fetched(engine.relation("SELECT 1 AS x")).num_rows == 1
    refused = pytest.raises(DataError, match=r"a session of Spark with another spark\.master, and can have only one")
    with refused, connected(other, "the engine"):
        pass
    end_spark()
    with connected(other, "the engine") as engine:
        assert engine.fetched(engine.relation("SELECT 1 AS x")).num_rows == 1


def test_a_run_with_one_party_on_spark_one_on_postgresql_and_one_here(tmp_path_factory, capsys):
    folder = tmp_path_factory.mktemp("run")
    with postgres_server() as url, parties_in(folder, {"A": in_spark, "B": in_postgres(url), "C": here}, ROWS) as found:
        for method in ("guided", "dp-subn"):
            start = time.monotonic()
            run = found.begin("A", "B", "C", epsilon=NO_NOISE, method=method)
            found.until(run, "finished", PATIENCE)
            tables = check_totals(found, run)
            assert engines_in(found, run) == {"A": "spark", "B": "postgresql", "C": ""}
            with capsys.disabled():
                print(f"\n{method}: {tables} released tables with exact totals, {time.monotonic() - start:.0f} s")
