"""Discrete Laplace noise, drawn exactly, whole or in shares that add up to it.

It does not know what is counted, who adds noise, or how much privacy an epsilon gives; `noise.md` holds promise and
argument.

P(X = x) is proportional to exp(-alpha |x|), with alpha = epsilon / sensitivity an exact fraction.
"""

import math
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from crypto.errors import NoiseOutOfReach
from crypto.randomness import Stream
from crypto.sampling.coins import WORD_BITS, Coins, fair_coins, logistic_digits
from crypto.sampling.inversion import TABLE_BITS
from crypto.sampling.negative_binomial import largest_value, negative_binomial

_TAIL = 90  # exp(-90) < 2**-128
_MOST_BITS = 60  # fewer than an int64 has, so that a few draws can be added
_CHUNK = 1 << 14  # draws at a time, whose words stay in a processor's cache


def laplace_bound(alpha: Fraction) -> int:
    """The power of two that |X| never exceeds in this sampler, with certainty."""
    return 1 << _magnitude_bits(alpha)


def laplace_variance(alpha: Fraction) -> float:
    rate = float(alpha)
    return 2 * math.exp(-rate) / math.expm1(-rate) ** 2


def discrete_laplace(alpha: Fraction, size: int, stream: Stream, *, word_bits: int = WORD_BITS) -> NDArray[np.int64]:
    """Draw `size` values of discrete Laplace noise.

    |X| is 0 with probability (1-q)/(1+q), q = exp(-alpha). Otherwise |X| is 1 + G for a geometric G, and a fair coin
    decides the sign. The bits of G are independent (docs/protocol.md, section 4.1). Fewer `word_bits` give the same
    law with more refinement, for tests.
    """
    coins = _laplace_coins(alpha, word_bits)
    noise = np.empty(size, dtype=np.int64)
    for start in range(0, size, _CHUNK):
        part = noise[start : start + _CHUNK]
        heads = coins.flip(part.size, stream)
        nonzero, geometric = heads[0], _from_bits(heads[1:])
        part[:] = _with_random_sign((geometric + 1) * nonzero, stream)
    return noise


def polya_bound(alpha: Fraction, shares: int) -> int:
    """The bound that |X| of one share never exceeds in this sampler, with certainty."""
    return largest_value(alpha, shares)


def polya_share(
    alpha: Fraction, shares: int, size: int, stream: Stream, *, word_bits: int = TABLE_BITS
) -> NDArray[np.int64]:
    """Draw one share of noise, the difference of two negative binomials.

    The sum of `shares` independent shares is discrete Laplace.
    """
    polya_bound(alpha, shares)
    noise = np.empty(size, dtype=np.int64)
    for start in range(0, size, _CHUNK):
        part = noise[start : start + _CHUNK]
        up, down = (negative_binomial(alpha, shares, part.size, stream, word_bits) for _ in range(2))
        np.subtract(up, down, out=part)
    return noise


def _magnitude_bits(alpha: Fraction) -> int:
    """The fewest bits such that G needs more with probability exp(-alpha 2**bits) < 2**-128."""
    if alpha <= 0:
        raise ValueError(f"noise needs a positive alpha = epsilon / sensitivity, got {alpha}")
    bits = (math.ceil(_TAIL / alpha) - 1).bit_length()
    if bits > _MOST_BITS:
        raise NoiseOutOfReach(
            f"noise at alpha = {float(alpha):.3g} needs {bits} bits, but {_MOST_BITS} are allowed: use a larger epsilon"
        )
    return bits


@lru_cache(maxsize=64)
def _laplace_coins(alpha: Fraction, word_bits: int) -> Coins:
    """Coins for a nonzero X, with probability 2 / (1 + exp(alpha)), and for the bits of G.

    Bit i of G is set with probability 1 / (1 + exp(alpha 2**i)).
    """
    bits = [partial(logistic_digits, alpha * 2**i) for i in range(_magnitude_bits(alpha))]
    return Coins([lambda count: logistic_digits(alpha, count + 1), *bits], word_bits)


def _from_bits(planes: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Put numbers together from planes of bits; planes[i] holds bit i of every number.

    Bytes are built first, because they are eight times smaller than the numbers.
    """
    numbers = np.zeros(planes.shape[1], dtype=np.int64)
    for low in range(0, len(planes), 8):
        byte = np.zeros(planes.shape[1], dtype=np.uint8)
        for plane in planes[low : low + 8][::-1].view(np.uint8):
            byte += byte
            byte |= plane
        numbers |= byte.astype(np.int64) << low
    return numbers


def _with_random_sign(magnitudes: NDArray[np.int64], stream: Stream) -> NDArray[np.int64]:
    negative = fair_coins(magnitudes.size, stream).astype(np.int64)
    return (magnitudes ^ -negative) + negative
