"""Tables that are read by columns: the same rows, codes, findings and refusals as row by row, for good and bad ones."""

import csv
import io
import math
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from party.home.settings import Dataset
from party.readers import parquet
from party.readers.typed import speller_of, typed_batches
from party.source import check, load, offending
from protocol.errors import DataError
from protocol.services import delimited_rows
from protocol.services.delimited import Dialect
from protocol.services.delimited_rows import DelimitedRows
from protocol.tables import batches
from protocol.tables.schema import Schema
from tests.support.effort import examples

HEADER = ["id", "age", "size", "sex", "day", "note"]
SCHEMA = Schema.parse(
    {
        "attributes": [
            {"name": "age", "kind": "integer", "min": 0, "max": 99, "bins": 10, "missing": [""]},
            {"name": "size", "kind": "real", "min": 0, "max": 3, "bins": 3, "missing": ["NA", "?"]},
            {"name": "sex", "kind": "categorical", "values": ["f", "m"], "other": "x", "missing": ["?"]},
            {"name": "day", "kind": "date", "min": "2020", "max": "2021", "resolution": "month"},
        ]
    }
)
GOOD = {
    "id": [f"p{number}" for number in range(40)],
    "age": ["0", "39", "99", "", "7", "05", "+5", "1e1", "4.0"],
    "size": ["1.75", "0", "NA", "?", "3.", ".5", "2.999999999999999999", "1"],
    "sex": ["f", "m", "?", "divers", "ü", " f"],
    "day": ["2020-01-31", "2021-12-31", "2020-02-29"],
    "note": ["", "a, b", 'he said "no"', "null", "NaN", "two\nlines", "x;y", "'", "\u2028", "\t"],
}
BAD = [
    "",
    "100",
    "-1",
    "1_0",
    " 5 ",
    "nan",
    "4.5",
    "1e999",
    "2020-02-30",
    "2019-12-31",
    "\x0b",
    "\0",
    '"',
    "\r",
    "9" * 301,
]
ENDS = ["\n", "\n", "\n", "\r\n", "\r", "\n\n", "\r\n\r\n"]


@st.composite
def fields(draw: Any, name: str, delimiter: str, quote: str) -> str:
    """A field as files have it: mostly good, mostly quoted where it must be."""
    values = GOOD[name] if draw(st.integers(0, 24)) else BAD
    text = draw(st.sampled_from(values))
    needs = any(sign in text for sign in (delimiter, quote, "\n", "\r") if sign)
    if not quote or draw(st.integers(0, 3)) == (0 if needs else 3) or not (needs or draw(st.booleans())):
        return text
    return quote + text.replace(quote, quote * 2) + quote


@st.composite
def texts(draw: Any, dialect: Dialect) -> str:
    """A text with a header, as programs and people write them, sometimes with a row or a sign that should not be."""
    end = draw(st.sampled_from(ENDS))
    lines = [dialect.delimiter.join(HEADER)]
    for _ in range(draw(st.integers(0, 12))):
        row = [draw(fields(name, dialect.delimiter, dialect.quote)) for name in HEADER]
        if not draw(st.integers(0, 40)):
            row = row[: draw(st.integers(0, 5))] or [*row, "more"]
        lines.append(dialect.delimiter.join(row))
    text = end.join(lines) + end * draw(st.integers(0, 2))
    if not draw(st.integers(0, 2)):
        place = draw(st.integers(0, len(text)))
        text = (
            text[:place]
            + draw(st.sampled_from([dialect.quote, dialect.quote, "\r", "\n", ",", "\ufeff", "\0", "é"]))
            + text[place:]
        )
    return text


DIALECTS = st.builds(
    Dialect,
    delimiter=st.sampled_from([",", ";", "\t", "|", " ", "§"]),
    quote=st.sampled_from(['"', '"', '"', "'", ""]),
    codec=st.sampled_from(["utf-8-sig", "utf-8-sig", "utf-16", "utf-16-le", "iso-8859-1"]),
)


@contextmanager
def blocks_of(size: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delimited_rows, "BLOCK", size)
        yield


def by_python(text: str, dialect: Dialect) -> tuple[list[list[str]], bool]:
    """The rows as Python's reader finds them in the whole text, up to the first that it cannot read."""
    rows: list[list[str]] = []
    try:
        for row in dialect.reader(io.StringIO(text, newline="")):
            rows.append(row)
    except csv.Error:
        return [row for row in rows if row], True
    return [row for row in rows if row], False


@settings(deadline=None, max_examples=examples(400))
@given(st.data(), DIALECTS, st.integers(1, 200), st.integers(1, 40))
def test_every_text_gives_the_rows_that_python_s_reader_finds(data, dialect, block, chunk):
    text = data.draw(texts(dialect))
    encoded = text.encode(dialect.codec, "replace")
    text = encoded.decode(dialect.codec)
    chunks = (encoded[at : at + chunk] for at in range(0, len(encoded), chunk))
    rows: list[Any] = []
    failed = False
    with blocks_of(block):
        found = DelimitedRows("t", chunks, dialect)
        try:
            rows.append(found.header)
            for batch in found.batches():
                rows += map(list, batch.in_rows())
        except csv.Error:
            failed = True
    expected = by_python(text, dialect)
    if failed:
        # The rows of the block in which reading ends are not handed out.
        assert (rows, True) == (expected[0][: len(rows)], expected[1])
    else:
        assert ([row for row in rows if row], False) == expected
        assert found.line == len(list(io.StringIO(text, newline="")))


def dataset(dialect: Dialect, **more: Any) -> Dataset:
    given = {"source": "t.csv", "schema": "s.json", "epsilon_total": "1", "encoding": "utf-8", "decimal": "."}
    return Dataset.model_validate(given | {"delimiter": dialect.delimiter, "quote": dialect.quote} | more)


RULES = [
    {},
    {"out_of_range": "clamp"},
    {"out_of_range": "missing"},
    {"person_key": "id"},
    {"person_key": "id", "rows_per_person": 2, "out_of_range": {"age": "clamp", "sex": "missing"}},
    {"person_key": "note", "rows_per_person": 1},
]


def outcome(folder: Path, source: Dataset, schema: Schema = SCHEMA) -> list[Any]:
    """What the data owner is told of a file, and what a run would count."""
    told: list[Any] = []
    for act in (
        lambda: [column.tolist() for column in load(folder, source, schema, b"secret")],
        lambda: check(folder, source, schema),
        lambda: offending(folder, source, schema, 3),
    ):
        try:
            told.append(act())
        except DataError as error:
            told.append(str(error))
    return told


@settings(deadline=None, max_examples=examples(200))
@given(st.data(), st.sampled_from(RULES), st.integers(1, 300))
def test_a_table_means_the_same_by_columns_and_by_rows(tmp_path_factory, data, rules, block):
    dialect = Dialect(delimiter=data.draw(st.sampled_from([",", ";"])))
    folder = tmp_path_factory.getbasetemp()
    (folder / "t.csv").write_bytes(data.draw(texts(dialect)).encode())
    source = dataset(dialect, **rules)
    with blocks_of(block):
        by_columns = outcome(folder, source)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(delimited_rows, "is_plain", lambda *_: False)
            assert by_columns == outcome(folder, source)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("1,2\n3,4\n", True),
        ('"1","2"\n3,"a""b, c"""\n\n"",', True),
        ("1,2\r\n3,4\r\n", True),
        ("1,2\r3,4\n", False),
        ('1,2"\n3,4\n', False),
        ('1,"2\n"\n3,4\n', False),
        ("1,2\n3\n", False),
        ("1,\0\n", False),
        ("1," + "2" * 100_000 + "\n", False),
    ],
)
def test_plain_blocks_are_split_by_columns(text, plain):
    found = DelimitedRows("t", [b"a,b\n", text.encode()], Dialect())
    assert found.header == ["a", "b"]
    batches = list(found.batches())
    rows = list(chain.from_iterable(batch.in_rows() for batch in batches))
    assert [*map(list, rows)] == by_python(text, Dialect())[0]
    assert all((batch.columns[0].places is not None) == plain for batch in batches)


# Parquet

TYPED = Schema.parse(
    {
        "attributes": [
            {"name": "i", "kind": "integer", "min": -5, "max": 300, "bins": 9, "missing": ["NA"]},
            {"name": "r", "kind": "real", "min": -1, "max": 1000, "bins": 7, "missing": ["", "nan"]},
            {"name": "c", "kind": "categorical", "values": ["0", "1.0", "true", "a", "2020-01-01"], "missing": ["?"]},
            {"name": "b", "kind": "boolean", "true": ["yes", "1"], "false": ["no", "0"]},
            {"name": "d", "kind": "date", "min": "2019", "max": "2021", "resolution": "month", "format": "%d.%m.%Y"},
            {"name": "t", "kind": "datetime", "min": "2020", "max": "2020", "resolution": "month", "missing": ["-"]},
        ]
    }
)
_WHOLE = st.integers(-6, 127) | st.just(0)
_DAYS = st.integers(-400, 800).map(lambda days: date(2020, 1, 1) + timedelta(days))
_MOMENTS = st.integers(-(10**14), 10**14).map(lambda ticks: datetime(2020, 6, 1) + timedelta(microseconds=ticks // 7))
_TEXTS = st.sampled_from(["0", "1.0", "", "a", "yes", "?", "2020-01-01", "17.03.2020", "ü", "1e2", " 1", "NA", "true"])
COLUMNS = (
    *((kind(), _WHOLE) for kind in (pa.int8, pa.int16, pa.int32, pa.int64)),
    *((kind(), st.integers(0, 255)) for kind in (pa.uint8, pa.uint16, pa.uint32, pa.uint64)),
    *(
        (kind(), st.sampled_from([0.0, -0.0, 1.0, 0.1, 1e20, 1e-7, math.nan, math.inf]))
        for kind in (pa.float32, pa.float64)
    ),
    (pa.float64(), st.floats(-2, 1001)),
    (pa.decimal128(7, 3), st.integers(-(10**6), 10**6).map(lambda units: Decimal(units).scaleb(-3))),
    (pa.decimal128(20, 0), _WHOLE.map(Decimal)),
    (pa.bool_(), st.booleans()),
    (pa.date32(), _DAYS),
    (pa.date64(), _DAYS),
    *(
        (pa.timestamp(unit), _MOMENTS.map(lambda moment: moment.replace(microsecond=0)))
        for unit in ("s", "ms", "us", "ns")
    ),
    (pa.timestamp("us"), _MOMENTS),
    (pa.timestamp("us", "UTC"), _MOMENTS),
    *((kind, _TEXTS) for kind in (pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string()))),
    (pa.dictionary(pa.int32(), pa.int64()), _WHOLE),
    (pa.binary(), _TEXTS.map(str.encode)),
    (pa.list_(pa.int8()), st.lists(_WHOLE, max_size=2)),
)


@st.composite
def typed_tables(draw: Any) -> Any:
    rows = draw(st.integers(1, 12))
    columns = {}
    for name in ("id", *TYPED.names):
        kind, values = draw(st.sampled_from(COLUMNS))
        texts = draw(st.lists(values if draw(st.booleans()) else st.none() | values, min_size=rows, max_size=rows))
        columns[name] = pa.array(texts, kind)
    return pa.table(columns)


@settings(deadline=None, max_examples=examples(160))
@given(typed_tables(), st.sampled_from(RULES[:4]), st.integers(1, 5), st.integers(1, 12), st.booleans(), st.booleans())
def test_a_parquet_file_means_the_same_by_columns_and_by_rows(tmp_path_factory, table, rules, rows, group, listed, own):
    folder = tmp_path_factory.getbasetemp()
    with pyarrow.parquet.ParquetWriter(
        folder / "t.parquet", table.schema, use_dictionary=listed, store_schema=own
    ) as file:
        file.write_table(table, row_group_size=group)
    source = Dataset.model_validate({"source": "t.parquet", "schema": "s.json", "epsilon_total": "1"} | rules)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "CELLS", rows * len(table.schema))
        by_columns = outcome(folder, source, TYPED)
        patch.setattr(parquet, "file_by_columns", lambda *_: None)
        assert by_columns == outcome(folder, source, TYPED)


# Databases and sheets


ALIKE = (
    (0, 1, True, False, 1.0, "1"),
    (Decimal("1.0"), Decimal("1.00"), Decimal(1)),
    (datetime(2020, 1, 1, 1, tzinfo=UTC), datetime(2020, 1, 1, 2, tzinfo=timezone(timedelta(hours=1)))),
    (0.0, -0.0, 2.5, math.nan),
    (date(2020, 1, 1), datetime(2020, 1, 1)),
    ("", "1", "1.0", b"1"),
)
POOLS = st.sampled_from(ALIKE).flatmap(lambda own: st.lists(st.sampled_from((*own, None)), min_size=1, max_size=4))


@settings(deadline=None)
@given(st.lists(POOLS, min_size=len(TYPED.names), max_size=len(TYPED.names)))
def test_equal_values_of_other_types_keep_their_texts(pools):
    rows = [tuple(pool[number % len(pool)] for pool in pools) for number in range(9)]
    spellers = [speller_of(attribute) for attribute in TYPED.attributes[: len(pools)]]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches, "BATCH", 5)
        found = chain.from_iterable(batch.in_rows() for batch in typed_batches(rows, spellers))
        spelled = [tuple(spell(value) for spell, value in zip(spellers, row, strict=True)) for row in rows]
        assert list(found) == spelled
