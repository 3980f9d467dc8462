"""Discrete Gaussian noise, drawn exactly: P(X = x) is proportional to exp(-x**2 / (2 variance)).

It does not know what is counted, who adds noise, or how much privacy the noise buys; `noise.md` holds promise and
argument.

|X| = block * width + rest, where `width` is 1 or a power of two with at least 64 widths to a standard deviation. A
trial draws the block from a table, with weight exp(-(block * width)**2 / (2 variance)), and the rest uniformly. The
trial is kept with probability exp(-rest (rest + 2 block width) / (2 variance)), which makes up the difference.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from itertools import accumulate

import gmpy2
import numpy as np
from gmpy2 import RoundDown, RoundUp
from numpy.typing import NDArray

from crypto.errors import NoiseOutOfReach
from crypto.randomness import Stream
from crypto.sampling.choice import bernoulli_exp
from crypto.sampling.coins import WORD_BITS, fair_coins, integer_part
from crypto.sampling.inversion import GUARD_BITS, TABLE_BITS, InverseTable, certain_thresholds

_TAIL = 90  # P(|X| >= x) <= 2 exp(-x**2 / (2 variance)), and 2 exp(-90) < 2**-128
_SPREAD = 64  # widths to a standard deviation, at least
_LARGEST_VARIANCE = 1 << 58  # sums of a few draws and all intermediate products stay within 64 bits
_CHUNK = 1 << 14  # trials at a time, whose words stay in a processor's cache
_EXACT_SUM = 64  # from this variance on, the law's variance equals its parameter to the last digit of a float


@dataclass(frozen=True)
class _Blocks:
    """Division of the magnitudes up to the bound into blocks; it is public and follows from the variance alone."""

    width: int
    count: int

    @property
    def bound(self) -> int:
        return self.width * self.count - 1

    @property
    def furthest(self) -> int:
        """The largest value of rest (rest + 2 block width)."""
        rest = self.width - 1
        return rest * (rest + 2 * (self.count - 1) * self.width)


def gaussian_bound(variance: Fraction) -> int:
    """The bound that |X| never exceeds in this sampler, with certainty."""
    return blocks_of(variance).bound


def gaussian_variance(variance: Fraction) -> float:
    """The variance of X itself, which is a little less than a small parameter."""
    if variance >= _EXACT_SUM:
        return float(variance)
    squares = np.arange(gaussian_bound(variance) + 1, dtype=float) ** 2
    weights = np.exp(-squares / (2 * float(variance)))
    return float(2 * (weights @ squares) / (2 * weights.sum() - 1))


def discrete_gaussian(
    variance: Fraction, size: int, stream: Stream, *, table_bits: int = TABLE_BITS, coin_bits: int = WORD_BITS
) -> NDArray[np.int64]:
    """Draw `size` values of discrete Gaussian noise. Smaller words give the same law with more refinement, for tests.

    Privacy: trials are independent and identically distributed. Therefore the pattern of kept trials, and with it the
    running time, says nothing about the values that are kept.
    """
    blocks = blocks_of(variance)
    table = _table(variance, table_bits)
    noise = np.empty(size, dtype=np.int64)
    filled = 0
    while filled < size:
        missing = size - filled
        trials = min(missing + missing // 32 + 16, _CHUNK)
        magnitudes, kept = _tried(variance, blocks, table.draw(trials, stream), stream, coin_bits)
        negative = fair_coins(trials, stream).astype(np.int64)
        kept &= (magnitudes > 0) | (negative == 0)  # zero has one sign
        values = ((magnitudes ^ -negative) + negative)[kept][:missing]
        noise[filled : filled + values.size] = values
        filled += values.size
    return noise


def _tried(
    variance: Fraction, blocks: _Blocks, block: NDArray[np.int64], stream: Stream, coin_bits: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Draw a magnitude in each block, and whether the trial is kept."""
    start = block * blocks.width
    rest = (stream.words32(block.size) & np.uint32(blocks.width - 1)).astype(np.int64)
    behind = rest * (rest + 2 * start)
    kept = bernoulli_exp(behind, 1 / (2 * variance), blocks.furthest, stream, word_bits=coin_bits)
    return start + rest, kept


def blocks_of(variance: Fraction) -> _Blocks:
    if variance <= 0:
        raise ValueError(f"noise needs a positive variance, got {variance}")
    if variance > _LARGEST_VARIANCE:
        raise NoiseOutOfReach(
            f"noise of variance {float(variance):.3g} is too wide; at most {float(_LARGEST_VARIANCE):.3g} is allowed: "
            "use a larger epsilon"
        )
    quotient = int(variance) // _SPREAD**2
    width = 1 << (max(quotient.bit_length() - 1, 0) // 2)  # width**2 <= quotient
    reach = math.isqrt(math.ceil(2 * _TAIL * variance) - 1) + 1  # at least the root
    return _Blocks(width, -(-reach // width))


@lru_cache(maxsize=128)
def _table(variance: Fraction, word_bits: int) -> InverseTable:
    return InverseTable(partial(thresholds, variance), word_bits)


def thresholds(variance: Fraction, bits: int, guard_bits: int = GUARD_BITS) -> list[int]:
    """The integer parts of the blocks' distribution function times 2**bits, without its last value, which is 1."""
    return certain_thresholds(partial(_bounds, variance), bits, guard_bits)


def _bounds(variance: Fraction, bits: int, precision: int, rounding: int) -> list[int]:
    """Bound `thresholds` from one side: sums rounded in one direction, over a total rounded in the other."""
    *_, total = _sums(variance, precision, RoundUp if rounding == RoundDown else RoundDown)
    sums = _sums(variance, precision, rounding)[:-1]
    with gmpy2.context(precision=precision, round=rounding):
        return [min(integer_part(part / total, bits), 2**bits - 1) for part in sums]


@lru_cache(maxsize=2)  # both bounds of the thresholds take the sums of both roundings
def _sums(variance: Fraction, precision: int, rounding: int) -> tuple[gmpy2.mpfr, ...]:
    """Running sums of the blocks' weights."""
    blocks = blocks_of(variance)
    unit = gmpy2.mpq(-(blocks.width**2) / (2 * variance))
    with gmpy2.context(precision=precision, round=rounding):
        return tuple(accumulate(gmpy2.exp(gmpy2.mpfr(unit * block**2)) for block in range(blocks.count)))
