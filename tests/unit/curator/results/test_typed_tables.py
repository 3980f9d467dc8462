"""Published tables have the types of their schema, and a codebook says what they mean."""

import csv
import io
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas
import pyarrow as pa
import pyarrow.parquet
import pytest

from crypto.randomness import Stream
from curator.operator.frames import frame_of
from curator.results.codebook import codebook_csv, codebook_html
from curator.results.csv_files import of_one_row, write_table
from curator.results.typed_tables import csv_batches, parquet_pieces, text_batches
from protocol.errors import OperatorError
from protocol.tables.batches import batched
from protocol.tables.coding import Coder, labels
from protocol.tables.schema import Schema
from protocol.tables.text_column import TextColumn

SCHEMA = Schema.parse(
    {
        "title": "Admissions",
        "attributes": [
            {"name": "grade", "kind": "ordinal", "values": ["low", "mid", "high"], "missing": ["?"],
             "labels": {"low": "below 3", "?": "not graded"}},
            {"name": "code, \"ICD\"", "kind": "categorical", "values": ["I10", "E11"], "other": "rest"},
            {"name": "smoker", "kind": "boolean", "true": ["ja"], "false": ["nein"], "missing": [""]},
            {"name": "visits", "kind": "integer", "min": -5, "max": 10**12, "bins": 5, "missing": ["NA"]},
            {"name": "cost", "kind": "real", "min": 0, "max": 500_000, "bins": 9, "decimals": 2, "unit": "euro",
             "description": "of the stay"},
            {"name": "ratio", "kind": "real", "min": 0, "max": 1, "bins": 4, "missing": ["NA"]},
            {"name": "day", "kind": "date", "min": "0990", "max": "2024", "resolution": "year",
             "format": "%-d.%-m.%Y", "missing": ["-"]},
            {"name": "seen", "kind": "datetime", "min": "2024-02-28", "max": "2024-03-01", "resolution": "hour"},
        ],
    }
)  # fmt: skip
ROWS = 3000


@pytest.fixture(scope="module")
def texts() -> list[TextColumn]:
    codes = [(np.arange(ROWS) % attribute.size).astype(attribute.code_type) for attribute in SCHEMA.attributes]
    return labels(SCHEMA, codes, Stream.keyed(b"typed"))


@pytest.fixture(scope="module", params=["drawn", "published"])
def path(request: Any, texts: list[TextColumn], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    write_table(folder / "t.csv", SCHEMA.names, [texts])
    parts = (slice(999), slice(999, None))
    drawn = text_batches([TextColumn(one.texts, one.places[part]) for one in texts] for part in parts)
    batches = drawn if request.param == "drawn" else csv_batches(folder / "t.csv", SCHEMA)
    (folder / "t.parquet").write_bytes(b"".join(parquet_pieces(SCHEMA, batches)))
    return folder / "t.parquet"


def test_a_table_leaves_in_groups_of_rows_before_it_is_drawn_to_its_end(texts, path, monkeypatch):
    monkeypatch.setattr("curator.results.typed_tables.GROUP_ROWS", 2 * ROWS)
    drawn = []

    def batches():
        for number in range(5):
            drawn.append(number)
            yield texts

    pieces = parquet_pieces(SCHEMA, text_batches(batches()))
    first = next(pieces), next(pieces)
    assert len(drawn) <= 3
    found = pa.parquet.ParquetFile(pa.BufferReader(b"".join((*first, *pieces))))
    groups = [found.metadata.row_group(number).num_rows for number in range(found.metadata.num_row_groups)]
    assert groups == [2 * ROWS, 2 * ROWS, ROWS]
    assert found.read().equals(pa.concat_tables([pa.parquet.read_table(path)] * 5))


def test_every_kind_has_its_type(path):
    found = pa.parquet.read_table(path)
    assert [field.type for field in found.schema] == [
        pa.dictionary(pa.int32(), pa.string(), ordered=True),
        pa.dictionary(pa.int32(), pa.string(), ordered=False),
        pa.bool_(),
        pa.int64(),
        pa.decimal128(8, 2),
        pa.float64(),
        pa.date32(),
        pa.timestamp("ms"),
    ]
    assert [field.nullable for field in found.schema] == [bool(one.missing) for one in SCHEMA.attributes]
    assert found.column(0).combine_chunks().dictionary.to_pylist() == ["low", "mid", "high"]
    assert found.schema.field("cost").metadata == {b"description": b"of the stay", b"unit": b"euro"}
    assert found.schema.field("grade").metadata == {b"labels": b'{"low": "below 3", "?": "not graded"}'}
    assert Schema.parse(found.schema.metadata[b"dp-subn-schema"]) == SCHEMA


def test_values_are_those_of_the_text(path, texts):
    found = pa.parquet.read_table(path).to_pylist()
    assert len(found) == ROWS
    for row, fields in zip(found, zip(*texts, strict=True), strict=True):
        grade, code, smoker, visits, cost, ratio, day, seen = fields
        assert list(row.values()) == [
            None if grade == "?" else grade,
            code,
            {"ja": True, "nein": False, "": None}[smoker],
            None if visits == "NA" else int(visits),
            Decimal(cost),
            None if ratio == "NA" else float(ratio),
            None if day == "-" else date(*map(int, reversed(day.split(".")))),
            datetime.strptime(seen, "%Y-%m-%d %H:%M:%S"),
        ]


def test_other_programs_read_it(path):
    described = duckdb.execute(f"SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM '{path}')")
    types = dict(described.fetchall())
    assert (types["visits"], types["cost"], types["day"]) == ("BIGINT", "DECIMAL(8,2)", "DATE")
    assert duckdb.execute(f"SELECT count(*), count(smoker) FROM '{path}'").fetchall() == [(ROWS, ROWS * 2 // 3)]


def test_a_data_frame_keeps_the_types(path):
    frame = frame_of(path.read_bytes())
    assert frame["grade"].cat.ordered
    assert list(frame["grade"].cat.categories) == ["low", "mid", "high"]
    assert not frame['code, "ICD"'].cat.ordered
    assert (frame["smoker"].dtype, frame["visits"].dtype) == (pandas.BooleanDtype(), pandas.Int64Dtype())
    assert (frame["cost"].dtype, frame["ratio"].dtype) == (np.dtype(float), np.dtype(float))
    assert str(frame["day"].dtype).startswith("datetime64")
    assert frame["visits"].isna().sum() == ROWS // 6


def test_without_pandas_it_is_said_what_is_lacking(path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(OperatorError, match="a data frame needs pandas, which is not installed: pip install pandas"):
        frame_of(path.read_bytes())


def test_the_text_of_a_table_is_read_back_by_its_schema(texts):
    header = list(SCHEMA.names)
    coder = Coder(SCHEMA)
    coder.columns(header)
    assert coder.problems(batched(zip(*texts, strict=True), len(header))) == []


def test_more_digits_than_parquet_holds_become_floats(tmp_path):
    wide = {"name": "x", "kind": "real", "min": 0, "max": 10**18, "bins": 9000, "step": 0.001}
    fine = {"name": "y", "kind": "real", "min": 0, "max": 1, "bins": 2, "decimals": 18}
    schema = Schema.parse({"attributes": [wide, fine]})
    batches = text_batches(iter([of_one_row(["1.5", "0.000000000000000001"])]))
    (tmp_path / "t.parquet").write_bytes(b"".join(parquet_pieces(schema, batches)))
    types = [field.type for field in pa.parquet.read_schema(tmp_path / "t.parquet")]
    assert types == [pa.decimal128(22, 3), pa.decimal128(19, 18)]


# The codebook


def test_the_codebook_has_a_line_for_every_value():
    header, *lines = csv.reader(io.StringIO(codebook_csv(SCHEMA)))
    assert header == ["column", "kind", "description", "unit", "format", "value", "label"]
    assert len(lines) == sum(SCHEMA.sizes) - 1035 + 1  # a range of more than a thousand bins has one line
    assert lines[:4] == [
        ["grade", "ordinal", "", "", "", "low", "below 3"],
        ["grade", "ordinal", "", "", "", "mid", ""],
        ["grade", "ordinal", "", "", "", "high", ""],
        ["grade", "ordinal", "", "", "", "?", "not graded"],
    ]
    assert ["cost", "real", "of the stay", "euro", "", "0 to 55555.6", ""] in lines
    day = "dates from 0990-01-01 to 2024-12-31 by years, written as %-d.%-m.%Y, or missing"
    assert ["day", "date", "", "", "%-d.%-m.%Y", day, ""] in lines
    assert ["day", "date", "", "", "%-d.%-m.%Y", "-", "missing"] in lines


def test_the_codebook_s_page_shows_everything_and_no_markup_of_others():
    raw = {"title": "<script>", "attributes": [
        {"name": "<b>", "kind": "categorical", "values": ["</td>"], "labels": {"</td>": "<i>"}, "description": "<u>"},
    ]}  # fmt: skip
    page = codebook_html(Schema.parse(raw), "run-1")
    for markup in ("<script>", "<b>", "<i>", "<u>"):
        assert markup not in page
    assert "&lt;script&gt;" in page
    shown = codebook_html(SCHEMA, "run-1")
    for text in ("below 3", "not graded", "of the stay", "euro", "rest for all others", SCHEMA.hash):
        assert text in shown
