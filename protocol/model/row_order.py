"""Rows in the order of their situations, and at random within a situation.

It does not know what situations stand for, or what is drawn from the order.

Situation, random word and row are packed into one number, and the numbers are sorted. Words are uniform, so a row's
place is known beforehand but for a few places. The rows are sorted by 16 bits of that place, which takes two passes
over them, and then by the numbers, which takes hardly more than one where rows are nearly in order. This takes about as
long on every processor, while numpy's sort of 64-bit numbers takes as long, or three times as long.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crypto.randomness import Stream

_WORD_BITS = 32
_PLACE_BITS = 16  # what numpy sorts by counting


def in_order(
    situation: NDArray[Any], sizes: NDArray[np.intp], words: NDArray[np.uint32], word_bits: int
) -> NDArray[np.uint64]:
    """Pack situation, the word's first bits and the row of every row, and sort.

    `sizes` counts the rows of each situation. The row takes the last `len(situation).bit_length()` bits.
    """
    rows = len(situation)
    near = _near_places(situation, sizes, words)
    packed = words.astype(np.uint64)
    packed >>= np.uint64(_WORD_BITS - word_bits)
    packed |= situation.astype(np.uint64) << np.uint64(word_bits)
    packed <<= np.uint64(rows.bit_length())
    packed |= np.arange(rows, dtype=np.uint64)
    return _sorted(packed, near)


def random_order(rows: int, stream: Stream) -> NDArray[np.int64]:
    """Draw an order of rows: by the first bits of a word for each row, and by row where these are equal."""
    row_bits = np.uint64(rows.bit_length())
    words = stream.words64(rows)
    near = (words >> np.uint64(64 - _PLACE_BITS)).astype(np.uint16)
    packed = words >> row_bits
    del words  # for many rows, its memory counts
    packed <<= row_bits
    packed |= np.arange(rows, dtype=np.uint64)
    return row_of(_sorted(packed, near))


def row_of(packed: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the row of every packed number. The numbers are lost."""
    packed &= (np.uint64(1) << np.uint64(len(packed).bit_length())) - np.uint64(1)
    return packed.view(np.int64)


def _sorted(packed: NDArray[np.uint64], near: NDArray[np.uint16]) -> NDArray[np.uint64]:
    found = packed.take(np.argsort(near, kind="stable"))
    found.sort(kind="stable")
    return found


def _near_places(situation: NDArray[Any], sizes: NDArray[np.intp], words: NDArray[np.uint32]) -> NDArray[np.uint16]:
    """Return the first bits of about the place that every row will have.

    Overflow safety: a word's first 16 - s bits times the rows of a situation, of which there are at most 2^(16 + s).
    """
    surplus = max(0, (len(situation) - 1).bit_length() - _PLACE_BITS)
    place = words >> np.uint32(_PLACE_BITS + surplus)
    place *= sizes.astype(np.uint32).take(situation)
    place >>= np.uint32(_PLACE_BITS)
    place += ((np.cumsum(sizes) - sizes) >> surplus).astype(np.uint32).take(situation)
    return place.astype(np.uint16)
