"""Assumptions about a typical table: how rows spread over cells, how strongly attributes depend, how noise distorts it.

It does not know plans or rows. Public numbers do not tell these properties, so all assumptions are stated here.
`prediction.md` holds the argument, and says how to set the constants again.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Shape = tuple[int, int]  # categories of the two attributes of a pair, the fewer first

_FALL = 2.0  # the k-th commonest category holds 1 / k^2 of the rows that the commonest holds
STRENGTH = 0.07  # mean distance of a pair's table from independence; exponential over the pairs
_OF_TWO_VALUED = 0.017  # mean distance for two-valued attributes: smaller, and between tables it differs a hundredfold
_ALONE = 8  # number of categories treated one by one; rarer categories are grouped by similar ranks
_DRAWN_EVENLY = 0.4  # error of rows drawn evenly from a model over the error of rows drawn one by one
_STEPS, _CLOSE = 60, 1e-6  # of Newton's method for the amount subtracted from every cell

Cells = tuple[Array, Array]  # shares of the rows, and how many cells have each


@dataclass(frozen=True)
class Assumed:
    """What public numbers do not tell about a table: how uneven its categories are, how its attributes depend."""

    fall: float = _FALL
    strength: float = STRENGTH
    of_two_valued: float = _OF_TWO_VALUED

    def strength_of(self, shape: Shape) -> float:
        return self.of_two_valued if shape == (2, 2) else self.strength


USUAL = Assumed()


def typical_size(size: int) -> int:
    """The size that stands for all similar sizes: above `_ALONE`, sizes are rounded to powers of the root of 2."""
    return size if size <= _ALONE else round(2 ** (round(2 * math.log2(size)) / 2))


@lru_cache(maxsize=1024)
def spread(size: int, fall: float = _FALL) -> Cells:
    """The assumed spread of rows over the categories of an attribute with `size` categories."""
    shares = np.arange(1, size + 1, dtype=np.float64) ** -fall
    edges = list(range(min(size, _ALONE)))
    while (following := math.ceil(max(_ALONE, edges[-1] * math.sqrt(2) + 1))) < size:
        edges.append(following)
    counts = np.diff([*edges, size]).astype(np.float64)
    return np.add.reduceat(shares / shares.sum(), edges) / counts, counts


def cells_of(shape: tuple[int, ...], fall: float = _FALL) -> Cells:
    """The assumed spread of rows over the cells of a table, as if its attributes were independent."""
    shares, counts = spread(shape[0], fall)
    for size in shape[1:]:
        others, times = spread(size, fall)
        shares, counts = np.outer(shares, others).ravel(), np.outer(counts, times).ravel()
    return shares, counts


@lru_cache(maxsize=1 << 13)  # a plan asks for every pair of attributes, and most pairs are alike
def noise_left(shape: tuple[int, ...], noise: float, tables: float = 1, fall: float = _FALL) -> float:
    """The distance of a noisy table from the true table, after projection to non-negative cells that add up.

    `noise` is the mean size of a cell's noise as a share of the rows. With several tables the result holds for their
    mean: noise partly cancels, but the bias of rare cells remains.
    """
    if noise <= 0 or math.prod(shape) < 2:
        return 0.0
    shares, counts = cells_of(shape, fall)
    less = _taken_off(shares, counts, noise)
    bias = _positive_part(shares - less, noise) - shares
    strays = bias + 2 * (_positive_part(np.full_like(shares, less), noise) - _positive_part(less - shares, noise))
    mean = np.sqrt(bias**2 + np.maximum(strays**2 - bias**2, 0) / tables)
    return min(1.0, float((counts * mean).sum() / 2))


def drawn(shape: tuple[int, ...], rows: int, fall: float = _FALL, below: float = 1.0) -> float:
    """The distance between `rows` rows drawn one by one and the distribution that they are drawn from.

    Only the cells that hold a share of at most `below` count.
    """
    shares, counts = cells_of(shape, fall)
    strays = np.minimum(np.sqrt(2 * shares * (1 - shares) / (math.pi * rows)), 2 * shares)
    return min(1.0, float((counts * strays)[shares <= below].sum() / 2))


def drawn_evenly(shape: tuple[int, ...], rows: int, fall: float = _FALL) -> float:
    """The distance between a model and `rows` rows that are drawn from it evenly.

    A cell in which less than one row is expected holds one row or none, however evenly rows are drawn.
    """
    shares, counts = cells_of(shape, fall)
    expected = shares * rows
    evenly = _DRAWN_EVENLY * np.sqrt(2 * expected * (1 - shares) / math.pi)
    alone = np.where(expected < 1, 2 * expected * (1 - expected), 0.0)
    return min(1.0, float((counts * np.maximum(evenly, alone)).sum() / (2 * rows)))


def strength_of_strongest(share: float) -> float:
    """The mean strength of the strongest `share` of all pairs."""
    return STRENGTH * (1 - math.log(share)) if share > 0 else math.inf


def strength_of_picks(preference: float) -> float:
    """The mean strength of privately picked pairs, if strength s makes a pair exp(preference * s) times as likely."""
    return STRENGTH / (1 - preference * STRENGTH) if preference * STRENGTH < 1 else math.inf


def noise_believed(shape: Shape, noise: float, assumed: Assumed = USUAL) -> float:
    """The noise that a fitted model keeps in the dependence of a pair, given how strong dependence is.

    This is the mean of the smaller of noise and strength.
    """
    strength = assumed.strength_of(shape)
    return strength * -math.expm1(-noise / strength)


def _taken_off(shares: Array, counts: Array, noise: float) -> float:
    """The amount to subtract from every cell so that non-negative cells add up to all rows.

    Newton's method from below, on a convex function.
    """
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
    """The mean of max(0, x) for Laplace noise x of this mean size around these centers."""
    found: Array = np.maximum(center, 0) + noise / 2 * np.exp(-np.abs(center) / noise)
    return found
