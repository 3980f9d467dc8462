"""Data sets in engines: what a check finds, what is refused and in which words, and what is left behind."""

import os
import stat

import pytest

from party.engines import table as engine_table
from party.engines.connection import connected
from party.engines.table import MORE, EngineTable
from party.home.modes import engine_open_to_others
from party.persons import TWICE, UNNAMED, PersonsFound
from party.source import check, load, offending, table
from protocol.errors import DataError
from protocol.tables.coding import Problem
from protocol.tables.schema import Schema
from tests.support.engines import batches_here, change, coder_here, duckdb_with, fetched, in_engine

SCHEMA = Schema.parse(
    {
        "attributes": [
            {"name": "age", "kind": "integer", "min": 0, "max": 9},
            {"name": "sex", "kind": "categorical", "values": ["f", "m"], "missing": ["?"]},
        ]
    }
)
GOOD = "CREATE TABLE t AS SELECT i % 10 AS age, ['f', 'm'][1 + i % 2] AS sex, i // 2 AS id FROM range(40) AS r(i)"
BAD = "INSERT INTO t VALUES (10, 'secret', 90), (-1, NULL, 91), (NULL, 'f', 92)"


@pytest.fixture
def url(tmp_path):
    return duckdb_with(tmp_path, GOOD)


@pytest.fixture
def bad(tmp_path):
    return duckdb_with(tmp_path, GOOD, BAD)


def test_a_table_that_fits_is_counted_where_it_is(tmp_path, url):
    assert check(tmp_path, in_engine(url), SCHEMA).problems == ()
    assert table(tmp_path, in_engine(url), SCHEMA)[0] == 40


def test_bad_values_are_counted_and_named_by_class_alone(tmp_path, bad):
    found = check(tmp_path, in_engine(bad), SCHEMA)
    assert [(one.column, one.count) for one in found.problems] == [("age", 1), ("age", 1), ("age", 1), ("sex", 1)]
    with pytest.raises(DataError, match=r'column "age": an empty field, .* or set out_of_range') as caught:
        table(tmp_path, in_engine(bad), SCHEMA)
    assert "secret" not in str(caught.value)


def test_bad_values_of_many_columns_and_of_one_row_are_told_apart(tmp_path):
    names = [f"a{place}" for place in range(6)]
    schema = Schema.parse({"attributes": [{"name": name, "kind": "integer", "min": 0, "max": 9} for name in names]})
    values = ", ".join(f"CASE i % {place + 2} WHEN 0 THEN i - 5 WHEN 1 THEN 7 END AS a{place}" for place in range(6))
    url = duckdb_with(tmp_path, f"CREATE TABLE t AS SELECT {values} FROM range(40) AS r(i)")
    header, rows = fetched(url)
    here = coder_here(schema, header).problems(batches_here(schema, header, rows))
    assert len({(one.column, one.what) for one in here}) == 17
    assert {*check(tmp_path, in_engine(url), schema).problems} == {*here}


def test_rules_apply_in_the_engine_as_here(tmp_path, bad):
    rules = {"out_of_range": {"age": "clamp", "sex": "missing"}}
    query = "SELECT * FROM t WHERE age IS NOT NULL"
    rows, found = table(tmp_path, in_engine(bad, query, **rules), SCHEMA)
    assert (rows, found.frozen("subn_run_x")) == (42, 42)
    _, lines = fetched(bad, "SELECT c0, c1 FROM subn_run_x")
    assert ((9, 2) in lines, (0, 2) in lines, min(lines)) == (True, True, (0, 0))


@pytest.mark.parametrize(
    ("key", "bound", "found", "persons"),
    [
        ("id", None, [Problem("id", TWICE, 20)], None),
        ("id", 1, [Problem("id", MORE, 20)], None),
        ("id", 2, [], PersonsFound(20, 2, 40)),
        ("nothing", 40, [Problem("nothing", UNNAMED, 40)], None),
    ],
)
def test_rows_per_person_are_checked_but_none_is_left_out(tmp_path, url, key, bound, found, persons):
    dataset = in_engine(url, "SELECT *, '' AS nothing FROM t", person_key=key, rows_per_person=bound)
    seen = check(tmp_path, dataset, SCHEMA)
    assert ([*seen.problems], seen.persons) == (found, persons)
    if found:
        with pytest.raises(DataError, match=found[0].what):
            table(tmp_path, dataset, SCHEMA)


def test_a_table_that_changed_for_the_worse_is_not_frozen(url):
    found = EngineTable(in_engine(url), SCHEMA, 40)
    change(url, BAD)
    with pytest.raises(DataError, match="an empty field"):
        found.frozen("subn_run_x")
    with connected(url, "the engine") as engine:
        assert not engine.holds("subn_run_x")


def test_a_table_that_has_the_name_already_is_neither_replaced_nor_removed(url):
    change(url, "CREATE TABLE subn_run_x AS SELECT 7 AS theirs")
    with pytest.raises(DataError, match="a table subn_run_x exists already"):
        EngineTable(in_engine(url), SCHEMA, 40).frozen("subn_run_x")
    assert fetched(url, "SELECT * FROM subn_run_x") == (["theirs"], [(7,)])


def test_what_duckdb_writes_is_its_owner_s_alone(tmp_path):
    file = tmp_path / "scratch" / "codes.duckdb"
    before = os.umask(0o022)
    try:
        with connected(f"duckdb:///{file}", "the engine") as engine:
            engine.made("subn_run_x", engine.relation("SELECT i AS c0 FROM range(99) AS r(i)"))
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (file.parent, *file.parent.iterdir())}
    finally:
        after = os.umask(before)
    assert modes == {"scratch": 0o700, "codes.duckdb": 0o600, "codes.duckdb.wal": 0o600}
    assert after == 0o022
    assert engine_open_to_others(f"duckdb:///{file}") == []
    file.chmod(0o640)
    assert [path.name for path in engine_open_to_others(f"duckdb:///{file}")] == ["codes.duckdb"]


def test_a_table_counts_as_gone_only_if_the_engine_says_so(url):
    change(url, "CREATE TABLE subn_run_x AS SELECT 7 AS c0")
    with connected(url, "the engine") as engine:
        assert (engine.holds("subn_run_x"), engine.holds("subn_run_y")) == (True, False)
    with pytest.raises(DataError, match="the engine: it cannot list its tables"):  # the connection is closed
        engine.holds("subn_run_x")


@pytest.mark.parametrize(
    ("query", "complaint"),
    [
        ("SELECT age FROM t", 'the query has no column "sex"'),
        ("SELECT * FROM absent", r"the query gives no rows \(CatalogException\)"),
        ("SELECT *, 1 FROM t WHERE age > 100", "the source has no rows"),
        ("SELECT sex, error('secret') :: INT AS age FROM t", r"it cannot count \(\w+\)"),
    ],
)
def test_a_query_that_does_not_work_is_refused_without_a_value(tmp_path, url, query, complaint):
    with pytest.raises(DataError, match=complaint) as caught:
        table(tmp_path, in_engine(url, query), SCHEMA)
    assert "secret" not in str(caught.value)


def test_too_many_values_that_would_have_to_be_fetched_are_refused(tmp_path, url, monkeypatch):
    monkeypatch.setattr(engine_table, "MOST_VALUES", 5)
    dataset = in_engine(url, "SELECT age :: VARCHAR AS age, sex FROM t")
    with pytest.raises(DataError, match='column "age": it holds too many different values of type string'):
        table(tmp_path, dataset, SCHEMA)
    monkeypatch.setattr(engine_table, "MOST_VALUES", 10)
    assert table(tmp_path, dataset, SCHEMA)[0] == 40


@pytest.mark.parametrize("url_of", ["mysql://me:secret@host/db", "oracle+x://me:secret@host/db?password=secret"])
def test_an_engine_that_is_not_known_is_named_without_a_password(tmp_path, url_of):
    with pytest.raises(
        DataError, match="expected one of bigquery, clickhouse, databricks, duckdb, postgresql"
    ) as caught:
        table(tmp_path, in_engine(url_of), SCHEMA)
    assert "secret" not in str(caught.value)


def test_a_missing_driver_is_named_with_what_brings_it(tmp_path):
    with pytest.raises(DataError, match=r"the driver .* install dp-subn\[clickhouse\]"):
        table(tmp_path, in_engine("clickhouse://me:secret@host/db"), SCHEMA)


def test_nothing_else_reads_the_rows(tmp_path, url):
    for read in (load, lambda *what: offending(*what, 3)):
        with pytest.raises(DataError, match="the rows stay in their engine"):
            read(tmp_path, in_engine(url), SCHEMA)
