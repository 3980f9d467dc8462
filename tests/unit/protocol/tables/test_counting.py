import numpy as np
import pytest

from protocol.errors import DataError
from protocol.tables import counting
from protocol.tables.bit_counting import LARGEST_SET, BitColumns
from protocol.tables.counting import Rows
from protocol.tables.domain import Domain, Variable

DATA = np.random.default_rng(20)


def random_rows(sizes, count, kind=np.uint16):
    columns = [DATA.integers(0, size, count).astype(kind) for size in sizes]
    return Rows(Domain.of_sizes(sizes), columns), columns


def plain_table(columns, sizes, variables):
    table = np.zeros([sizes[v] for v in variables], dtype=np.int64)
    np.add.at(table, tuple(columns[v] for v in variables), 1)
    return table


def test_a_table_by_hand():
    rows = Rows(Domain.of_sizes([2, 3]), [np.array([0, 0, 1, 1], np.uint8), np.array([2, 2, 0, 1], np.uint8)])
    assert rows.count == 4
    assert rows.table((0, 1)).tolist() == [[0, 0, 2], [1, 1, 0]]
    assert rows.table((1, 0)).tolist() == [[0, 1], [0, 1], [2, 0]]
    assert rows.table(()).tolist() == 4


@pytest.mark.parametrize("kind", [np.uint16, np.uint32])
def test_coded_tables_equal_a_plain_count(kind):
    sizes = [1, 256, 300, 2, 7]
    rows, columns = random_rows(sizes, 3000, kind)
    several = [(0, 1), (0, 1, 3), (0, 1, 3, 4), (2,), (4, 3), (1, 2), (0,), (1, 2, 3, 4)]
    for variables, table in zip(several, rows.tables(several), strict=True):
        assert table.dtype == np.int64
        assert np.array_equal(table, plain_table(columns, sizes, variables))


def test_more_rows_than_are_read_at_once():
    sizes = [5, 4]
    rows, columns = random_rows(sizes, 150_001, np.uint8)
    assert np.array_equal(rows.table((0, 1)), plain_table(columns, sizes, (0, 1)))


def test_generalised_variables_are_coded_through_their_groups():
    domain = Domain((Variable("a", 4, 0), Variable("b", 2, 1), Variable("a*", 2, 0, (1, 1, 0, 0))))
    rows = Rows(domain, [np.array([0, 1, 2, 3, 3], np.uint8), np.array([0, 1, 1, 1, 0], np.uint8)])
    assert rows.table((2, 1)).tolist() == [[1, 2], [1, 1]]


@pytest.mark.parametrize("kind", [np.uint8, np.uint32])
@pytest.mark.parametrize("count", [1, 63, 64, 65, 1000])
def test_binary_tables_of_every_size_equal_a_plain_count(count, kind):
    sizes = [2] * 8
    rows, columns = random_rows(sizes, count, kind)
    several = [tuple(DATA.permutation(8)[:size].tolist()) for size in range(1, 9) for _ in range(5)]
    assert rows.has_bits(LARGEST_SET)
    assert not rows.has_bits(LARGEST_SET + 1)
    for variables, table in zip(several, rows.tables(several), strict=True):
        assert np.array_equal(table, plain_table(columns, sizes, variables))


def test_more_words_than_are_read_at_once():
    sizes = [2] * 9
    rows, columns = random_rows(sizes, 700_001, np.uint8)
    sets = np.array([(0, 1, 8), (0, 1, 2), (3, 1, 7), (0, 1, 5), (4, 5, 6)])
    for variables, table in zip(sets.tolist(), rows.bit_tables(sets), strict=True):
        assert np.array_equal(table, plain_table(columns, sizes, variables))


def test_so_many_columns_that_a_set_has_no_64_bit_key_are_counted_by_codes():
    sizes = [2] * 2000
    rows, columns = random_rows(sizes, 10, np.uint8)
    assert not rows.has_bits(6)
    assert np.array_equal(rows.table((0, 5, 1999, 7, 8, 9)), plain_table(columns, sizes, (0, 5, 1999, 7, 8, 9)))


def test_no_rows_make_empty_tables():
    for sizes in ([2, 2], [2, 3]):
        rows, _ = random_rows(sizes, 0)
        assert rows.table((0, 1)).sum() == 0


def test_rows_do_not_print():
    rows, _ = random_rows([2, 2], 3)
    assert repr(rows) == "Rows(3 rows of 2 variables)"
    assert repr(BitColumns([np.zeros(3, dtype=np.uint8)] * 2, 3)) == "BitColumns(2 columns of 3 rows)"


def test_a_table_that_was_counted_before_is_the_same_in_any_order_whatever_became_of_it():
    rng = np.random.default_rng(7)
    rows = Rows(Domain.of_sizes((3, 4, 5)), [rng.integers(size, size=500, dtype=np.uint8) for size in (3, 4, 5)])
    first = rows.table((0, 2))
    expected = first.copy()
    first += 1
    assert rows.table((0, 2)).tolist() == expected.tolist()
    assert rows.table((2, 0)).tolist() == expected.T.tolist()


def test_counted_tables_are_kept_up_to_a_bound(monkeypatch):
    counts, bincount = [], np.bincount

    def counted(codes, minlength):
        counts.append(minlength)
        return bincount(codes, minlength=minlength)

    monkeypatch.setattr(counting, "COUNTED_CELLS", 20)
    monkeypatch.setattr(np, "bincount", counted)
    rows = Rows(Domain.of_sizes((3, 4, 5)), [np.zeros(10, dtype=np.uint8)] * 3)
    for _ in range(2):
        assert [table.sum() for table in rows.tables([(0, 1), (1, 2), (0,)])] == [10, 10, 10]
    assert sorted(counts) == [3, 12, 20, 20]


def test_rows_over_a_domain_are_made_once():
    rows, wider = (
        Rows(Domain.of_sizes((3,)), [np.zeros(2, np.uint8)]),
        Domain.of_sizes((3,)).with_merged([(0, (0, 0, 1))]),
    )
    assert rows.over(wider) is rows.over(wider) is not rows
    assert rows.over(wider).table((1,)).tolist() == [2, 0]


def test_scores_are_remembered_up_to_a_bound():
    rows, _ = random_rows([2], 3)
    for number in range(1 << 19):
        rows.remember(number, 7)
    rows.remember("one too many", 8)
    assert rows.remembered(0) == rows.remembered((1 << 19) - 1) == 7
    assert rows.remembered("one too many") is None


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([], "0 columns came for 2 variables"),
        ([np.zeros(3, np.uint8)], "1 columns came for 2 variables"),
        ([np.zeros(3, np.uint8), np.zeros(2, np.uint8)], "differ in length"),
        ([np.zeros(3, np.uint8), np.array([0, 5, 0], np.uint8)], "column v1 has a code outside 0 to 2"),
    ],
)
def test_columns_that_do_not_fit_are_refused(columns, message):
    with pytest.raises(DataError, match=message):
        Rows(Domain.of_sizes([2, 3]), columns)
