"""Negative binomials with shape 1/shares, drawn by exact inversion from a certified table.

It does not know that two of them make a share of noise.

With q = exp(-alpha) and r = 1/shares: p_0 = (1-q)^r and p_{n+1} = p_n q (n+r)/(n+1). The value is the number of
distribution function values that do not exceed a uniform real number.
"""

import math
from bisect import bisect_left
from fractions import Fraction
from functools import lru_cache

import gmpy2
import numpy as np
from gmpy2 import RoundDown, RoundUp
from numpy.typing import NDArray

from crypto.bernoulli import integer_part, uniform_words
from crypto.errors import NoiseOutOfReach
from crypto.randomness import Stream

TABLE_BITS = 64
MOST_ENTRIES = 1 << 20
_GUARD_BITS = 128
_TAIL = 90  # exp(-90) < 2**-129: what two draws cut off stays below 2**-128


def largest_value(alpha: Fraction, shares: int) -> int:
    """Every draw is at most this: a negative binomial of shape <= 1 exceeds n with probability <= exp(-alpha (n+1))."""
    if alpha <= 0 or shares < 1:
        raise ValueError(f"shares of noise need alpha > 0 and at least one share, got {alpha} and {shares}")
    largest = math.ceil(_TAIL / alpha)
    if largest > MOST_ENTRIES:
        raise NoiseOutOfReach(
            f"shares of noise at alpha = {alpha} need a table of {largest} entries where {MOST_ENTRIES} are allowed: "
            "use noise=local or noise=selected, or a larger epsilon"
        )
    return largest


def negative_binomial(
    alpha: Fraction, shares: int, size: int, stream: Stream, word_bits: int = TABLE_BITS
) -> NDArray[np.int64]:
    """`size` draws; each takes the same steps, except one in about 2**64 / entries that needs more digits."""
    table = _table(alpha, shares, word_bits)
    words = uniform_words(stream, size, word_bits)
    values = _count_below(table, words)
    undecided = table[values] == words
    if undecided.any():
        for place in np.flatnonzero(undecided):
            values[place] = _with_more_digits(alpha, shares, int(words[place]), stream, word_bits)
    return values


def _count_below(table: NDArray[np.unsignedinteger], words: NDArray[np.unsignedinteger]) -> NDArray[np.int64]:
    """For every word the number of table entries below it: a binary search without branches."""
    count = np.zeros(words.size, dtype=np.int64)
    step = table.size // 2
    while step:
        count += (table[count + (step - 1)] < words) * step
        step //= 2
    return count


def _with_more_digits(alpha: Fraction, shares: int, number: int, stream: Stream, word_bits: int) -> int:
    """The value of a uniform number whose digits so far equal those of a threshold."""
    bits = word_bits
    while True:
        bits += word_bits
        number = number << word_bits | stream.bits(word_bits)
        thresholds = _recent_thresholds(alpha, shares, bits)
        value = bisect_left(thresholds, number)
        if value == len(thresholds) or thresholds[value] != number:
            return value


@lru_cache(maxsize=8)
def _table(alpha: Fraction, shares: int, word_bits: int) -> NDArray[np.unsignedinteger]:
    """The thresholds' first digits, filled up to a power of two with the largest word.

    Thresholds that begin with the largest word are not told apart here: more digits do that.
    """
    largest_word = 2**word_bits - 1
    distinct = [threshold for threshold in _thresholds(alpha, shares, word_bits) if threshold < largest_word]
    table = np.full(1 << len(distinct).bit_length(), largest_word, dtype=f"<u{word_bits // 8}")
    table[: len(distinct)] = distinct
    return table


def _thresholds(alpha: Fraction, shares: int, bits: int, guard_bits: int = _GUARD_BITS) -> list[int]:
    """The integer parts of the distribution function times 2**bits, at 0, 1, ..., largest_value - 1."""
    precision = bits + guard_bits
    while True:
        low, high = (_bounds(alpha, shares, bits, precision, rounding) for rounding in (RoundDown, RoundUp))
        if low == high:
            return low
        precision *= 2


_recent_thresholds = lru_cache(maxsize=4)(_thresholds)


def _bounds(alpha: Fraction, shares: int, bits: int, precision: int, rounding: int) -> list[int]:
    """`_thresholds` bounded from one side: all terms are positive, so rounding each step one way rounds the sum so."""
    opposite = RoundUp if rounding == RoundDown else RoundDown
    with gmpy2.context(precision=precision, round=opposite):
        ratio_opposite = gmpy2.exp(gmpy2.mpfr(gmpy2.mpq(-alpha)))
    bounds = []
    with gmpy2.context(precision=precision, round=rounding):
        ratio = gmpy2.exp(gmpy2.mpfr(gmpy2.mpq(-alpha)))
        term = gmpy2.rootn(1 - ratio_opposite, shares)
        total = gmpy2.mpfr(0)
        for n in range(largest_value(alpha, shares)):
            total += term
            bounds.append(min(integer_part(total, bits), 2**bits - 1))  # the distribution function never reaches 1
            term = term * ratio * (n * shares + 1) / ((n + 1) * shares)
    return bounds
