"""How far two tables are apart: average total variation distance over all marginals of a few attributes.

It does not know which table is real. What it returns about real rows is not private: it never leaves their owner.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[Any]


def average_distance(one: Sequence[Codes], other: Sequence[Codes], sizes: Sequence[int], ways: int) -> float:
    """The mean over all sets of `ways` attributes of half the L1 distance between the shares of rows in each cell."""
    distances = [
        _distance([one[i] for i in chosen], [other[i] for i in chosen], [sizes[i] for i in chosen])
        for chosen in combinations(range(len(sizes)), ways)
    ]
    return float(np.mean(distances))


def _distance(one: Sequence[Codes], other: Sequence[Codes], sizes: Sequence[int]) -> float:
    return float(np.abs(_shares(one, sizes) - _shares(other, sizes)).sum() / 2)


def _shares(columns: Sequence[Codes], sizes: Sequence[int]) -> NDArray[np.float64]:
    cells = np.zeros(len(columns[0]), dtype=np.int64)
    for column, size in zip(columns, sizes, strict=True):
        cells = cells * size + column
    return np.bincount(cells, minlength=int(np.prod(sizes))) / len(cells)
