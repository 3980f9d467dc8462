"""Drawing from a law on 0, 1, ..., n by exact inversion of its distribution function, from a certified table.

It does not know which law: it is given the distribution function's digits.

The value is the number of distribution function values (those below 1) that do not exceed a uniform real number.
"""

from bisect import bisect_left
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from gmpy2 import RoundDown, RoundUp
from numpy.typing import NDArray

from crypto.bernoulli import uniform_words
from crypto.randomness import Stream

TABLE_BITS = 64
GUARD_BITS = 128

# The distribution function's values below 1, in order: for a number of bits, the integer parts of 2**bits times each.
Thresholds = Callable[[int], list[int]]
# The same from one side: for bits, precision and a direction of rounding.
Bounds = Callable[[int, int, int], list[int]]


def certain_thresholds(bounds: Bounds, bits: int, guard_bits: int = GUARD_BITS) -> list[int]:
    """Integer parts on which the bounds from below and from above agree."""
    precision = bits + guard_bits
    while True:
        low, high = (bounds(bits, precision, rounding) for rounding in (RoundDown, RoundUp))
        if low == high:
            return low
        precision *= 2


class InverseTable:
    """Privacy: every draw takes the same steps, except one in about 2**word_bits / n that needs more digits."""

    def __init__(self, thresholds: Thresholds, word_bits: int = TABLE_BITS) -> None:
        self._thresholds = lru_cache(maxsize=4)(thresholds)
        self._word_bits = word_bits
        self._table = _padded(thresholds(word_bits), word_bits)

    def draw(self, size: int, stream: Stream) -> NDArray[np.int64]:
        words = uniform_words(stream, size, self._word_bits)
        values = count_below(self._table, words)
        undecided = self._table[values] == words
        if undecided.any():
            for place in np.flatnonzero(undecided):
                values[place] = self.with_more_digits(int(words[place]), stream)
        return values

    def with_more_digits(self, number: int, stream: Stream) -> int:
        """The value of a uniform number whose digits so far equal those of a threshold."""
        bits = self._word_bits
        while True:
            bits += self._word_bits
            number = number << self._word_bits | stream.bits(self._word_bits)
            thresholds = self._thresholds(bits)
            value = bisect_left(thresholds, number)
            if value == len(thresholds) or thresholds[value] != number:
                return value


def count_below(table: NDArray[np.unsignedinteger], words: NDArray[np.unsignedinteger]) -> NDArray[np.int64]:
    """For every word the number of table entries below it: a binary search without branches."""
    count = np.zeros(words.size, dtype=np.int64)
    step = table.size // 2
    while step:
        count += (table[count + (step - 1)] < words) * step
        step //= 2
    return count


def _padded(thresholds: list[int], word_bits: int) -> NDArray[np.unsignedinteger]:
    """The thresholds' first digits, filled up to a power of two with the largest word.

    Thresholds that begin with the largest word are not told apart here: more digits do that.
    """
    largest_word = 2**word_bits - 1
    distinct = [threshold for threshold in thresholds if threshold < largest_word]
    table = np.full(1 << len(distinct).bit_length(), largest_word, dtype=f"<u{word_bits // 8}")
    table[: len(distinct)] = distinct
    return table
