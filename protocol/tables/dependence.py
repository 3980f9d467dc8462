"""Dependence of the columns of one party's rows, as one whole number of rows.

It does not know noise, plans or other parties. The number is confidential until a mechanism has been applied to it.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from math import comb, floor, isqrt

import numpy as np
from numpy.typing import NDArray

from protocol.tables.any_rows import AnyRows
from protocol.tables.domain import Variables

STRONG = Fraction(1, 4)  # of the rows: a pair that depends so strongly counts as much as dependence of all pairs
_TURN = Fraction(710, 113)  # 2 pi, rounded up


def sensitivity(sizes: Sequence[int]) -> int:
    """The most by which the number changes if the values of one row do (`protocol/stages/dependence.md`)."""
    return 2 if max(sizes) <= 2 else 3


def by_chance(sizes: Sequence[int], rows: int) -> int:
    """The most dependence that so many rows of independent columns show on average over all pairs, in rows.

    A cell strays by the root of n p (1 - p) q (1 - q), times the root of 2 / pi. The roots add up to most where all
    categories are equally frequent.
    """
    many = Counter(sizes)
    pairs = {(a, b): many[a] * many[b] for a, b in combinations(many, 2)} | {(a, a): comb(many[a], 2) for a in many}
    each = (isqrt(floor(rows * (a - 1) * (b - 1) / _TURN)) * count for (a, b), count in pairs.items())
    return sum(each) // comb(len(sizes), 2)


def dependence(rows: AnyRows, below: int) -> int:
    """The mean dependence of all pairs of columns, in rows; at least `below` if one pair is strong.

    A pair's dependence is the distance in rows between its table and the product of its two columns' tables.
    Privacy: every operation here but rounding down changes by no more than the largest change of a pair. As that is
    bounded by a whole number, so is the change of what is rounded down.
    """
    pairs = list(combinations(range(rows.domain.count), 2))
    found = _twice_by_rows(rows, pairs)
    mean = Fraction(sum(found), 2 * rows.count * len(pairs))
    strongest = Fraction(max(found), 2 * rows.count)
    return floor(max(mean, strongest - max(0, floor(STRONG * rows.count) - below)))


def _twice_by_rows(rows: AnyRows, pairs: Sequence[Variables]) -> list[int]:
    """Every pair's dependence, times twice the number of rows."""
    tables, alike = rows.tables(pairs), defaultdict[tuple[int, ...], list[NDArray[np.int64]]](list)
    for table in tables:
        alike[table.shape].append(table)
    return [twice for several in alike.values() for twice in _of_tables(np.stack(several), rows.count)]


def _of_tables(tables: NDArray[np.int64], rows: int) -> list[int]:
    """The distances of equally large tables from independence, times twice the number of rows.

    Overflow safety: a party has at most 2 * 10^9 rows. So a product of two counts is at most 4 * 10^18, and a sum of
    distances over a table is at most 8 * 10^18, below 2^63.
    """
    product = tables.sum(axis=2)[:, :, None] * tables.sum(axis=1)[:, None, :]
    distances: list[int] = np.abs(rows * tables - product).sum(axis=(1, 2)).tolist()
    return distances
