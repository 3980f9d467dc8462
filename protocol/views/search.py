"""Which cover has the least noise: dynamic programming over runs of variables (argument in covering.md).

It does not know which variable is which: it sees domain sizes in order, and returns how to split them.
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

ONE_VIEW, PAIRS = 0, 1  # stand where a number of columns stands otherwise
ROOT_SCALE = 2**16
_FAR = 2**64  # outweighs any total or number of views
_SLACK = 1 - 1e-5  # lower bounds are floats, and roots are rounded to whole units

Sizes = tuple[int, ...]
Summand = Callable[[int, NDArray[np.float64] | float], NDArray[np.float64] | float]  # of a view: size, cells


def error_summand(size: int, cells: NDArray[np.float64] | float) -> NDArray[np.float64] | float:
    """Each of the view's pairs is summed from all its cells, so it carries the noise of all of them."""
    return math.comb(size, 2) * cells


def cube_root_summand(size: int, cells: NDArray[np.float64] | float) -> NDArray[np.float64] | float:
    return ROOT_SCALE * (math.comb(size, 2) * cells) ** (1 / 3)


def square_root_summand(size: int, cells: NDArray[np.float64] | float) -> NDArray[np.float64] | float:
    return ROOT_SCALE * (math.comb(size, 2) * cells) ** (1 / 2)


def cell_summand(_: int, cells: NDArray[np.float64] | float) -> NDArray[np.float64] | float:
    return cells


@dataclass(frozen=True)
class Design:
    """How to cover a run of `count` variables: as one view, as pairs, or in rows of `columns` variables."""

    count: int
    columns: int
    rows: tuple["Design", ...]
    total: int  # summands of all views, added up
    views: int


@dataclass(frozen=True)
class Price:
    """A linear price of designs; its minimum over all designs is found exactly, part by part."""

    of_total: int
    of_view: int

    def of(self, total: int, views: int) -> int:
        return self.of_total * total + self.of_view * views


@dataclass(frozen=True)
class Split:
    """A run in rows of `columns`, and what the views that cross the rows add up to at least."""

    columns: int
    rows: tuple[Sizes, ...]
    crossing_total: float
    crossing_views: int


@dataclass(frozen=True)
class Outline:
    """Of a run, what bounds the cost of any cover from below.

    A pair's share in a view of k variables is at least (summand, 1) / C(k, 2): these shares for every k, once for a
    pair with as few cells as any in the run (`low`), once for one with as many as any (`high`).
    """

    pairs: int
    low: tuple[tuple[float, float], ...]
    high: tuple[tuple[float, float], ...]
    mean_position: float  # of the pairs' cells, from 0 = low to 1 = high


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
        """Into 2 <= l <= n rows of n columns, (l - 1) n < d <= l n."""
        if sizes not in self._splits:
            self._splits[sizes] = [self._split(sizes, n) for n in self.columns if n < len(sizes) <= n * n]
        return self._splits[sizes]

    def outline(self, sizes: Sizes) -> Outline:
        if sizes not in self._outlines:
            self._outlines[sizes] = self._outline(sizes)
        return self._outlines[sizes]

    def crossing(self, sizes: Sizes, columns: int) -> tuple[int, int] | None:
        """Total and number of the views that cross the rows; None if one of them has too many cells."""
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
        """Every variable lies on equally many lines of either length, so the geometric mean of these lines' cells
        follows from the rows; a summand is convex in the logarithm of cells, so the mean bounds the lines' total."""
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
    """One price, every run of variables that is reached from the whole."""

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
        # If a pair fits, so does a cover: the prime between d/2 and d gives two rows, crossed by pairs.
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
        """What covering these variables costs at least, from what a pair costs at least in any view.

        That is a concave function of the pair's cells, so it lies above its chord, and the chord can be summed.
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
    """The design with the least views^2 * total: the best vertex of the lower convex hull (covering.md)."""
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
    """views^2 * total where the two prices' lines meet: no design between left and right is below it."""
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
