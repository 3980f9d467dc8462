"""Negative binomials with shape 1/shares, drawn by exact inversion from a certified table.

It does not know that two of them make a share of noise.

With q = exp(-alpha) and r = 1/shares: p_0 = (1-q)^r and p_{n+1} = p_n q (n+r)/(n+1).
"""

import math
from fractions import Fraction
from functools import lru_cache, partial

import gmpy2
import numpy as np
from gmpy2 import RoundDown, RoundUp
from numpy.typing import NDArray

from crypto.bernoulli import integer_part
from crypto.errors import NoiseOutOfReach
from crypto.inversion import GUARD_BITS, TABLE_BITS, InverseTable, certain_thresholds
from crypto.randomness import Stream

MOST_ENTRIES = 1 << 20
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
    return _table(alpha, shares, word_bits).draw(size, stream)


@lru_cache(maxsize=8)
def _table(alpha: Fraction, shares: int, word_bits: int) -> InverseTable:
    return InverseTable(partial(_thresholds, alpha, shares), word_bits)


def _thresholds(alpha: Fraction, shares: int, bits: int, guard_bits: int = GUARD_BITS) -> list[int]:
    """The integer parts of the distribution function times 2**bits, at 0, 1, ..., largest_value - 1."""
    return certain_thresholds(partial(_bounds, alpha, shares), bits, guard_bits)


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
