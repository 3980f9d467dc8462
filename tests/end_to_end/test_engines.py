"""A run over HTTPS of parties that count in PostgreSQL, in duckdb and here: exact totals, and nothing left behind."""

import stat

import ibis
import psycopg
import pytest

from party.engines.coding import ColumnCoder
from party.engines.connection import Engine, connected
from party.engines.table import by_code
from protocol.tables.schema import Schema
from tests.support.engine_cluster import NO_NOISE, check_totals, engines_in, here, in_duckdb, in_postgres, parties_in
from tests.support.postgres import postgres_server

WHOLE = {"kind": "integer", "min": -3, "max": 96, "missing": [""]}
REAL = {"kind": "real", "min": -1, "max": 1, "bins": 3}
DAY = {"kind": "date", "min": "2019-11", "max": "2021", "resolution": "month"}
HOUR = {"kind": "datetime", "min": "2020-02-28", "max": "2020-03-01", "resolution": "hour"}
LISTED = {"kind": "categorical", "values": ["1", "true", "a"], "other": "rest", "missing": ["?"]}
COLUMNS = [  # the attribute, the type in PostgreSQL, and values as it writes them
    (WHOLE, "int2", "-4 -3 0 96 97"),
    (WHOLE | {"bins": 7}, "int8", "-4 -3 11 12 96 97 9223372036854775807"),
    (WHOLE, "float8", "3 3.5 -3 96.00000000000001 1e300 NaN Infinity 5e-324"),
    (WHOLE, "numeric", "3.00 3.01 96.000000000000000000000000001 1e40 NaN"),
    (
        REAL,
        "float8",
        "-0.33333333333333337 -0.3333333333333333 0.33333333333333326 0.3333333333333333 1.0000000000000002",
    ),
    (REAL, "float4", "-0.33333334 -0.3333333 0.3333333 0.33333334 1 1.0000001 NaN"),
    (
        REAL,
        "numeric",
        "0.333333333333333333333333333333333333 0.333333333333333333333333334 -1 1 1.00000001 NaN",
    ),
    (REAL | {"missing": ["-9"]}, "numeric(12,4)", "0.3333 0.3334 -1 1 1.0001 -9 NaN"),
    (REAL | {"missing": ["-9"]}, "float8", "-9 -8.999999999999999 0.1"),
    (LISTED, "text", "1 a A b true ?"),
    (LISTED, "int4", "1 2"),
    (LISTED, "bool", "t f"),
    (LISTED, "uuid", "00000000-0000-0000-0000-000000000001"),
    (DAY, "date", "2019-10-31 2019-11-01 2020-02-29 2021-12-31 2022-01-01"),
    (DAY, "text", "2020-02-29 2020-02-30 2018-01-01"),
    (HOUR, "timestamp", "2020-02-27T23:59:59.999999 2020-02-28 2020-02-28T00:59:59.9 2020-03-01T23:59:59.9 2020-03-02"),
]


@pytest.fixture(scope="module")
def url():
    with postgres_server() as found:
        yield found


@pytest.fixture(scope="module")
def engines(no_process_is_left, tmp_path_factory, url):
    places = {"Nord": in_postgres(url), "Süd": in_duckdb, "Ost": here}
    with parties_in(tmp_path_factory.mktemp("engines"), places) as found:
        yield found


def test_the_totals_are_exact_and_the_manifest_says_who_counted(engines, url):
    run = engines.finished("Nord", "Süd", "Ost", epsilon=NO_NOISE)
    assert check_totals(engines, run) >= 5
    assert engines_in(engines, run) == {"Nord": "postgresql", "Süd": "duckdb", "Ost": ""}
    for name in ("Nord", "Süd"):
        engines.sites[name].running.wait_for("run ended", run=run)
    with psycopg.connect(url) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
    assert tables == [("patients",)]


def test_doctor_names_a_file_of_duckdb_that_others_can_read(engines):
    site = engines.sites["Süd"]
    file = site.home / "scratch.duckdb"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.chmod(0o644)
    findings = site.cli("doctor", code=1)["findings"]
    file.chmod(0o600)
    assert [one["mend"] for one in findings if one["verdict"] == "bad"] == [f"chmod go= {file}"]


def test_check_doctor_and_a_request_say_what_it_costs(engines):
    told = engines.sites["Nord"].cli("check")["datasets"]["patients"]
    assert told["fits"]
    assert told["engine"].startswith(
        "counted in postgresql:///postgres, no row comes here. A run reads the table twice"
    )
    run = engines.finished("Nord", "Süd", "Ost")
    engines.sites["Süd"].running.wait_for("run ended", run=run)  # whoever looks next finds its duckdb free
    (request,) = engines.sites["Nord"].cli("requests", run)
    assert request["engine"]["shown"] == "postgresql:///postgres"
    assert 3 < request["engine"]["scans"] < 30


def test_postgresql_sorts_no_rows_however_many_values_a_column_has(url, monkeypatch):
    statements = []
    monkeypatch.setattr(Engine, "fetched", lambda _engine, lines: statements.append(str(ibis.to_sql(lines))))
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE floats AS SELECT random() AS x FROM generate_series(1, 20000)")
        connection.execute("ANALYZE floats")
        connection.commit()
        with connected(url, "the engine") as engine:
            rows = engine.relation("SELECT * FROM floats")
            ninth = (rows.x * 9).floor().cast("int64")
            engine.counted(rows.select(g0=ninth, g9=ninth + 9))
        connection.execute("SET work_mem = '64kB'")
        plan = [line for (line,) in connection.execute(f"EXPLAIN {statements[0]}")]
        connection.execute("DROP TABLE floats")
    assert plan[0].startswith("HashAggregate")
    assert not any("Sort" in line for line in plan)


@pytest.mark.parametrize(("attribute", "kind", "texts"), COLUMNS)
def test_postgresql_gives_each_value_the_code_that_it_gets_here(url, attribute, kind, texts):
    (parsed,) = Schema.parse({"attributes": [{"name": "x", **attribute}]}).attributes
    with psycopg.connect(url) as connection:
        connection.execute(f"CREATE TABLE values_of (n int, x {kind})")
        for place, text in enumerate([*texts.split(), None]):
            connection.execute("INSERT INTO values_of VALUES (%s, %s)", (place, text))
        kept = [x for (x,) in connection.execute("SELECT x FROM values_of ORDER BY n")]
    try:
        with connected(url, "the engine") as engine:
            rows = engine.relation("SELECT * FROM values_of")
            coder = ColumnCoder(parsed, rows.schema()["x"], engine.name)
            fetched = by_code(coder, [value for value in kept if value is not None]) if coder.needs_values else None
            lines = engine.fetched(rows.select(n=rows.n, c=coder.codes(rows.x, fetched)).order_by("n"))
    finally:
        with psycopg.connect(url) as connection:
            connection.execute("DROP TABLE values_of")
    wanted = [(str(value), coder.code_of(value)) for value in kept]
    assert [*zip(map(str, kept), lines["c"].to_pylist(), strict=True)] == wanted
