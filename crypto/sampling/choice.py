"""Private choice of one candidate by its score, drawn exactly from integer scores and a rational rate.

It does not know what is scored or what the rate costs; `noise.md` holds promise and argument.
"""

import math
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from crypto.randomness import Stream
from crypto.sampling.coins import WORD_BITS, Coins, exponential_digits, uniform_words

_CHUNK = 1 << 14
_WEIGHT_BITS = 192
_TICKET_BITS = 64
_LIFT_BITS = 32


def bernoulli_exp(
    multiples: NDArray[np.int64], unit: Fraction, largest: int, stream: Stream, *, word_bits: int = WORD_BITS
) -> NDArray[np.bool_]:
    """Flip a coin for every multiple in 0..largest, independently: true with probability exp(-unit * multiple).

    Every bit i of `largest` has a coin exp(-unit 2**i). The coins at the set bits of a multiple must all show heads.
    """
    if not 0 <= largest < 2**63:
        raise ValueError(f"the largest multiple (or span) must lie in 0..2^63-1, got {largest}")
    if multiples.size and (multiples.min() < 0 or multiples.max() > largest):
        raise ValueError(f"multiples lie in {multiples.min()}..{multiples.max()}, expected 0..{largest}")
    coins = _exponential_coins(unit, largest.bit_length(), word_bits)
    bits = np.arange(largest.bit_length(), dtype=np.int64)[:, np.newaxis]
    accepted = np.empty(multiples.size, dtype=np.bool_)
    for start in range(0, multiples.size, _CHUNK):
        part = multiples[start : start + _CHUNK]
        unset = (part >> bits) & 1 == 0
        accepted[start : start + _CHUNK] = (coins.flip(part.size, stream) | unset).all(axis=0)
    return accepted


def permute_and_flip(
    scores: NDArray[np.int64], rate: Fraction, span: int, stream: Stream, *, word_bits: int = WORD_BITS
) -> int:
    """Choose the first candidate, in random order, whose coin exp(rate (score - best)) shows heads.

    Privacy: all coins are flipped and one of the heads is chosen uniformly. This gives the same law, and the number
    of steps depends only on the number of candidates and on `span`, a public bound on best - worst.
    """
    behind = _behind_best(scores, rate)
    if int(behind.max()) > span:
        raise ValueError(f"scores are {behind.max()} apart, expected at most {span}; pass the public span of the score")
    accepted = bernoulli_exp(behind.astype(np.int64), rate, span, stream, word_bits=word_bits)
    return one_of(accepted, stream)


def exponential_choice(
    scores: NDArray[np.int64], rate: Fraction, stream: Stream, *, weight_bits: int = _WEIGHT_BITS
) -> int:
    """Choose candidate i with probability proportional to exp(rate * score_i): the exponential mechanism, by inversion.

    The candidate is the one in whose interval a uniform share of the total weight falls. Weights are enclosed in
    integers; while the enclosures leave two candidates possible, weights and uniform number get more digits.

    Privacy: Python's integers take longer the longer they are. Here every weight is lifted by 2**(bits + 32), so that
    all have one length and the operations depend on the rate and the number of candidates alone.
    """
    behind = _behind_best(scores, rate)
    bits = drawn = 0
    while True:
        bits += weight_bits
        drawn = drawn << weight_bits | stream.bits(weight_bits)
        low, high = cumulative_weights(behind, rate, bits)
        lifts = (np.arange(1, behind.size + 1).astype(np.object_)) << (bits + _LIFT_BITS)
        earliest = _count_up_to(drawn * (low[-1] - lifts[-1]) >> bits, high, lifts, bits)
        latest = _count_up_to((drawn + 1) * (high[-1] - lifts[-1]) >> bits, low, lifts, bits)
        if earliest == latest:
            return earliest


def _behind_best(scores: NDArray[np.int64], rate: Fraction) -> NDArray[np.uint64]:
    if not scores.size:
        raise ValueError("there is nothing to choose from: the list of scores is empty")
    if rate <= 0:
        raise ValueError(f"a private choice needs a positive rate, got {rate}")
    # Overflow safety: the difference of two int64 is correct modulo 2^64, and its true value lies in 0..2^64-1.
    distances: NDArray[np.uint64] = scores.max().astype(np.uint64) - scores.astype(np.uint64)
    return distances


@lru_cache(maxsize=64)
def _exponential_coins(unit: Fraction, count: int, word_bits: int) -> Coins:
    if unit <= 0:
        raise ValueError(f"exp(-unit * multiple) needs a positive unit, got {unit}")
    return Coins([partial(exponential_digits, unit * 2**i) for i in range(count)], word_bits)


def one_of(accepted: NDArray[np.bool_], stream: Stream, ticket_bits: int = _TICKET_BITS) -> int:
    """Choose one of the accepted candidates uniformly: the highest ticket wins.

    Rejected candidates draw a ticket too, which is then discarded. After a tie for the highest ticket, all draw again,
    which favours nobody.
    """
    while True:
        tickets = ((uniform_words(stream, accepted.size, ticket_bits) >> 1) + 1) * accepted
        if np.count_nonzero(tickets == tickets.max()) == 1:
            return int(tickets.argmax())


def cumulative_weights(
    behind: NDArray[np.uint64], rate: Fraction, bits: int
) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
    """Bounds below and above of 2**bits times the running sums of exp(-rate * behind), with the lifts of all before."""
    factors = _factors(rate, bits)
    low = np.cumsum(_weights(behind, rate, bits))
    # Every factor is at most 1 and less than one unit too low, and so is every product's rounding.
    high = low + 2 * len(factors) * np.arange(1, behind.size + 1).astype(np.object_)
    return low, high


def _weights(behind: NDArray[np.uint64], rate: Fraction, bits: int) -> NDArray[np.object_]:
    """Return 2**bits exp(-rate * behind), rounded down and lifted: lifted factors give a lifted product."""
    behind = np.minimum(behind, np.uint64(min(_negligible(rate, bits), 2**64 - 1)))
    lift_bits = bits + _LIFT_BITS
    lifts = (1 << 2 * lift_bits) + (1 << (lift_bits + bits))
    weights = np.full(behind.size, (1 << lift_bits) + (1 << bits), dtype=np.object_)
    for place, powers in enumerate(_factors(rate, bits)):
        factor = powers[(behind >> np.uint64(8 * place)) & np.uint64(255)]
        weights = (weights * factor + lifts - ((weights + factor) << lift_bits)) >> bits
    return weights


def _count_up_to(bound: int, sums: NDArray[np.object_], lifts: NDArray[np.object_], bits: int) -> int:
    """How many sums, without their lifts, do not exceed the bound: differences are shifted to 1 or 0, not compared."""
    far = bits + 2 * _LIFT_BITS
    return int(((lifts + (bound + (1 << far)) - sums) >> far).sum())


def _negligible(rate: Fraction, bits: int) -> int:
    """Return a distance from the best score at which a weight is below one unit, 2**-bits (ln 2 < 7/10)."""
    return math.ceil(Fraction(7, 10) * bits / rate)


@lru_cache(maxsize=16)
def _factors(rate: Fraction, bits: int) -> list[NDArray[np.object_]]:
    """For every byte of a distance: 2**bits * exp(-rate * digit * 256**place), rounded down, lifted, for all digits."""
    places = -(-_negligible(rate, bits).bit_length() // 8)
    return [
        np.array([1 << bits, *(exponential_digits(rate * digit * 256**place, bits) for digit in range(1, 256))], object)
        + (1 << (bits + _LIFT_BITS))
        for place in range(min(places, 8))
    ]
