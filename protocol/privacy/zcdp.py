"""Zero-concentrated differential privacy in exact numbers: conversion of rho to (epsilon, delta), and noise for a rho.

It does not know steps or noise values; `zcdp.md` holds the arguments and names the papers.

Irrational bounds are replaced by rational bounds on the safe side, which are equal on every machine. No number here is
a float.
"""

from fractions import Fraction
from functools import lru_cache
from math import isqrt

import gmpy2
from gmpy2 import RoundUp, mpfr, mpq

# Each order alpha > 1 gives a valid bound, epsilon = alpha rho + offset; alpha - 1 runs through powers of 2^(1/32).
_PER_OCTAVE = 32
_OCTAVES = range(-6 * _PER_OCTAVE, 40 * _PER_OCTAVE)
_ORDER_BITS = 40
_OFFSET_BITS = 64
_PRECISION = 160
_ROOT_BITS = 64
_NARROWEST_SHARE = Fraction(8)  # least variance of a share; the sum of narrower shares is not Gaussian enough
_SHARE_SLACK = Fraction(1, 1 << 20)  # part of rho that allows for a sum of shares not being exactly Gaussian
_LEAST_TAU_BITS = 1 << 10


@lru_cache(maxsize=1 << 12)
def epsilon_of(rho: Fraction, delta: Fraction) -> Fraction:
    """An epsilon for which rho-zCDP is (epsilon, delta)-private: increasing in rho, and concave where it is not 0."""
    p, q = rho.numerator << (_OFFSET_BITS - _ORDER_BITS), rho.denominator
    least = min(order * p + offset * q for order, offset in _bounds(delta))
    return max(Fraction(0), Fraction(least, q << _OFFSET_BITS))


def largest_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest rho whose `epsilon_of` is at most epsilon; the result is not positive if there is no such rho."""
    found = (
        (epsilon - Fraction(offset, 1 << _OFFSET_BITS)) / Fraction(order, 1 << _ORDER_BITS)
        for order, offset in _bounds(delta)
    )
    return max(found)


@lru_cache(maxsize=16)
def _bounds(delta: Fraction) -> tuple[tuple[int, int], ...]:
    """Every order alpha in units of 2^-40, with its offset rounded up to units of 2^-64 (zcdp.md, section 2)."""
    return tuple((order, offset_of(order, delta)) for order in map(order_at, _OCTAVES))


def order_at(place: int) -> int:
    """Return the order 1 + 2^(place / 32), rounded down, in units of 2^-40."""
    root, _ = gmpy2.iroot(gmpy2.mpz(1) << (place + _ORDER_BITS * _PER_OCTAVE), _PER_OCTAVE)
    return (1 << _ORDER_BITS) + int(root)


def offset_of(order: int, delta: Fraction) -> int:
    """Compute log(1 - 1/alpha) + log(1 / (delta alpha)) / (alpha - 1), rounding every step up."""
    alpha = mpq(order, 1 << _ORDER_BITS)
    with gmpy2.context(precision=_PRECISION, round=RoundUp):
        offset = gmpy2.log(mpfr(1 - 1 / alpha)) + gmpy2.log(mpfr(1 / (mpq(delta) * alpha))) / (alpha - 1)
        return int(gmpy2.ceil(gmpy2.mul_2exp(offset, _OFFSET_BITS)))


def root_below(square: Fraction) -> Fraction:
    """A rational number whose square is at most `square`, and close to it."""
    scaled = (square.numerator << 2 * _ROOT_BITS) // square.denominator
    return Fraction(isqrt(scaled), 1 << _ROOT_BITS)


def share_variance(rho: Fraction, shares: int) -> Fraction:
    """The variance of each of `shares` discrete Gaussians whose sum makes one table rho-zCDP (zcdp.md, section 4)."""
    if shares == 1:
        return 1 / rho
    variance = max(_NARROWEST_SHARE, (1 + _SHARE_SLACK) / (shares * rho))
    while cost_of_sum(variance, shares) > rho:
        variance *= 2
    return variance


def cost_of_sum(variance: Fraction, shares: int) -> Fraction:
    """An upper bound on the rho of one table under the sum of `shares` discrete Gaussians, each of variance 1 or more.

    It is (1 / S + tau)^2-zCDP with S^2 = shares * variance >= 1 and tau = 10 sum_k exp(-2 pi^2 variance k / (k + 1)).
    The bound uses k / (k + 1) >= 1/2 and exp(-pi^2) < 2^-14.
    """
    tau = 10 * (shares - 1) * Fraction(1, 1 << min(int(14 * variance), _LEAST_TAU_BITS))
    return 1 / (shares * variance) + 2 * tau + tau**2
