"""How far two tables are apart: average total variation distance over the marginals of a few attributes.

It does not know which table is real. What it returns about real rows is not private: it never leaves their owner.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from crypto.randomness import Stream
from protocol.tables.domain import Codes

Sets = Sequence[tuple[int, ...]]

_DENSE = 1 << 20  # cells that are worth an array; marginals with more are compared by their occupied cells


def average_distance(one: Sequence[Codes], other: Sequence[Codes], sizes: Sequence[int], ways: int) -> float:
    """The mean over all sets of `ways` attributes of half the L1 distance between the shares of rows in each cell."""
    return float(np.mean(distances(one, other, sizes, list(combinations(range(len(sizes)), ways)))))


def distances(one: Sequence[Codes], other: Sequence[Codes], sizes: Sequence[int], sets: Sets) -> list[float]:
    """The total variation distance of each set's marginals."""
    return [_distance([one[i] for i in s], [other[i] for i in s], [sizes[i] for i in s]) for s in sets]


def attribute_sets(attributes: int, ways: int, most: int, stream: Stream) -> list[tuple[int, ...]]:
    """All sets of `ways` attributes, or `most` of them, each as likely as any other, when there are more."""
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
    """The cell of every row of both tables, and a number that no cell reaches."""
    rows, count = len(one[0]), 1
    cells = np.zeros(rows + len(other[0]), dtype=np.int64)
    for column, size in zip(_stacked(one, other), sizes, strict=True):
        cells, count = cells * size + column, count * size
        if count > _DENSE:
            # Overflow safety: occupied cells are numbered anew, at most as many as rows, before the next factor.
            occupied, cells = np.unique(cells, return_inverse=True)
            count = len(occupied)
    return cells[:rows], cells[rows:], count


def _stacked(one: Sequence[Codes], other: Sequence[Codes]) -> Iterator[Codes]:
    for first, second in zip(one, other, strict=True):
        yield np.concatenate([first, second])


def _shares(one: Codes, other: Codes, count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    first, second = (np.bincount(cells, minlength=count) / len(cells) for cells in (one, other))
    return first, second
