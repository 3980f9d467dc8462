"""Distance of two tables: the average total variation distance over the marginals of a few attributes.

It does not know which table is real. A distance from real rows is not protected and must never leave their owner.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from crypto.randomness import Stream
from protocol.tables.domain import Codes

Sets = Sequence[tuple[int, ...]]

_DENSE = 1 << 20  # cells that an array may have; larger marginals are compared by their occupied cells


def average_distance(one: Sequence[Codes], other: Sequence[Codes], sizes: Sequence[int], ways: int) -> float:
    """Half the L1 distance between the shares of rows in each cell, averaged over all sets of `ways` attributes."""
    return float(np.mean(distances(one, other, sizes, list(combinations(range(len(sizes)), ways)))))


def distances(one: Sequence[Codes], other: Sequence[Codes], sizes: Sequence[int], sets: Sets) -> list[float]:
    """The total variation distance between the two marginals over each set."""
    return [_distance([one[i] for i in s], [other[i] for i in s], [sizes[i] for i in s]) for s in sets]


def attribute_sets(attributes: int, ways: int, most: int, stream: Stream) -> list[tuple[int, ...]]:
    """List all sets of `ways` attributes or, if there are more than `most`, a uniform sample of `most` sets."""
    if math.comb(attributes, ways) <= most:
        return list(combinations(range(attributes), ways))
    chosen: set[tuple[int, ...]] = set()
    while len(chosen) < most:
        chosen.add(tuple(sorted(stream.permutation(attributes)[:ways])))
    return sorted(chosen)


def _distance(one: Sequence[Codes], other: Sequence[Codes], sizes: Sequence[int]) -> float:
    first, second = _shares(*_cells(one, other, sizes))
    return float(np.abs(first - second).sum() / 2)


def _cells(one: Sequence[Codes], other: Sequence[Codes], sizes: Sequence[int]) -> tuple[Codes, Codes, int]:
    """The cell of every row of both tables, and a number that is larger than every cell's."""
    rows, count = len(one[0]), 1
    cells = np.zeros(rows + len(other[0]), dtype=np.int64)
    for column, size in zip(_stacked(one, other), sizes, strict=True):
        cells, count = cells * size + column, count * size
        if count > _DENSE:
            # Overflow safety: occupied cells, which are at most as many as rows, are renumbered before the next factor.
            occupied, cells = np.unique(cells, return_inverse=True)
            count = len(occupied)
    return cells[:rows], cells[rows:], count


def _stacked(one: Sequence[Codes], other: Sequence[Codes]) -> Iterator[Codes]:
    for first, second in zip(one, other, strict=True):
        yield np.concatenate([first, second])


def _shares(one: Codes, other: Codes, count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    first, second = (np.bincount(cells, minlength=count) / len(cells) for cells in (one, other))
    return first, second
