"""Sampling from a law on 0, 1, ..., n by exact inversion of its distribution function, with a certified table.

It does not know which law it draws from: callers pass the digits of the distribution function.

A draw is the number of values of the distribution function, among those below 1, that do not exceed a uniform real
number. An approximate table decides all numbers that are farther than its error bound from every entry. Exact integers
decide the others.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from gmpy2 import RoundDown, RoundUp
from numpy.typing import NDArray

from crypto.randomness import Stream
from crypto.sampling.coins import uniform_words

TABLE_BITS = 64
GUARD_BITS = 128

# From a number of bits: the integer part of 2**bits times each value of the distribution function below 1, in order.
Thresholds = Callable[[int], list[int]]
# From bits, precision and a direction of rounding: bounds on these thresholds from one side.
Bounds = Callable[[int, int, int], list[int]]


def certain_thresholds(bounds: Bounds, bits: int, guard_bits: int = GUARD_BITS) -> list[int]:
    """Raise the precision until the bounds from below and from above agree, and return these integer parts."""
    precision = bits + guard_bits
    while True:
        low, high = (bounds(bits, precision, rounding) for rounding in (RoundDown, RoundUp))
        if low == high:
            return low
        precision *= 2


class InverseTable:
    """Table of thresholds for drawing by inversion.

    `close` holds approximate first digits of the thresholds, each off by at most `reach`. It is for laws whose exact
    thresholds would take long to compute.

    Privacy: every draw takes the same steps, except one draw in about 2**word_bits / (n (1 + reach)).
    """

    def __init__(
        self,
        thresholds: Thresholds,
        word_bits: int = TABLE_BITS,
        close: NDArray[np.uint64] | None = None,
        reach: int = 0,
    ) -> None:
        self._thresholds = lru_cache(maxsize=2)(thresholds)
        self._word_bits = word_bits
        self._reach = reach
        self.entries = _padded(thresholds(word_bits) if close is None else close, word_bits)

    def draw(self, size: int, stream: Stream) -> NDArray[np.int64]:
        words = uniform_words(stream, size, self._word_bits)
        values = count_below(self.entries, words)
        for place in np.flatnonzero(self._is_undecided(values, words)):
            values[place] = self.exact_value(int(words[place]), stream)
        return values

    def _is_undecided(self, values: NDArray[np.int64], words: NDArray[np.unsignedinteger]) -> NDArray[np.bool_]:
        """Whether the entry above or below is so near that the true threshold may equal the word or lie beyond it."""
        above = self.entries[values] - words <= self._reach
        below = (values > 0) & (words - self.entries[np.maximum(values, 1) - 1] <= self._reach)
        return np.asarray(above | below)

    def exact_value(self, number: int, stream: Stream) -> int:
        """The value for a uniform number with these first digits; more are drawn while they equal a threshold's."""
        bits = self._word_bits
        while True:
            thresholds = self._thresholds(bits)
            value = bisect_left(thresholds, number)
            if value == len(thresholds) or thresholds[value] != number:
                return value
            bits += self._word_bits
            number = number << self._word_bits | stream.bits(self._word_bits)


def count_below(table: NDArray[np.unsignedinteger], words: NDArray[np.unsignedinteger]) -> NDArray[np.int64]:
    """Count, for every word, the table entries below it, by a binary search without branches."""
    count = np.zeros(words.size, dtype=np.int64)
    step = table.size // 2
    while step:
        count += (table[count + (step - 1)] < words) * step
        step //= 2
    return count


def _padded(thresholds: Sequence[int] | NDArray[np.uint64], word_bits: int) -> NDArray[np.unsignedinteger]:
    """The first digits of the thresholds, padded to a power of two with the largest word.

    Thresholds that begin with the largest word are not distinguished here; further digits distinguish them.
    """
    largest_word = 2**word_bits - 1
    words = np.array(thresholds, dtype=np.uint64)
    distinct = words[words < largest_word]
    table = np.full(1 << distinct.size.bit_length(), largest_word, dtype=f"<u{word_bits // 8}")
    table[: distinct.size] = distinct
    return table
