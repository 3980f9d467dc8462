"""Dependence of columns as one number: its value by hand, its sensitivity on every small table, and chance."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from protocol.tables.counting import Rows
from protocol.tables.dependence import by_chance, dependence, sensitivity
from protocol.tables.domain import Domain

NEVER = 0  # a bound of which a strong pair falls short by a quarter of the rows


def rows_of(sizes: Sequence[int], table: Sequence[Sequence[int]]) -> Rows:
    return Rows(Domain.of_sizes(sizes), [np.array(column, dtype=np.uint8) for column in zip(*table, strict=True)])


def test_by_hand() -> None:
    together = [(0, 0)] * 6 + [(1, 1)] * 2  # products 4.5, 1.5, 1.5, 0.5: every cell is off by 1.5
    assert dependence(rows_of((2, 2), together), NEVER) == 3
    with_third = [(*row, number % 2) for number, row in enumerate(together)]  # independent of both
    assert dependence(rows_of((2, 2, 2), with_third), NEVER) == 1
    assert dependence(rows_of((2, 3), [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]), NEVER) == 0
    assert dependence(rows_of((3, 3), [(0, 0), (1, 1), (2, 2)] * 4), NEVER) == 8


def test_one_row_and_one_category_depend_on_nothing() -> None:
    assert dependence(rows_of((2, 2), [(1, 0)]), NEVER) == 0
    assert dependence(rows_of((1, 2), [(0, 0), (0, 1)]), NEVER) == 0


def test_levels_that_differ_between_parties_are_no_dependence() -> None:
    """Within each party the columns are independent, though pooled they are equal."""
    assert dependence(rows_of((2, 2), [(0, 0)] * 50), NEVER) == dependence(rows_of((2, 2), [(1, 1)] * 50), NEVER) == 0


def test_a_strong_pair_among_many_reaches_the_bound_and_a_weak_one_does_not_count() -> None:
    data = np.random.default_rng(7)
    columns = data.integers(0, 2, (20, 1000)).astype(np.uint8)
    domain, below = Domain.of_sizes((2,) * 20), 30
    assert dependence(Rows(domain, list(columns)), below) < below
    strong = columns.copy()
    strong[1] = np.where(data.random(1000) < 0.7, strong[0], strong[1])  # depends by about 0.35
    assert dependence(Rows(domain, list(strong)), below) >= below
    weak = columns.copy()
    weak[1] = np.where(data.random(1000) < 0.2, weak[0], weak[1])
    assert dependence(Rows(domain, list(weak)), below) < below


def test_the_number_is_never_more_than_the_rows() -> None:
    """So that it fits where counts of the rows do, whatever the bound is."""
    for below in (0, 5, 40, 10**6):
        assert 0 <= dependence(rows_of((3, 3), [(0, 0), (1, 1), (2, 2)] * 13), below) <= 39


@pytest.mark.parametrize("rows", [1, 3, 2 * 10**9])
def test_the_largest_tables_do_not_overflow(rows: int) -> None:
    class Extreme(Rows):
        def tables(self, several):  # type: ignore[no-untyped-def]
            half = rows // 2
            return [np.array([[half, 0], [0, rows - half]], dtype=np.int64) for _ in several]

    found = Extreme(Domain.of_sizes((2, 2)), [np.zeros(1, dtype=np.uint8)] * 2)
    found.count = rows
    half = rows // 2
    assert dependence(found, NEVER) == 2 * half * (rows - half) // rows


# Sensitivity


def every_table(sizes: Sequence[int], rows: int) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Every table of so many rows; their order does not matter."""
    return combinations_with_replacement(list(product(*map(range, sizes))), rows)


@pytest.mark.parametrize(
    ("sizes", "rows"),
    [((2, 2), 1), ((2, 2), 2), ((2, 2), 9), ((2, 2, 2), 4), ((2, 3), 6), ((3, 3), 4), ((2, 2, 3), 3), ((1, 2), 5)],
)
@pytest.mark.parametrize("below", [0, 1, 10])
def test_no_changed_row_moves_the_number_further_than_its_sensitivity(
    sizes: Sequence[int], rows: int, below: int
) -> None:
    values, found = list(product(*map(range, sizes))), dict[tuple[tuple[int, ...], ...], int]()
    for table in every_table(sizes, rows):
        found[table] = dependence(rows_of(sizes, table), below)
    worst = 0
    for rest in every_table(sizes, rows - 1):
        numbers = [found[tuple(sorted((*rest, value)))] for value in values]
        worst = max(worst, max(numbers) - min(numbers))
    assert worst <= sensitivity(sizes)


def test_the_bounds_of_the_proof_hold_before_rounding_and_that_of_bits_is_nearly_reached() -> None:
    def exact(table: tuple[tuple[int, int], ...], sizes: Sequence[int]) -> Fraction:
        counts = np.zeros(sizes, dtype=int)
        for one in table:
            counts[one] += 1
        n, a, b = len(table), counts.sum(1), counts.sum(0)
        distances = (abs(int(counts[i, j]) - Fraction(int(a[i] * b[j]), n)) for i, j in np.ndindex(*sizes))
        return sum(distances, start=Fraction(0)) / 2

    for sizes, rows, least in (((2, 2), 8, Fraction(7, 4)), ((3, 3), 5, Fraction(9, 5))):
        values, worst = list(product(*map(range, sizes))), Fraction(0)
        for rest in every_table(sizes, rows - 1):
            numbers = [exact((*rest, value), sizes) for value in values]  # type: ignore[arg-type]
            worst = max(worst, max(numbers) - min(numbers))
        assert least <= worst < sensitivity(sizes)


def test_sensitivity_follows_from_the_largest_column() -> None:
    assert sensitivity((2, 2, 2)) == sensitivity((1, 2)) == 2
    assert sensitivity((2, 2, 3)) == 3


# Chance


@pytest.mark.parametrize("sizes", [(2,) * 8, (3,) * 6, (2, 2, 4, 4)])
def test_chance_is_what_independent_columns_show(sizes: Sequence[int]) -> None:
    data, rows = np.random.default_rng(3), 4000
    domain = Domain.of_sizes(sizes)
    even = [
        dependence(Rows(domain, [data.integers(0, size, rows).astype(np.uint8) for size in sizes]), NEVER)
        for _ in range(30)
    ]
    assert np.mean(even) == pytest.approx(by_chance(sizes, rows), rel=0.1)
    uneven = [(data.random(rows) < 0.05).astype(np.uint8) for _ in sizes]
    assert dependence(Rows(domain, uneven), NEVER) < by_chance(sizes, rows)


def test_chance_is_the_same_for_any_number_of_like_columns() -> None:
    assert by_chance((2,) * 400, 10**6) == by_chance((2, 2), 10**6) == 398
