"""Negative binomials with shape 1/shares, drawn by exact inversion from a certified table.

It does not know that the difference of two negative binomials makes a share of noise.

With q = exp(-alpha) and r = 1/shares: p_0 = (1-q)^r and p_{n+1} = p_n q (n+r)/(n+1). At small alpha the exact table
takes seconds to compute. A table in doubles takes milliseconds and decides nearly all draws.
"""

import math
from fractions import Fraction
from functools import lru_cache, partial
from itertools import accumulate

import gmpy2
import numpy as np
from gmpy2 import RoundDown, RoundUp
from numpy.typing import NDArray

from crypto.errors import NoiseOutOfReach
from crypto.randomness import Stream
from crypto.sampling.coins import integer_part
from crypto.sampling.inversion import GUARD_BITS, TABLE_BITS, InverseTable, certain_thresholds

MOST_ENTRIES = 1 << 21
_REACH_BITS = 41  # entries of the table in doubles are off by less than 2**-41: see `_partial_sums`
_TABLE_TAIL = 30  # exp(-30) < 2**-43: the values that this table leaves out are within reach of 1
_BLOCK = 512
_ANCHOR_PRECISION = 160
_TAIL = 90  # exp(-90) < 2**-129: the tails that two draws cut off stay below 2**-128 together


def largest_value(alpha: Fraction, shares: int) -> int:
    """The bound that no draw exceeds. A negative binomial of shape <= 1 exceeds n with chance <= exp(-alpha (n+1))."""
    if alpha <= 0 or shares < 1:
        raise ValueError(f"shares of noise need alpha > 0 and at least one share, got {alpha} and {shares}")
    largest = math.ceil(_TAIL / alpha)
    if largest > MOST_ENTRIES:
        raise NoiseOutOfReach(
            f"shares of noise at alpha = {alpha} need a table of {largest} entries, but {MOST_ENTRIES} are allowed: "
            "use a larger epsilon, or noise=local or noise=selected"
        )
    return largest


def negative_binomial(
    alpha: Fraction, shares: int, size: int, stream: Stream, word_bits: int = TABLE_BITS
) -> NDArray[np.int64]:
    return table_of(alpha, shares, word_bits).draw(size, stream)


@lru_cache(maxsize=16)
def table_of(alpha: Fraction, shares: int, word_bits: int) -> InverseTable:
    count = min(largest_value(alpha, shares), math.ceil(_TABLE_TAIL / alpha))
    close = _partial_sums(alpha, shares, count) >> np.uint64(64 - word_bits)
    return InverseTable(partial(thresholds, alpha, shares), word_bits, close, reach(word_bits))


def reach(word_bits: int) -> int:
    """The table's error bound in units of a word's last digit, including one unit for each rounding to integers."""
    return 2 + (1 << max(0, word_bits - _REACH_BITS))


def _partial_sums(alpha: Fraction, shares: int, count: int) -> NDArray[np.uint64]:
    """The distribution function at 0, ..., count - 1 in units of 2**-64, off by less than 2**-41.

    The first term of every block is computed with many digits. Within a block, each term is the previous term times q
    times a quotient of integers. That takes three roundings and one for the product, so a term's relative error is
    below (4 * 511 + 1) 2**-53. Summing within the block adds 511 more. Block sums are added as integers. All terms are
    positive and add up to less than 1, so the error of any sum is below 2556 * 2**-53. The number that stands in for 1
    adds 2**-50.
    """
    starts = np.arange(0, count, _BLOCK)
    n = starts[:, np.newaxis] + np.arange(_BLOCK - 1)
    ratios = _double_exp(-alpha) * ((n * shares + 1) / ((n + 1) * shares))
    terms = np.cumprod(np.column_stack([_anchors(alpha, shares, starts), ratios]), axis=1)
    # Overflow safety: a sum that rounds to 1 would wrap around. The number in its place is close enough to 1.
    sums = np.minimum(np.cumsum(terms, axis=1), 1 - 2.0**-50)
    units = (sums * 2.0**64).astype(np.uint64)
    before = accumulate((int(total) for total in units[:-1, -1]), initial=0)
    bases = np.array([min(base, 2**64 - 1) for base in before], dtype=np.uint64)[:, np.newaxis]
    found = bases + units
    found[found < bases] = 2**64 - 1
    return np.asarray(found.ravel()[:count])


def _double_exp(x: Fraction) -> float:
    """Compute exp(x), rounded to the nearest double; a platform's mathematical library promises less."""
    with gmpy2.context(precision=_ANCHOR_PRECISION):
        return float(gmpy2.exp(gmpy2.mpfr(gmpy2.mpq(x))))


def _anchors(alpha: Fraction, shares: int, places: NDArray[np.int64]) -> list[float]:
    """Compute p_n = (1-q)^r q^n Gamma(n+r) / (Gamma(r) n!), rounded to the nearest double."""
    with gmpy2.context(precision=_ANCHOR_PRECISION):
        rate, r = gmpy2.mpfr(gmpy2.mpq(alpha)), gmpy2.mpfr(gmpy2.mpq(1, shares))
        constant = r * gmpy2.log(-gmpy2.expm1(-rate)) - gmpy2.lngamma(r)
        return [
            float(gmpy2.exp(constant - n * rate + gmpy2.lngamma(n + r) - gmpy2.lngamma(n + 1)))
            for n in (gmpy2.mpz(int(place)) for place in places)
        ]


def thresholds(alpha: Fraction, shares: int, bits: int, guard_bits: int = GUARD_BITS) -> list[int]:
    """The integer parts of the distribution function times 2**bits, at 0, 1, ..., largest_value - 1."""
    return certain_thresholds(partial(_bounds, alpha, shares), bits, guard_bits)


def _bounds(alpha: Fraction, shares: int, bits: int, precision: int, rounding: int) -> list[int]:
    """Bound `thresholds` from one side.

    All terms are positive, so rounding every step in one direction rounds the sum in that direction.
    """
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
