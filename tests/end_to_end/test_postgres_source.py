"""A party's table in a real PostgreSQL database."""

from pathlib import Path

import pytest
from sqlalchemy import NullPool, create_engine, text

from party.home.settings import Dataset
from party.source import TWICE, check, load
from protocol.errors import DataError
from protocol.tables.coding import BATCH
from protocol.tables.schema import Schema
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
