"""A party's table in a real PostgreSQL database."""

from pathlib import Path

import pytest
from sqlalchemy import NullPool, create_engine, text

from crypto.randomness import Stream
from party.home.settings import Dataset
from party.persons import TWICE
from party.readers.database import database_table
from party.readers.typed import speller_of
from party.source import check, load
from protocol.errors import DataError
from protocol.services.schema_lint import lint
from protocol.tables.batches import BATCH
from protocol.tables.schema import Schema
from tests.support.documents import ROOT
from tests.support.postgres import postgres_server

SCHEMA = Schema.parse(
    {
        "attributes": [
            {"name": "age", "kind": "integer", "min": 0, "max": 99},
            {"name": "bmi", "kind": "real", "min": 0, "max": 40, "bins": 4},
            {"name": "smokes", "kind": "categorical", "values": ["false", "true"], "missing": [""]},
        ]
    }
)
ROWS = BATCH + 100  # more than are fetched at once


@pytest.fixture(scope="module")
def url():
    with postgres_server() as server:
        url = server.replace("postgresql:", "postgresql+psycopg:")
        engine = create_engine(url, poolclass=NullPool)
        with engine.begin() as connection:
            connection.execute(text("CREATE TABLE t (id int, age int, bmi numeric(4, 1), smokes bool, note text)"))
            connection.execute(
                text(
                    "INSERT INTO t SELECT i, mod(i, 100), mod(i, 400) / 10.0,"
                    " CASE mod(i, 3) WHEN 0 THEN true WHEN 1 THEN false END, 'secret' FROM generate_series(1, :n) AS i"
                ),
                {"n": ROWS},
            )
        yield url


def dataset(url, query):
    given = {"source": url, "schema": "s", "epsilon_total": "1", "query": query, "person_key": "id"}
    return Dataset.model_validate(given)


def test_rows_are_streamed_and_typed_values_become_the_schema_s_texts(url):
    source = dataset(url, "SELECT *, age::text AS more FROM t WHERE note LIKE 'secret%' AND note <> ':x' ORDER BY id")
    age, bmi, smokes = load(Path(), source, SCHEMA)
    numbers = range(1, ROWS + 1)
    assert age.tolist() == [number % 100 for number in numbers]
    assert bmi.tolist() == [number % 400 // 100 for number in numbers]
    assert smokes.tolist() == [(1, 0, 2)[number % 3] for number in numbers]
    assert check(Path(), source, SCHEMA).rows == ROWS


def test_a_person_who_comes_back_in_a_later_batch_is_found(url):
    source = dataset(url, "SELECT * FROM (TABLE t UNION ALL SELECT * FROM t WHERE id = 7) AS twice")
    with pytest.raises(DataError, match=f', row {ROWS + 1}, column "id": {TWICE}'):
        load(Path(), source, SCHEMA)


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("SELECT note::int FROM t", "22P02"),
        ("SELECT * FROM absent", "42P01"),
        ("SELECT *, 1 / (id - 70) FROM t", "22012"),
    ],
)
def test_a_database_s_complaint_is_named_by_its_code_for_it_may_quote_a_value(url, query, code):
    with pytest.raises(DataError, match=rf"the query gives no rows \(\w+ {code}\)") as caught:
        load(Path(), dataset(url, query), SCHEMA)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("query", "complaint"),
    [
        ("SELECT id FROM t", "the header lacks"),
        ("SELECT id, age - 50 AS age, bmi, smokes FROM t", "a number below the smallest"),
    ],
)
def test_rows_that_do_not_fit_end_the_query_with_nothing_left_open(url, query, complaint):
    with pytest.raises(DataError, match=complaint):
        load(Path(), dataset(url, query), SCHEMA)


# Columns of texts, as COPY sends them, beside rows that are fetched

MANY_TYPES = """SELECT i AS key,
  (ARRAY['a', '', 'a "quote"', 'two
lines', E'tab\\t', E'return\\r', 'ü, comma', NULL])[1 + i % 8] AS free,
  (ARRAY['x', NULL, 'y'])[1 + i % 3]::char(4) AS padded, i % 7 > 2 AS flag, DATE '1950-02-28' + 31 * i AS day,
  TIMESTAMP '2001-01-01 12:30' + i * INTERVAL '7.5 minutes' AS at,
  TIMESTAMPTZ '2001-01-01 12:30+03' + i * INTERVAL '1 hour' AS abroad, i::float8 / 3 AS third, (i % 9)::float4 AS whole,
  1e20::float8 * i AS huge, 'NaN'::numeric AS none, (i / 1000000.0)::numeric(12, 9) AS small, -i::bigint AS minus,
  i::smallint AS short, ARRAY[i, 2] AS list, json_build_object('k', i) AS object,
  TIME '10:00' + i * INTERVAL '1 s' AS clock,
  INTERVAL '1 day' * (i % 4) AS span, (md5(i::text))::uuid AS id, (i % 3)::text::bytea AS bytes, NULL AS nothing
  FROM generate_series(1, 200) AS i"""
TYPED = Schema.parse(
    {
        "attributes": [
            {"name": "flag", "kind": "boolean", "true": ["yes"], "false": ["no"]},
            {"name": "day", "kind": "date", "min": "1950", "max": "2020", "resolution": "month"},
            {"name": "at", "kind": "datetime", "min": "2001", "max": "2001", "resolution": "month"},
            {"name": "free", "kind": "categorical", "values": ["a", "x"], "missing": ["unknown"]},
        ]
    }
)


@pytest.mark.parametrize("wanted", [None, {"flag", "day", "at", "free"}])
def test_columns_that_are_copied_have_the_texts_of_rows_that_are_fetched(url, wanted):
    attributes = {attribute.name: attribute for attribute in TYPED.attributes} if wanted else {}

    def texts_of(source):
        with database_table(source, MANY_TYPES, wanted, lambda name: speller_of(attributes.get(name))) as table:
            places = range(len(table.header)) if wanted is None else sorted(map(table.header.index, wanted))
            columns = {place: [] for place in places}
            for batch in table.batches:
                assert not batch.misfits
                for place in places:
                    columns[place] += batch.columns[place].by_row()
            return table.header, columns

    copied, fetched = texts_of(url), texts_of(f"{url}&client_encoding=latin1")
    assert copied == fetched
    assert {len(column) for column in copied[1].values()} == {200}


def test_a_query_that_cannot_be_copied_is_fetched(url):
    assert check(Path(), dataset(url, "SELECT * FROM t ORDER BY id; -- all of them"), SCHEMA).rows == ROWS


# The example over the OMOP common data model

OMOP = """
CREATE TABLE person (person_id int, gender_concept_id int, year_of_birth int);
CREATE TABLE visit_occurrence (visit_occurrence_id int, person_id int, visit_concept_id int, visit_start_date date,
  visit_end_date date);
CREATE TABLE condition_occurrence (condition_occurrence_id int, person_id int, visit_occurrence_id int,
  condition_source_value text);
CREATE TABLE death (person_id int, death_date date);
INSERT INTO person SELECT i, (ARRAY[8507, 8532, 0])[1 + i % 3], 1925 + i % 90 FROM generate_series(1, 300) AS i;
INSERT INTO visit_occurrence SELECT i, 1 + i % 300, (ARRAY[9201, 9202, 9203, 262, 5])[1 + i % 5],
  DATE '2015-01-01' + i, DATE '2015-01-01' + i + i % 30 FROM generate_series(1, 900) AS i;
INSERT INTO condition_occurrence SELECT i, 1 + (i % 800) % 300, i % 800,
  (ARRAY['I10', 'E11.9', 'Z99.8', 'I50.01'])[1 + i % 4] FROM generate_series(1, 2000) AS i;
INSERT INTO death SELECT i, DATE '2019-01-01' FROM generate_series(1, 300, 17) AS i;
"""


def test_the_example_over_omop_gives_one_row_for_each_person(url):
    folder = ROOT / "examples" / "omop"
    schema = Schema.parse((folder / "schema.json").read_bytes())
    engine = create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        plain = connection.execution_options(no_parameters=True)  # a % is a remainder
        plain.exec_driver_sql(OMOP)
        plain.exec_driver_sql((folder / "view.sql").read_text(encoding="utf-8"))
    source = dataset(url, "SELECT * FROM subn_visits").model_copy(update={"person_key": "person_id"})
    assert check(folder, source, schema).problems == ()
    columns = dict(zip(schema.names, load(folder, source, schema), strict=True))
    assert {len(column) for column in columns.values()} == {300}
    found = [texts(schema, columns, name) for name in ("sex", "condition", "died")]
    assert [set(column) for column in found] == [
        {"male", "female", "unknown"},
        {"I10", "E11", "I50", "other", "none"},
        {"true", "false"},
    ]
    assert found[2].count("true") == 18


def texts(schema, columns, name):
    """The texts of the categories of a column."""
    (attribute,) = (one for one in schema.attributes if one.name == name)
    return [*attribute.texts(columns[name], Stream.keyed(b"texts"))]


def test_the_example_over_omop_raises_no_doubt():
    found = lint((ROOT / "examples/omop/schema.json").read_bytes(), 20_000)
    assert (found.problems, found.doubts) == ((), ())
