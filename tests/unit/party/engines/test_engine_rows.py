"""Tables over rows in an engine: the same as over rows here, for any encoding, by the stated number of scans."""

from collections import Counter
from itertools import combinations
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto.randomness import Stream
from party.engines import rows as engine_rows
from party.engines.rows import EngineRows, Frozen, Known, statements
from party.errors import PolicyRefusal
from protocol.tables.any_rows import AT_ONCE
from protocol.tables.counting import Rows
from protocol.tables.domain import Domain
from protocol.tables.encoding import Encoding
from protocol.tables.schema import Schema
from tests.support.effort import examples
from tests.support.engines import change, coded_here, duckdb_with, fetched, in_engine, rows_there

SCHEMA = Schema.parse(
    {
        "attributes": [
            {"name": "age", "kind": "integer", "min": 0, "max": 99, "bins": 20, "missing": [""]},
            {"name": "bmi", "kind": "real", "min": 0, "max": 40, "bins": 7},
            {"name": "sex", "kind": "categorical", "values": ["f", "m"], "other": "x", "missing": ["?"]},
            {"name": "day", "kind": "date", "min": "2019", "max": "2021", "resolution": "month"},
            {
                "name": "work",
                "kind": "categorical",
                "values": ["clerk", "smith", "baker"],
                "taxonomy": {"hands": ["smith", "baker"], "desk": ["clerk"]},
            },
        ]
    }
)
ROWS = 4000
TABLE = f"""CREATE TABLE t AS SELECT
  CASE WHEN i % 17 <> 0 THEN (i * 7) % 100 END AS age, ((i * 13) % 400) / 10.0 :: DOUBLE AS bmi,
  CASE WHEN i % 5 <> 0 THEN ['f', 'm', 'd'][1 + i % 3] END AS sex,
  DATE '2019-01-01' + ((i * 31) % 1000) :: INT AS day, ['clerk', 'smith', 'baker'][1 + (i * i) % 3] AS work
  FROM range({ROWS}) AS r(i)"""


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    return duckdb_with(tmp_path_factory.mktemp("rows"), TABLE)


@pytest.fixture
def name():
    return f"subn_run_{Stream.system().take(8).hex()}"


@pytest.fixture(scope="module")
def codes(url):
    return coded_here(SCHEMA, *fetched(url))


@pytest.fixture(scope="module", params=["native", "binary", "gray", "hierarchical"])
def both(request, url, codes):
    encoding = Encoding.of(SCHEMA, request.param)
    here = Rows(encoding.domain, encoding.encode(codes))
    name, dataset = f"subn_run_{request.param}", in_engine(url)
    rows_there(dataset, SCHEMA, ROWS, encoding, name)
    return here, lambda: EngineRows.of(Frozen(dataset, SCHEMA, name, ROWS), encoding)


def alike(here, there, sets):
    for one, other in zip(here.tables(sets), there.tables(sets), strict=True):
        assert one.dtype == other.dtype == np.int64
        np.testing.assert_array_equal(one, other)


@st.composite
def sets_of(draw, domain: Domain):
    bases = draw(st.lists(st.integers(0, domain.count - 1), unique=True, max_size=4))
    return tuple(draw(st.sampled_from(domain.variants[base])) for base in bases)


@given(data=st.data())
@settings(max_examples=examples(8), deadline=None)
def test_any_tables_are_the_same(both, data):
    here, opened = both
    sets = data.draw(st.lists(sets_of(here.domain), min_size=1, max_size=12))
    fewest = data.draw(st.sampled_from([1, 256]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine_rows, "ROWS_OF_A_CELL", fewest)  # small tables are joined, or are not
        patch.setattr(engine_rows, "AT_ONCE", data.draw(st.sampled_from([1, 3, 64])))
        alike(here, opened(), sets)


def test_merged_categories_and_found_bins_are_the_same(both):
    here, opened = both
    if here.domain.count > len(SCHEMA.names):
        return  # bits are neither merged nor divided
    merged = here.domain.with_merged([(2, (0, 1, 1, 0)), (4, (0, 0, 1))])
    sets = [(0, len(merged.variables) - 1), (len(merged.variables) - 2, 1), (3, 1)]
    there = opened()
    alike(here.over(merged), there.over(merged), sets)
    starts = (0, 4, 5, 19)
    sizes = [len(starts) + 1, *here.domain.sizes[1 : here.domain.count]]
    divided = Domain.of_sizes(sizes)
    edges = ((0, starts),)
    alike(here.divided(divided, edges), there.divided(divided, edges), [(0,), (0, 3), (2, 0, 1)])


def test_tables_that_are_announced_are_counted_together_and_never_again(url, name):
    encoding = Encoding.of(SCHEMA, "native")
    there = rows_there(in_engine(url), SCHEMA, ROWS, encoding, name)
    pairs = [*combinations(range(5), 2)]
    there.expect(pairs)
    assert there.scans == 1
    for one, other in pairs:
        there.table((one, other))
        there.table((other, one))
    assert there.scans == 1
    assert there.table(()).tolist() == ROWS


@pytest.mark.parametrize(("most", "groups"), [(0, 105), (256, 105), (4096, 36), (16_384, 36), (65_536, 21)])
def test_groups_hold_every_table_once_and_a_scan_holds_enough_of_them(monkeypatch, most, groups):
    monkeypatch.setattr(engine_rows, "MOST_JOINED", most)
    variables = [Known.of(place, np.arange(16), 16) for place in range(15)]
    keys = [*combinations(variables, 2)]
    scans = [*statements(Frozen(in_engine("duckdb://"), SCHEMA, "subn_run_x", 10**9), keys)]
    found = [group for scan in scans for group in scan]
    assert Counter(key for group in found for key in group.tables) == Counter(keys)
    assert len(found) <= groups
    assert all(prod(group.shape) <= max(most, 256) for group in found)
    assert all(sum(len(group.tables) for group in scan) >= AT_ONCE for scan in scans[:-1])
    assert len(scans) <= -(-len(keys) // AT_ONCE)


def test_more_tables_than_there_is_room_for_are_counted_when_they_are_asked_for(url, name, monkeypatch):
    monkeypatch.setattr(engine_rows, "MOST_KEPT", 50)
    there = rows_there(in_engine(url), SCHEMA, ROWS, Encoding.of(SCHEMA, "native"), name)
    there.expect([(2,), (4,), (0, 3)])
    assert there.scans == 1
    assert there.table((2,)).sum() == ROWS
    assert there.scans == 1
    assert [there.table((0, 3)).sum(), there.table((0, 3)).sum()] == [ROWS, ROWS]
    assert there.scans == 3


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        ("DROP TABLE {}", "is gone"),
        ("DELETE FROM {} WHERE c4 = 1", "no longer has its rows"),
        ("UPDATE {} SET c4 = 3 WHERE c4 = 1", "holds a code that its schema does not have"),
    ],
)
def test_a_run_does_not_go_on_with_other_rows(url, name, damage, what):
    there = rows_there(in_engine(url), SCHEMA, ROWS, Encoding.of(SCHEMA, "native"), name)
    change(url, damage.format(name))
    with pytest.raises(PolicyRefusal, match=what):
        there.tables([(4,)])


def test_rows_that_change_behind_a_run_s_back_change_nothing(tmp_path, codes, name):
    url = duckdb_with(tmp_path, TABLE)
    encoding = Encoding.of(SCHEMA, "native")
    there = rows_there(in_engine(url), SCHEMA, ROWS, encoding, name)
    change(url, "UPDATE t SET work = 'clerk'")
    alike(Rows(encoding.domain, encoding.encode(codes)), there, [(4,), (0, 4)])
