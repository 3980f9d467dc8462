"""Drawing from a law on 0, 1, ..., n by exact inversion of its distribution function, from a certified table.

It does not know which law: it is given the distribution function's digits.

The value is the number of distribution function values (those below 1) that do not exceed a uniform real number.
A table that is only close decides all numbers but those within its error bound of an entry; exact integers do those.
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
    """`close`: the thresholds' first digits, each off by at most `reach`, where exact ones would take long.

    Privacy: every draw takes the same steps, except one in about 2**word_bits / (n (1 + reach)).
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
        """Whether the entry above or the one below is so near that the truth may equal the word or lie beyond it."""
        above = self.entries[values] - words <= self._reach
        below = (values > 0) & (words - self.entries[np.maximum(values, 1) - 1] <= self._reach)
        return np.asarray(above | below)

    def exact_value(self, number: int, stream: Stream) -> int:
        """The value of a uniform number that begins with these digits; more are drawn if they equal a threshold's."""
        bits = self._word_bits
        while True:
            thresholds = self._thresholds(bits)
            value = bisect_left(thresholds, number)
            if value == len(thresholds) or thresholds[value] != number:
                return value
            bits += self._word_bits
            number = number << self._word_bits | stream.bits(self._word_bits)


def count_below(table: NDArray[np.unsignedinteger], words: NDArray[np.unsignedinteger]) -> NDArray[np.int64]:
    """For every word the number of table entries below it: a binary search without branches."""
    count = np.zeros(words.size, dtype=np.int64)
    step = table.size // 2
    while step:
        count += (table[count + (step - 1)] < words) * step
        step //= 2
    return count


def _padded(thresholds: Sequence[int] | NDArray[np.uint64], word_bits: int) -> NDArray[np.unsignedinteger]:
    """The thresholds' first digits, filled up to a power of two with the largest word.

    Thresholds that begin with the largest word are not told apart here: more digits do that.
    """
    largest_word = 2**word_bits - 1
    words = np.array(thresholds, dtype=np.uint64)
    distinct = words[words < largest_word]
    table = np.full(1 << distinct.size.bit_length(), largest_word, dtype=f"<u{word_bits // 8}")
    table[: distinct.size] = distinct
    return table
