import csv
import gzip
import re
import sqlite3

import duckdb
import pytest

from party.home.settings import Dataset
from party.persons import TWICE, UNNAMED
from party.readers import delimited
from party.source import check, load
from protocol.errors import DataError
from protocol.services import delimited_rows
from protocol.services.reading_line import ReadingLine
from protocol.tables.coding import Problem
from protocol.tables.schema import Schema

SCHEMA = Schema.parse(
    {
        "attributes": [
            {"name": "age", "kind": "integer", "min": 0, "max": 99, "bins": 10, "missing": [""]},
            {"name": "sex", "kind": "categorical", "values": ["f", "m"]},
            {"name": "bmi", "kind": "real", "min": 10, "max": 40, "bins": 3, "missing": ["NA", ""]},
            {"name": "smokes", "kind": "categorical", "values": ["false", "true"], "missing": [""]},
        ]
    }
)
HEADER = ["id", "sex", "age", "note", "bmi", "smokes"]
ROWS = [
    ["p1", "f", "39", "secret-a", "12.5", "true"],
    ["p2", "m", "5", "secret-b", "", "false"],
    ["p3", "m", "", "secret, c", "40", ""],
]
CODES = [[3, 0, 10], [0, 1, 1], [0, 3, 2], [1, 0, 2]]


def dataset(source, query=None, **settings):
    given = {"source": source, "schema": "s.json", "epsilon_total": "1", "query": query} | settings
    return Dataset.model_validate(given)


def write_csv(folder, rows=ROWS, header=HEADER, name="t.csv"):
    opening = gzip.open if name.endswith(".gz") else open
    with opening(folder / name, "wt", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return dataset(name)


def write_parquet(folder, rows=ROWS):
    path = folder / "t.parquet"
    selects = [
        "SELECT {} AS id, {} AS sex, {}::INTEGER AS age, {} AS note, {}::DOUBLE AS bmi, {}::BOOLEAN AS smokes".format(
            *("NULL" if field == "" else f"'{field}'" for field in row)
        )
        for row in rows
    ]
    duckdb.connect().execute(f"COPY ({' UNION ALL '.join(selects)}) TO '{path}' (FORMAT parquet)")
    return dataset("t.parquet")


def write_sqlite(folder, rows=ROWS, query="SELECT * FROM t", **settings):
    path = folder / "t.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE t (id, sex, age INTEGER, note, bmi REAL, smokes)")
        db.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", [[field or None for field in row] for row in rows])
    db.close()
    return dataset(f"sqlite:///{path}", query, **settings)


WRITERS = [write_csv, lambda folder, rows=ROWS: write_csv(folder, rows, name="t.csv.gz"), write_parquet, write_sqlite]
KINDS = pytest.mark.parametrize("write", WRITERS, ids=["csv", "csv.gz", "parquet", "sqlite"])
ROW_4 = r"(line 5|row 4)"  # a file of text has lines, and its header is the first


def loaded(folder, source):
    return [column.tolist() for column in load(folder, source, SCHEMA)]


@KINDS
def test_whoever_waits_for_a_long_reading_sees_how_far_it_is(tmp_path, write):
    written, seconds = [], iter(range(100))
    source = write(tmp_path)
    load(tmp_path, source, SCHEMA, watch=ReadingLine(written.append, lambda: next(seconds)))
    rows, part = len(ROWS), "" if source.is_database else ", 100%"
    assert written[0].rstrip().endswith(f"{source.source[-20:]}: {rows} rows read{part}")


def refusal(folder, source, act=load):
    with pytest.raises(DataError) as caught:
        act(folder, source, SCHEMA)
    # What a driver said may quote values.
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return str(caught.value)


@KINDS
def test_every_kind_of_source_gives_the_same_codes(tmp_path, write):
    source = write(tmp_path)
    assert loaded(tmp_path, source) == CODES
    assert check(tmp_path, source, SCHEMA).problems == ()
    assert check(tmp_path, source, SCHEMA).rows == 3


@KINDS
def test_a_bad_value_is_named_by_place_and_class_and_never_shown(tmp_path, write):
    rows = [*ROWS, ["p4", "m", "123", "secret-d", "12", "true"], ["p5", "x", "3", "secret-e", "12", "true"]]
    source = write(tmp_path, rows)
    with pytest.raises(
        DataError, match=f', {ROW_4}, column "age": a number above the largest; correct the table'
    ) as caught:
        load(tmp_path, source, SCHEMA)
    assert "123" not in str(caught.value)
    assert "secret" not in str(caught.value)
    found = check(tmp_path, source, SCHEMA)
    assert found.rows == 5
    assert found.problems == (
        Problem("age", "a number above the largest", 1),
        Problem("sex", "a category that the schema does not list", 1),
    )


@KINDS
def test_a_person_has_one_row(tmp_path, write):
    rows = [*ROWS, ["p1", "m", "1", "", "12", "true"], ["", "m", "1", "", "12", "true"], ["p2", "f", "1", "", "12", ""]]
    source = write(tmp_path, rows).model_copy(update={"person_key": "id"})
    message = refusal(tmp_path, source)
    assert re.search(f', {ROW_4}, column "id": {TWICE}; correct it, or set rows_per_person in party.toml$', message)
    assert check(tmp_path, source, SCHEMA).problems == (Problem("id", TWICE, 2), Problem("id", UNNAMED, 1))
    fine = write_csv(tmp_path).model_copy(update={"person_key": "id"})
    assert loaded(tmp_path, fine) == CODES
    assert check(tmp_path, fine, SCHEMA).problems == ()


def test_a_row_without_its_person_is_refused(tmp_path):
    source = write_csv(tmp_path, [["", *ROWS[0][1:]], ["", *ROWS[1][1:]]]).model_copy(update={"person_key": "id"})
    assert refusal(tmp_path, source).endswith(f', line 2, column "id": {UNNAMED}; correct it')
    assert check(tmp_path, source, SCHEMA).problems == (Problem("id", UNNAMED, 2),)


@pytest.mark.parametrize(("key", "header"), [("patient", HEADER), ("note", [*HEADER[:5], "smokes", "note"])])
def test_a_person_key_is_one_column(tmp_path, key, header):
    rows = [[*row, ""][: len(header)] for row in ROWS]
    source = write_csv(tmp_path, rows, header).model_copy(update={"person_key": key})
    assert refusal(tmp_path, source).endswith(f'the person key "{key}" names no single column; correct its name')


def test_a_person_key_may_be_an_attribute(tmp_path):
    source = write_csv(tmp_path).model_copy(update={"person_key": "age"})
    assert refusal(tmp_path, source).endswith(f', line 4, column "age": {UNNAMED}; correct it')


@KINDS
def test_the_owner_s_rule_for_bad_values_is_applied(tmp_path, write):
    rows = [*ROWS, ["p4", "m", "123", "", "99", "true"]]
    source = write(tmp_path, rows).model_copy(update={"out_of_range": {"age": "clamp", "bmi": "missing"}})
    assert [column[3] for column in loaded(tmp_path, source)] == [9, 1, 3, 1]
    assert len(check(tmp_path, source, SCHEMA).problems) == 2


@KINDS
def test_a_source_that_lacks_a_column_is_refused(tmp_path, write):
    other = Schema.parse({"attributes": [{"name": "height", "kind": "integer", "min": 0, "max": 9}]})
    for act in (load, check):
        with pytest.raises(DataError, match='the header lacks "height"'):
            act(tmp_path, write(tmp_path) if act is load else _again(tmp_path, write), other)


def _again(folder, write):
    for file in folder.iterdir():
        file.unlink()
    return write(folder)


def test_a_table_without_rows_is_no_party_s_table(tmp_path):
    assert refusal(tmp_path, write_csv(tmp_path, [])).endswith("the source has no rows; a party needs at least one row")
    assert check(tmp_path, write_csv(tmp_path, []), SCHEMA).rows == 0


# CSV


UNREADABLE = "; correct the file, or say in party.toml how it is written (encoding, delimiter, quote)"


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "the file is empty; a header row with the columns' names is expected"),
        (b"\n\n", "the file is empty; a header row with the columns' names is expected"),
        (
            b'id,sex,age,note,bmi,smokes\np0,f,3,"a",12,true\np1,f,39,"a"b,12,true\n',
            "not a readable CSV file in UTF-8 (Error at line 3 or soon after)" + UNREADABLE,
        ),
    ],
)
def test_a_file_that_is_no_csv_is_refused(tmp_path, content, what):
    (tmp_path / "t.csv").write_bytes(content)
    assert refusal(tmp_path, dataset("t.csv")).endswith(what)


def test_bytes_that_are_not_of_the_given_encoding_are_refused(tmp_path):
    rows = b"age,sex,bmi,smokes\n" + b"1,f,12,true\n" * 3
    (tmp_path / "t.csv").write_bytes(rows + b"1,\xff\n")
    assert refusal(tmp_path, dataset("t.csv", encoding="utf-8")).endswith(
        "not a readable CSV file in UTF-8 (UnicodeDecodeError at line 4 or soon after)" + UNREADABLE
    )


@pytest.mark.parametrize("end", [b"1,\xff\n", b'1,"f\n', b'1,"f" \n'])
def test_a_bad_value_above_a_line_that_cannot_be_read_is_named(tmp_path, monkeypatch, end):
    monkeypatch.setattr(delimited_rows, "BLOCK", 1)
    monkeypatch.setattr(delimited, "CHUNK", 20)
    (tmp_path / "t.csv").write_bytes(b"age,sex,bmi,smokes\n1,f,12,true\n1,x,12,true\n1,f,12,true\n1,f,12,true\n" + end)
    assert ', line 3, column "sex": a category' in refusal(tmp_path, dataset("t.csv", encoding="utf-8"))


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-12], lambda data: b"no gzip", lambda data: data[:20] + b"\xff" * 40]
)
def test_a_gzipped_file_that_is_cut_or_damaged_is_refused(tmp_path, damage):
    source = write_csv(tmp_path, name="t.csv.gz")
    (tmp_path / "t.csv.gz").write_bytes(damage((tmp_path / "t.csv.gz").read_bytes()))
    assert "t.csv.gz: not a readable gzipped file (" in refusal(tmp_path, source)


def test_a_byte_order_mark_is_not_part_of_a_name(tmp_path):
    write_csv(tmp_path)
    (tmp_path / "t.csv").write_bytes(b"\xef\xbb\xbf" + (tmp_path / "t.csv").read_bytes())
    assert loaded(tmp_path, dataset("t.csv", person_key="id")) == CODES


@pytest.mark.parametrize("name", ["none.csv", "none.csv.gz", "none.parquet"])
def test_a_file_that_is_absent_is_said_to_be_so(tmp_path, name):
    message = refusal(tmp_path, dataset(name))
    assert message.startswith(f"{tmp_path / name}: cannot be read: ")


# Parquet


def test_a_file_that_is_no_parquet_is_refused(tmp_path):
    (tmp_path / "t.parquet").write_bytes(b"age,sex\n")
    assert "t.parquet: not a readable Parquet file (" in refusal(tmp_path, dataset("t.parquet"))


def test_a_path_is_no_pattern(tmp_path):
    assert "must not contain *, ? or [; rename it" in refusal(tmp_path, dataset("*.parquet"))


def test_a_column_may_be_called_anything(tmp_path):
    name = "a \"b\" 'c'"
    duckdb.connect().execute(f"""COPY (SELECT 1 AS "{name.replace('"', '""')}") TO '{tmp_path}/t.parquet'""")
    schema = Schema.parse({"attributes": [{"name": name, "kind": "integer", "min": 0, "max": 9}]})
    assert load(tmp_path, dataset("t.parquet"), schema)[0].tolist() == [1]


# Databases


def test_a_query_reaches_the_database_as_it_stands(tmp_path):
    source = write_sqlite(tmp_path, query="SELECT * FROM t WHERE note LIKE 'secret%' AND note <> ':x' ORDER BY id")
    assert loaded(tmp_path, source) == CODES


def test_a_failing_query_says_neither_values_nor_passwords(tmp_path):
    source = write_sqlite(tmp_path, query="SELECT * FROM absent WHERE name = 'secret'")
    message = refusal(tmp_path, source)
    assert "the query gives no rows (OperationalError); try it with the database's own tool" in message
    assert "secret" not in message
    source = dataset("postgresql+psycopg://user:hunter2@127.0.0.1:1/db", "SELECT 1")
    message = refusal(tmp_path, source)
    assert message.startswith("postgresql+psycopg://user:***@127.0.0.1:1/db: the query gives no rows (OperationalError")
    assert "hunter2" not in message


@pytest.mark.parametrize("query", ["DELETE FROM t", "CREATE TABLE u (x)"])
def test_a_statement_that_is_no_query_is_refused_and_changes_nothing(tmp_path, query):
    assert "the query gives no rows (ResourceClosedError)" in refusal(tmp_path, write_sqlite(tmp_path, query=query))
    db = sqlite3.connect(tmp_path / "t.db")
    assert db.execute("SELECT count(*) FROM t").fetchone() == (3,)
    db.close()


@pytest.mark.parametrize(
    ("url", "what"),
    [
        ("no such thing://", "the source is not a database URL; expected dialect://user:password@host/database"),
        ("nodialect://u:hunter2@h/d", "nodialect://u:***@h/d: the query gives no rows (NoSuchModuleError)"),
        ("mysql+pymysql://u:hunter2@h/d", "the Python package 'pymysql' for this database is not installed"),
    ],
)
def test_a_url_that_leads_nowhere_is_refused_without_its_password(tmp_path, url, what):
    message = refusal(tmp_path, dataset(url, "SELECT 1"))
    assert what in message
    assert "hunter2" not in message
