"""Exact coins, which compare a uniform real number with a probability that has infinitely many digits.

It does not know which distributions are built from such coins.

The probabilities are exp(-x) and 1/(1+exp(x)) for rational x > 0. They are transcendental (Lindemann). Bounds from
below and above therefore agree on any number of binary digits of a probability once they are tight enough, and a
uniform number differs from the probability after finitely many digits.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction

import gmpy2
import numpy as np
from gmpy2 import RoundDown, RoundUp
from numpy.typing import NDArray

from crypto.randomness import Stream

WORD_BITS = 32
_GUARD_BITS = 64

Digits = Callable[[int], int]  # for a probability p and a number of bits: the integer part of p * 2**bits


def exponential_digits(x: Fraction, bits: int) -> int:
    """The integer part of exp(-x) * 2**bits."""

    def bound(precision: int, rounding: int) -> gmpy2.mpfr:
        with gmpy2.context(precision=precision, round=rounding):
            return gmpy2.exp(gmpy2.mpfr(gmpy2.mpq(-x)))

    return _certain_digits(bound, bits)


def logistic_digits(x: Fraction, bits: int) -> int:
    """The integer part of 2**bits / (1 + exp(x))."""

    def bound(precision: int, rounding: int) -> gmpy2.mpfr:
        with gmpy2.context(precision=precision, round=RoundUp if rounding == RoundDown else RoundDown):
            divisor = 1 + gmpy2.exp(gmpy2.mpfr(gmpy2.mpq(x)))
        with gmpy2.context(precision=precision, round=rounding):
            return 1 / divisor

    return _certain_digits(bound, bits)


def _certain_digits(bound: Callable[[int, int], gmpy2.mpfr], bits: int) -> int:
    precision = bits + _GUARD_BITS
    while True:
        low, high = (integer_part(bound(precision, rounding), bits) for rounding in (RoundDown, RoundUp))
        if low == high:
            return low
        precision *= 2


def integer_part(value: gmpy2.mpfr, bits: int) -> int:
    """The integer part of value * 2**bits, exactly; int(mpfr) would round in the direction of the context."""
    mantissa, exponent = (int(part) for part in value.as_mantissa_exp())
    shift = exponent + bits
    return mantissa << shift if shift >= 0 else mantissa >> -shift


def uniform_words(stream: Stream, count: int, word_bits: int) -> NDArray[np.unsignedinteger]:
    """Draw uniform words of 8, 16, 32 or 64 bits."""
    return np.frombuffer(stream.take(count * word_bits // 8), dtype=f"<u{word_bits // 8}")


def fair_coins(count: int, stream: Stream) -> NDArray[np.uint8]:
    """Draw zeros and ones with probability 1/2, eight from each byte."""
    packed = np.frombuffer(stream.take((count + 7) // 8), dtype=np.uint8)
    return np.unpackbits(packed, count=count)


class Coins:
    """Independent coins, one row for each probability.

    Privacy: every flip draws one word per coin, whatever the outcome. Further words are drawn only when a word equals
    the first digits of its probability, which happens to one word in 2**32.
    """

    def __init__(self, probabilities: Sequence[Digits], word_bits: int = WORD_BITS) -> None:
        self._probabilities = tuple(probabilities)
        self._word_bits = word_bits
        self._thresholds = np.array([p(word_bits) for p in probabilities], dtype=f"<u{word_bits // 8}")[:, np.newaxis]

    def flip(self, size: int, stream: Stream) -> NDArray[np.bool_]:
        shape = (len(self._probabilities), size)
        words = uniform_words(stream, shape[0] * size, self._word_bits).reshape(shape)
        heads = words < self._thresholds
        undecided = words == self._thresholds
        if undecided.any():
            for row, column in np.argwhere(undecided):
                heads[row, column] = self._decide(self._probabilities[row], stream)
        return heads

    def _decide(self, probability: Digits, stream: Stream) -> bool:
        """Decide a coin whose first word equals its probability's digits: draw words until one differs."""
        bits, expected, word = self._word_bits, 0, 0
        while word == expected:
            bits += self._word_bits
            expected = probability(bits) % 2**self._word_bits
            word = stream.bits(self._word_bits)
        return word < expected
