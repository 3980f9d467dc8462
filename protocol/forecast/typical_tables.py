"""A table as tables mostly are: how its rows fall into cells, how strongly attributes depend, what noise leaves of it.

It does not know plans or rows: these are assumptions, stated in one place, as public numbers say nothing of it.
The argument, and how the constants are set again, are in `prediction.md`.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Shape = tuple[int, int]  # categories of the two attributes of a pair, the fewer first

_FALL = 2  # the k-th commonest category holds 1 / k^2 of what the commonest holds
STRENGTH = 0.07  # mean distance of a pair's table from independence; exponential over the pairs
_OF_TWO_VALUED = 0.017  # the same of two-valued attributes: they share less, and tables differ in it a hundred times
_ALONE = 8  # categories looked at one by one; rarer ones in groups of similar ranks
_STEPS, _CLOSE = 60, 1e-6  # of the search for what is taken off every cell

Cells = tuple[Array, Array]  # shares of the rows, and how many cells have each


def typical_size(size: int) -> int:
    """Sizes that differ little are looked at as one: a step of the root of 2 where they are large."""
    return size if size <= _ALONE else round(2 ** (round(2 * math.log2(size)) / 2))


@lru_cache(maxsize=256)
def spread(size: int) -> Cells:
    shares = np.arange(1, size + 1, dtype=np.float64) ** -_FALL
    edges = list(range(min(size, _ALONE)))
    while (following := math.ceil(max(_ALONE, edges[-1] * math.sqrt(2) + 1))) < size:
        edges.append(following)
    counts = np.diff([*edges, size]).astype(np.float64)
    return np.add.reduceat(shares / shares.sum(), edges) / counts, counts


def cells_of(shape: tuple[int, ...]) -> Cells:
    """Of one attribute or of a pair, the pair as if the two were independent."""
    shares, counts = spread(shape[0])
    for size in shape[1:]:
        others, times = spread(size)
        shares, counts = np.outer(shares, others).ravel(), np.outer(counts, times).ravel()
    return shares, counts


def noise_left(shape: tuple[int, ...], noise: float, tables: float = 1) -> float:
    """The distance of a noisy table from the true one, once it has no negative cell and adds up again.

    `noise` is the mean size of a cell's noise as a share of the rows. Of several such tables the mean is taken, in
    which noise cancels in part, and what rare cells gain or lose stays.
    """
    if noise <= 0 or math.prod(shape) < 2:
        return 0.0
    shares, counts = cells_of(shape)
    less = _taken_off(shares, counts, noise)
    bias = _positive_part(shares - less, noise) - shares
    strays = bias + 2 * (_positive_part(np.full_like(shares, less), noise) - _positive_part(less - shares, noise))
    mean = np.sqrt(bias**2 + np.maximum(strays**2 - bias**2, 0) / tables)
    return min(1.0, float((counts * mean).sum() / 2))


def drawn(shape: tuple[int, ...], rows: int) -> float:
    """The distance of that many rows drawn one by one from the distribution that they are drawn from."""
    shares, counts = cells_of(shape)
    strays = np.sqrt(2 * shares * (1 - shares) / (math.pi * rows))
    return min(1.0, float((counts * np.minimum(strays, 2 * shares)).sum() / 2))


def strength_of_strongest(share: float) -> float:
    """The mean strength of this share of all pairs, the strongest of them."""
    return STRENGTH * (1 - math.log(share)) if share > 0 else math.inf


def strength_of_picks(lean: float) -> float:
    """The mean strength of privately picked pairs, one with strength s being exp(lean * s) times as likely."""
    return STRENGTH / (1 - lean * STRENGTH) if lean * STRENGTH < 1 else math.inf


def noise_believed(shape: Shape, noise: float, times: float = 1.0) -> float:
    """What is left of noise in dependence alone, if no more of it is believed than tables usually have.

    The mean of the smaller one of noise and strength; `times` says how much stronger than usual attributes depend.
    """
    usual = times * (_OF_TWO_VALUED if shape == (2, 2) else STRENGTH)
    return usual * -math.expm1(-noise / usual)


def _taken_off(shares: Array, counts: Array, noise: float) -> float:
    """What every cell has to lose so that non-negative cells add up to all rows (Newton: convex, from below)."""
    less = 0.0
    for _ in range(_STEPS):
        excess = float((counts * _positive_part(shares - less, noise)).sum()) - 1
        if excess < _CLOSE:
            break
        above = shares - less
        tail = np.exp(-np.abs(above) / noise) / 2
        less += excess / float((counts * np.where(above > 0, 1 - tail, tail)).sum())
    return less


def _positive_part(center: Array, noise: float) -> Array:
    """The mean of what lies above zero of Laplace noise of this mean size around these centers."""
    found: Array = np.maximum(center, 0) + noise / 2 * np.exp(-np.abs(center) / noise)
    return found
