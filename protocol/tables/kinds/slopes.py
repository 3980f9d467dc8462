"""Slopes inside bins: how the density of values changes over each bin, as the counts of its neighbours suggest.

It does not know values or how they are written.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crypto.randomness import Stream

Array = NDArray[np.float64]
FEWEST_ROWS = 10.0  # a count below it is taken for it, so that a few rows make no slope
ALONE = 1.0  # how far a bin's slope may lie from none if it has no neighbours
# A bin that holds more values than this is drawn from by parts: parts by their density, values of a part uniformly.
_WHOLE, _PARTS = np.uint64(1 << 40), np.uint64(1 << 20)
_ALMOST = -1 + 2.0**-53
_FLAT = 1e-6
_WORD = 2.0**64


def slopes(counts: NDArray[Any], widths: NDArray[Any]) -> Array:
    """The rise of the density's logarithm over each bin.

    Inside, it is the smaller one of the rises from the bin before and to the bin behind, and none where these differ
    in their direction. The first bin and the last have one neighbour each.
    """
    return slopes_beside(counts, widths)[0]


def slopes_beside(counts: NDArray[Any], widths: NDArray[Any]) -> tuple[Array, Array]:
    """The slopes of all bins, and how far the rises before and behind each lie apart: half their difference.

    For the first bin and the last, whose other neighbour is unknown, that is half their rise.
    """
    if len(counts) < 2:
        return np.zeros(len(counts)), np.full(len(counts), ALONE)
    wide = np.asarray(widths, np.float64)
    density = np.log(np.maximum(counts, FEWEST_ROWS) / wide)
    # Between two counts that are too small to make a slope there is none, whatever the width of their bins.
    known = (counts[1:] > FEWEST_ROWS) | (counts[:-1] > FEWEST_ROWS)
    rises = np.where(known, np.diff(density) / (wide[1:] + wide[:-1]) * 2, 0.0)
    before, behind = np.concatenate([rises[:1], rises]), np.concatenate([rises, rises[-1:]])
    smaller = np.where(np.abs(before) < np.abs(behind), before, behind)
    apart = np.abs(before - behind) / 2
    apart[[0, -1]] = np.abs(rises[[0, -1]]) / 2
    return np.where(before * behind > 0, smaller, 0.0) * wide, apart * wide


def places(shares: Array, bins: NDArray[Any], rises: Array) -> Array:
    """For every row, the place in its bin, from 0 to 1, below which this share of the bin's values lies.

    `bins` numbers each row's bin among the rises.
    """
    steep = np.where(np.abs(rises) > _FLAT, rises, -_FLAT)
    # Seen from the denser end, so that nothing grows beyond all bounds.
    is_rising, size = steep > 0, np.abs(steep)
    start, sign = is_rising.astype(np.float64), np.where(is_rising, -1.0, 1.0)
    share = start[bins] + sign[bins] * shares
    fallen = np.log1p(np.maximum(share * np.expm1(-size)[bins], _ALMOST))
    return np.asarray(np.clip(start[bins] - (sign / size)[bins] * fallen, 0.0, 1.0))


def offsets_in_bins(codes: NDArray[Any], held: NDArray[np.uint64], rises: Array, stream: Stream) -> NDArray[np.uint64]:
    """Draw for every row one of the values that its bin holds, by number, with the density's rise over the bin.

    `codes` numbers each row's bin; `held` and `rises` are those of the bins.
    """
    bins = codes.astype(np.intp)
    if held.max(initial=1) == 1:
        return np.zeros(len(bins), np.uint64)
    parts = np.where(held > _WHOLE, _PARTS, held)
    found = places(stream.words64(len(bins)) / _WORD, bins, rises)
    part = np.minimum((found * parts.astype(np.float64)[bins]).astype(np.uint64), (parts - np.uint64(1))[bins])
    if (parts == held).all():
        return np.asarray(part)
    size, longer = (own[bins] for own in np.divmod(held, parts))
    inside = uniform_below(size + (part < longer), stream)
    return np.asarray(part * size + np.minimum(part, longer) + inside)


def uniform_below(bounds: NDArray[np.uint64], stream: Stream) -> NDArray[np.uint64]:
    """Draw uniform integers, each below its own bound, without modulo bias."""
    words = stream.words64(bounds.size).copy()
    surplus = (np.uint64(0) - bounds) % bounds  # 2^64 modulo the bound
    while (refused := words > ~surplus).any():
        words[refused] = stream.words64(int(refused.sum()))
    return words % bounds
