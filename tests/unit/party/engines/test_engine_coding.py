"""Codes that an engine works out: the same as here, value by value, up to the last digit at every edge."""

import itertools
import struct
from collections import Counter
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from party.engines.coding import ColumnCoder
from party.engines.connection import connected
from party.engines.table import by_code, examined
from protocol.tables.schema import Schema
from tests.support.effort import examples
from tests.support.engines import batches_here, coder_here, in_engine

WHOLE = {"name": "x", "kind": "integer", "min": -3, "max": 96}
REAL = {"name": "x", "kind": "real", "min": -1, "max": 1, "bins": 3}
LISTED = {"name": "x", "kind": "categorical", "values": ["1", "2", "true", "a"], "missing": ["-9", ""]}
DAY = {"name": "x", "kind": "date", "min": "2019-11", "max": "2021", "resolution": "month"}
HOUR = {"name": "x", "kind": "datetime", "min": "2020-02-28", "max": "2020-03-01", "resolution": "hour"}


def near(*numbers: float) -> list[float]:
    return [found for one in numbers for found in (one, np.nextafter(one, -np.inf), np.nextafter(one, np.inf))]


def near32(*numbers: float) -> list[float]:
    narrow = (np.float32(one) for one in numbers)
    return [float(x) for n in narrow for x in (n, np.nextafter(n, np.float32(-9)), np.nextafter(n, np.float32(9)))]


FLOATS = [*near(-1, -1 / 3, 1 / 3, 1, 0.1, 0.3), 0.0, -0.0, 1e300, 9.99e299, -9.0, float("nan"), float("inf"), 5e-324]
DAYS = [date(2019, 10, 31), date(2019, 11, 1), date(2020, 2, 29), date(2021, 12, 31), date(2022, 1, 1), date(1, 1, 1)]
MOMENTS = [datetime(2020, 2, 28) + timedelta(seconds=s) for s in (-1, 0, 3599, 3600, 86_400 * 3 - 1, 86_400 * 3)]
MOMENTS += [datetime(2020, 2, 28, 23, 59, 59, 999_999), datetime(1999, 12, 31, 23, 59, 59, 999_999)]
CASES: dict[str, tuple[dict[str, Any], str, list[Any]]] = {
    "integers": (WHOLE, "BIGINT", [-4, -3, 0, 96, 97, 2**63 - 1, -(2**63)]),
    "small integers": (WHOLE, "TINYINT", [-128, -4, -3, 96, 97, 127]),
    "unsigned integers": (WHOLE, "UBIGINT", [0, 96, 97, 2**64 - 1]),
    "integers in bins": (WHOLE | {"bins": 7}, "INTEGER", [*range(-5, 99)]),
    "a number that stands for missing": (WHOLE | {"missing": ["-9", "0099"]}, "INTEGER", [-9, 99, -8]),
    "integers as floats": (WHOLE, "DOUBLE", [*FLOATS, 3.0, 3.5, -3.0, 96.0, 96.5]),
    "integers as decimals": (WHOLE, "DECIMAL(10,2)", [Decimal("3.00"), Decimal("3.01"), Decimal("-3.01")]),
    "floats": (REAL | {"missing": ["-9", "nan"]}, "DOUBLE", FLOATS),
    "floats between edges": (
        {"name": "x", "kind": "real", "edges": [0, 0.1, 0.30000000000000004, 0.7]}, "DOUBLE", near(0, 0.1, 0.3, 0.7)
    ),
    "narrow floats": (REAL | {"missing": ["-9"]}, "REAL", [*near32(-1, -1 / 3, 1 / 3, 1, 0.1), -9.0]),
    "decimals": (
        REAL | {"missing": ["-9"]},
        "DECIMAL(18,4)",
        [Decimal(units).scaleb(-4) for units in (-10_000, -10_001, -3333, -3334, 3333, 3334, 10_000, 10_001, -90_000)],
    ),
    "texts with numbers": (REAL, "VARCHAR", ["0.1", "1e-1", " 1", "nan", "", "1.0000000000000000001", "-.5"]),
    "texts": (LISTED, "VARCHAR", ["1", "a", "A", "", "-9", "b", "a "]),
    "texts, any other": (LISTED | {"other": "rest"}, "VARCHAR", ["1", "a", "", "-9", "b"]),
    "listed integers": (LISTED, "INTEGER", [1, 2, 3, -9]),
    "listed integers, any other": (LISTED | {"other": "rest"}, "INTEGER", [1, 2, 3, -9]),
    "listed truths": (LISTED, "BOOLEAN", [True, False]),
    "listed floats": (LISTED, "DOUBLE", [1.0, 2.5, -9.0]),
    "truths": ({"name": "x", "kind": "boolean", "true": ["yes"], "false": ["no"]}, "BOOLEAN", [True, False]),
    "days": (DAY, "DATE", DAYS),
    "days with a token": (DAY | {"missing": ["9999-12-31"]}, "DATE", [*DAYS, date(9999, 12, 31)]),
    "days as texts": (DAY, "VARCHAR", ["2020-02-29", "2020-02-30", "2018-01-01", ""]),
    "days as moments": (DAY, "TIMESTAMP", MOMENTS),
    "moments": (HOUR, "TIMESTAMP", MOMENTS),
    "moments as days": (HOUR, "DATE", [date(2020, 2, 27), date(2020, 2, 28), date(2020, 3, 1), date(2020, 3, 2)]),
    "years": ({"name": "x", "kind": "date", "min": "1999", "max": "2021", "resolution": "year", "format": "%Y"},
              "INTEGER", [1998, 1999, 2021, 2022]),
    "the last year of all": (DAY | {"max": "9999-12-31", "resolution": "year"}, "DATE", DAYS),
}  # fmt: skip


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    return tmp_path_factory.mktemp("coding") / "coding.duckdb"


def differences(database: Any, attribute: dict[str, Any], kind: str, values: list[Any]) -> tuple[Any, Any]:
    """How often each class and code occurs, as the engine says and as it is here."""
    schema, rows = Schema.parse({"attributes": [attribute]}), [(value,) for value in [*values, None]]
    with duckdb.connect(str(database)) as connection:
        connection.execute(f"CREATE OR REPLACE TABLE t (x {kind})")
        connection.executemany("INSERT INTO t VALUES (?)", rows)
        kept = connection.execute("SELECT x FROM t").fetchall()
    if kind == "REAL":  # drivers give such a number as the shortest text that is read as the same
        kept = [(None if x is None else float(str(np.float32(x))),) for (x,) in kept]
    here, batch = coder_here(schema, ["x"]), lambda: batches_here(schema, ["x"], kept)
    wanted = Counter({problem.what: problem.count for problem in here.problems(batch())})
    found = examined(in_engine(f"duckdb:///{database}"), schema)
    return Counter({problem.what: problem.count for problem in found.problems}), wanted


@pytest.mark.parametrize("case", CASES)
def test_each_value_gets_the_code_that_it_gets_here(database, case):
    attribute, kind, values = CASES[case]
    codes_of_each(database, attribute, kind, values)


def codes_of_each(database: Any, attribute: dict[str, Any], kind: str, values: list[Any]) -> None:
    (parsed,) = Schema.parse({"attributes": [attribute]}).attributes
    with duckdb.connect(str(database)) as connection:
        connection.execute(f"CREATE OR REPLACE TABLE t (n INTEGER, x {kind})")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [*enumerate([*values, None])])
        kept = [x for (x,) in connection.execute("SELECT x FROM t ORDER BY n").fetchall()]
    narrow = kind == "REAL"
    spelled = [float(str(np.float32(x))) if narrow and x is not None else x for x in kept]
    with connected(f"duckdb:///{database}", "the engine") as engine:
        rows = engine.relation("SELECT * FROM t")
        coder = ColumnCoder(parsed, rows.schema()["x"], engine.name)
        fetched = by_code(coder, [value for value in spelled if value is not None]) if coder.needs_values else None
        lines = engine.fetched(rows.select(n=rows.n, c=coder.codes(rows.x, fetched)).order_by("n"))
    wanted = [(str(value), coder.code_of(value)) for value in spelled]
    assert [*zip(map(str, spelled), lines["c"].to_pylist(), strict=True)] == wanted


@given(data=st.data())
@settings(max_examples=examples(15), deadline=None)
def test_any_number_near_any_edge_gets_its_code(data, tmp_path_factory):
    low = data.draw(st.integers(-10, 10))
    bins, whole = data.draw(st.integers(1, 40)), data.draw(st.booleans())
    high = low + data.draw(st.integers(bins, 3 * bins))
    kind = "integer" if whole else "real"
    attribute = {"name": "x", "kind": kind, "min": low, "max": high, "bins": bins}
    (parsed,) = Schema.parse({"attributes": [attribute]}).attributes
    cuts = data.draw(st.lists(st.sampled_from(parsed.cuts), min_size=1, max_size=12))
    values = [moved(float(cut), steps) for cut, steps in zip(cuts, itertools.cycle((0, 1, -1, 2, -2)))]
    values += data.draw(st.lists(st.floats(), max_size=8))
    database = tmp_path_factory.mktemp("near") / "near.duckdb"
    codes_of_each(database, attribute, "DOUBLE", values)
    places = data.draw(st.integers(0, 6))
    units = [int(Fraction(cut) * 10**places) + more for cut in cuts for more in (-1, 0, 1)]
    codes_of_each(database, attribute, f"DECIMAL(18,{places})", [Decimal(one).scaleb(-places) for one in units])


def moved(number: float, steps: int) -> float:
    """The float so many steps further; 0 stays."""
    bits = struct.unpack("<q", struct.pack("<d", number))[0]
    return float(struct.unpack("<d", struct.pack("<q", bits + steps))[0]) if number else number


def test_bad_values_are_counted_by_class(database):
    found, wanted = differences(database, WHOLE, "DOUBLE", [*FLOATS, 3.5, 3.5, 1000.0])
    assert found == wanted
    assert len(wanted) >= 4
