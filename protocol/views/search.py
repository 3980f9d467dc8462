"""Search for the cover with the least noise, by dynamic programming over runs of variables (covering.md).

It does not know which variable is which. It sees domain sizes in order and returns how to split them.
"""

import math
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from itertools import accumulate, repeat, takewhile

import numpy as np
from numpy.typing import NDArray

from protocol.views.galois import is_prime, lines, prime_powers_up_to

ONE_VIEW, PAIRS = 0, 1  # special values in place of a number of columns
ROOT_SCALE = 2**16
_FAR = 2**64  # larger than any total or number of views
_SLACK = 1 - 1e-5  # lower bounds are floats, and roots are rounded to whole units

Sizes = tuple[int, ...]
Summand = Callable[[int, NDArray[np.float64] | float], NDArray[np.float64] | float]  # from a view's size and cells


def error_summand(size: int, cells: NDArray[np.float64] | float) -> NDArray[np.float64] | float:
    """The error of a view: each of its pairs is summed from all its cells, and so carries the noise of all cells."""
    return math.comb(size, 2) * cells


def cube_root_summand(size: int, cells: NDArray[np.float64] | float) -> NDArray[np.float64] | float:
    return ROOT_SCALE * (math.comb(size, 2) * cells) ** (1 / 3)


def square_root_summand(size: int, cells: NDArray[np.float64] | float) -> NDArray[np.float64] | float:
    return ROOT_SCALE * (math.comb(size, 2) * cells) ** (1 / 2)


def cell_summand(_: int, cells: NDArray[np.float64] | float) -> NDArray[np.float64] | float:
    return cells


@dataclass(frozen=True)
class Design:
    """A way to cover a run of `count` variables: as one view, as pairs, or in rows of `columns` variables."""

    count: int
    columns: int
    rows: tuple["Design", ...]
    total: int  # sum of the summands of all views
    views: int


@dataclass(frozen=True)
class Price:
    """A linear price of designs. Its minimum over all designs can be found exactly, part by part."""

    of_total: int
    of_view: int

    def of(self, total: int, views: int) -> int:
        return self.of_total * total + self.of_view * views


@dataclass(frozen=True)
class Split:
    """A run split into rows of `columns` variables, with a lower bound on the total of the views across the rows."""

    columns: int
    rows: tuple[Sizes, ...]
    crossing_total: float
    crossing_views: int


@dataclass(frozen=True)
class Outline:
    """Figures of a run that bound the cost of any cover from below.

    A pair's share in a view of k variables is at least (summand, 1) / C(k, 2). The shares are listed for every k, once
    for the pair of the run with fewest cells (`low`) and once for the pair with most cells (`high`).
    """

    pairs: int
    low: tuple[tuple[float, float], ...]
    high: tuple[tuple[float, float], ...]
    mean_position: float  # mean of the pairs' cells, on a scale from 0 = low to 1 = high


@dataclass
class Search:
    summand: Summand
    columns: list[int]  # numbers of columns that may be used
    direct_pairs: bool
    largest_view: int
    _crossings: dict[tuple[Sizes, int], tuple[int, int] | None] = field(default_factory=dict)
    _undivided: dict[Sizes, list[Design]] = field(default_factory=dict)
    _outlines: dict[Sizes, Outline] = field(default_factory=dict)
    _splits: dict[Sizes, list[Split]] = field(default_factory=dict)

    def cheapest(self, sizes: Sizes, price: Price) -> Design:
        return _Pass(self, price).cheapest(sizes)

    def splits(self, sizes: Sizes) -> list[Split]:
        """Splits of a run of d variables into 2 <= l <= n rows of n columns, (l - 1) n < d <= l n."""
        if sizes not in self._splits:
            self._splits[sizes] = [self._split(sizes, n) for n in self.columns if n < len(sizes) <= n * n]
        return self._splits[sizes]

    def outline(self, sizes: Sizes) -> Outline:
        if sizes not in self._outlines:
            self._outlines[sizes] = self._outline(sizes)
        return self._outlines[sizes]

    def crossing(self, sizes: Sizes, columns: int) -> tuple[int, int] | None:
        """Total and number of the views that cross the rows, or None if one of these views has too many cells."""
        key = (sizes, columns)
        if key not in self._crossings:
            self._crossings[key] = self._count_crossing(sizes, columns)
        return self._crossings[key]

    def _count_crossing(self, sizes: Sizes, columns: int) -> tuple[int, int] | None:
        rows = math.ceil(len(sizes) / columns)
        padded = np.ones(rows * columns)
        padded[: len(sizes)] = sizes
        matrix = padded.reshape(rows, columns)
        last_column = lines(columns, rows)[-1]
        cells = np.ones(last_column.shape)
        for row, column in zip(matrix, lines(columns, rows), strict=True):
            cells *= row[column]
        if cells.max() > self.largest_view:
            return None
        full = last_column < len(sizes) - (rows - 1) * columns
        groups = [(rows, cells[full]), (rows - 1, cells[~full])]
        kept = [(size, group) for size, group in groups if size > 1]
        return sum(self._add_up(size, group) for size, group in kept), sum(group.size for _, group in kept)

    def undivided(self, sizes: Sizes) -> list[Design]:
        if sizes not in self._undivided:
            self._undivided[sizes] = [*self._as_one_view(sizes), *self._as_pairs(sizes)]
        return self._undivided[sizes]

    def _as_one_view(self, sizes: Sizes) -> Iterator[Design]:
        cells = math.prod(sizes)
        if len(sizes) == 1:
            yield Design(1, ONE_VIEW, (), 0, 0)
        elif cells <= self.largest_view:
            yield Design(len(sizes), ONE_VIEW, (), self._add_up(len(sizes), np.array([float(cells)])), 1)

    def _as_pairs(self, sizes: Sizes) -> Iterator[Design]:
        if self.direct_pairs and len(sizes) > 2:
            cells = np.outer(sizes, sizes)[np.triu_indices(len(sizes), 1)].astype(np.float64)
            yield Design(len(sizes), PAIRS, (), self._add_up(2, cells), cells.size)

    def _split(self, sizes: Sizes, columns: int) -> Split:
        """Split a run into rows, and bound the total of the crossing views from below.

        Every variable of a row lies on equally many lines of either length, so the geometric mean of these lines'
        cells follows from the rows. A summand is convex in the logarithm of cells, so the mean bounds the lines' total.
        """
        rows = tuple(sizes[start : start + columns] for start in range(0, len(sizes), columns))
        means = [math.exp(sum(map(_log, row)) / len(row)) for row in rows]
        full, short = columns * len(rows[-1]), columns * (columns - len(rows[-1]))
        total, views = full * float(self.summand(len(rows), math.prod(means))), full
        if len(rows) > 2:
            total, views = total + short * float(self.summand(len(rows) - 1, math.prod(means[:-1]))), views + short
        return Split(columns, rows, total, views)

    def _outline(self, sizes: Sizes) -> Outline:
        if len(sizes) == 1:
            return Outline(0, ((0.0, 0.0),), ((0.0, 0.0),), 0.0)
        rising, pairs = sorted(sizes), math.comb(len(sizes), 2)
        least, most = rising[0] * rising[1], rising[-1] * rising[-2]
        mean = (sum(sizes) ** 2 - sum(size * size for size in sizes)) / 2 / pairs
        position = (mean - least) / (most - least) if most > least else 0.0
        return Outline(pairs, self._shares(rising, least), self._shares(rising, most), position)

    def _shares(self, rising: list[int], pair_cells: int) -> tuple[tuple[float, float], ...]:
        least_cells = accumulate(repeat(rising[0], len(rising) - 2), operator.mul, initial=pair_cells)
        views = enumerate(takewhile(lambda cells: cells <= self.largest_view, least_cells), start=2)
        return tuple((float(self.summand(k, cells)) / math.comb(k, 2), 1 / math.comb(k, 2)) for k, cells in views)

    def _add_up(self, size: int, cells: NDArray[np.float64]) -> int:
        return int(np.rint(self.summand(size, cells)).astype(np.int64).sum())


class _Pass:
    """Search at one price, over every run of variables that can be reached from the whole."""

    def __init__(self, search: Search, price: Price) -> None:
        self._search = search
        self._price = price
        self._found: dict[Sizes, Design] = {}
        self._bounds: dict[Sizes, float] = {}

    def cheapest(self, sizes: Sizes) -> Design:
        if sizes not in self._found:
            self._found[sizes] = self._compare(sizes)
        return self._found[sizes]

    def _compare(self, sizes: Sizes) -> Design:
        best = min(self._search.undivided(sizes), key=self._rank, default=None)
        splits = self._search.splits(sizes)
        for bound, index in sorted((self._bound_in_rows(split), index) for index, split in enumerate(splits)):
            limit = math.inf if best is None else self._price.of(best.total, best.views)
            if bound * _SLACK > limit:
                break
            candidate = self._in_rows(sizes, splits[index], limit)
            if candidate is not None:
                best = min(best or candidate, candidate, key=self._rank)
        # If a pair fits into a view, a cover exists: the prime between d/2 and d gives two rows, crossed by pairs.
        assert best is not None
        return best

    def _in_rows(self, sizes: Sizes, split: Split, limit: float) -> Design | None:
        crossing = self._search.crossing(sizes, split.columns)
        if crossing is None or self._price.of(*crossing) + sum(map(self._bound, split.rows)) * _SLACK > limit:
            return None
        rows = tuple(map(self.cheapest, split.rows))
        total, views = (sum(part) for part in zip(crossing, *((r.total, r.views) for r in rows), strict=True))
        return Design(len(sizes), split.columns, rows, total, views)

    def _rank(self, design: Design) -> tuple[int, int]:
        # The number of columns breaks ties, so that every machine finds the same cover.
        return self._price.of(design.total, design.views), design.columns

    def _bound_in_rows(self, split: Split) -> float:
        return self._mix(split.crossing_total, split.crossing_views) + sum(map(self._bound, split.rows))

    def _bound(self, sizes: Sizes) -> float:
        """A lower bound on the cost of covering these variables, from the least cost of a pair in any view.

        The least cost of a pair is a concave function of its cells, so it lies above its chord, and the chord can be
        summed over all pairs.
        """
        if sizes not in self._bounds:
            run = self._search.outline(sizes)
            low, high = (min(self._mix(*share) for share in shares) for shares in (run.low, run.high))
            self._bounds[sizes] = run.pairs * (low + (high - low) * run.mean_position)
        return self._bounds[sizes]

    def _mix(self, total: float, views: float) -> float:
        return self._price.of_total * total + self._price.of_view * views


def least_total(search: Search, sizes: Sizes) -> Design:
    return search.cheapest(sizes, Price(1, 0))


def least_product(search: Search, sizes: Sizes) -> Design:
    """Find the design with the least views^2 * total: the best vertex of the lower convex hull (covering.md)."""
    few_terms, few_views = Price(_FAR, 1), Price(1, _FAR)
    start, end = search.cheapest(sizes, few_terms), search.cheapest(sizes, few_views)
    best = min(start, end, key=product)
    pending = [(start, few_terms, end, few_views)]
    while pending:
        left, left_price, right, right_price = pending.pop()
        if left.views == right.views or _corner(left, left_price, right, right_price) >= product(best):
            continue
        price = Price(left.views - right.views, right.total - left.total)
        between = search.cheapest(sizes, price)
        if price.of(between.total, between.views) < price.of(left.total, left.views):
            best = min(best, between, key=product)
            pending += [(left, left_price, between, price), (between, price, right, right_price)]
    return best


def total(design: Design) -> int:
    return design.total


def product(design: Design) -> int:
    return design.views**2 * design.total


def _corner(left: Design, left_price: Price, right: Design, right_price: Price) -> Fraction:
    """Compute views^2 * total where the lines of the two prices meet; no design between left and right is below."""
    a, b = left_price.of_total, left_price.of_view
    c, d = right_price.of_total, right_price.of_view
    first, second = left_price.of(left.total, left.views), right_price.of(right.total, right.views)
    determinant = a * d - b * c
    total, views = Fraction(first * d - b * second, determinant), Fraction(a * second - c * first, determinant)
    return views**2 * total


def usable_columns(count: int, primes_only: bool) -> list[int]:
    numbers = prime_powers_up_to(count - 1)
    return [n for n in numbers if is_prime(n)] if primes_only else numbers


@cache
def _log(size: int) -> float:
    return math.log(size)
