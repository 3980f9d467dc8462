"""The samplers follow their laws. False-alarm rate 1e-6 per test, shared by its comparisons (see goodness.py)."""

from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest
from scipy import signal, stats

from crypto.randomness import Stream
from crypto.sampling.laplace import discrete_laplace, polya_bound, polya_share
from tests.statistical.goodness import Law, p_values, rejected

DRAWS = 400_000
SMALL = [Fraction(1, n) for n in (10_000, 1000, 300, 100, 50, 20, 10, 7, 5, 3, 2)]
ALPHAS = [*SMALL, *(Fraction(n, 10) for n in (7, 10, 15, 20, 30, 40, 50, 70, 100, 200))]
SETTINGS = [
    (Fraction(alpha), shares)
    for alpha, shares in [
        *(("1/10000", 2), ("1/1000", 3), ("1/300", 10), ("1/100", 1), ("1/100", 50), ("1/50", 5), ("1/20", 1)),
        *(("1/20", 2), ("1/20", 4), ("1/10", 3), ("1/10", 20), ("1/5", 2), ("1/5", 9), ("1/2", 1), ("1/2", 7)),
        *(("1", 2), ("1", 50), ("2", 3), ("3", 1), ("5", 2), ("10", 4), ("20", 3)),
    ]
]


@lru_cache(maxsize=1)
def laplace_law(alpha: Fraction) -> Law:
    rate = float(alpha)
    reach = int(60 / rate) + 2
    q = np.exp(-rate)
    return Law(-reach, np.tanh(rate / 2) * q ** np.abs(np.arange(-reach, reach + 1)))


@lru_cache(maxsize=1)
def share_law(alpha: Fraction, shares: int) -> Law:
    reach = polya_bound(alpha, shares)
    one = stats.nbinom(1 / shares, -np.expm1(-float(alpha))).pmf(np.arange(reach + 1))
    return Law(-reach, np.maximum(signal.fftconvolve(one, one[::-1]), 0.0))


@pytest.mark.parametrize("alpha", ALPHAS, ids=str)
def test_discrete_laplace_follows_its_law(alpha: Fraction) -> None:
    draws = discrete_laplace(alpha, DRAWS, Stream.system())
    assert rejected(p_values(draws, laplace_law(alpha))) == []


@pytest.mark.parametrize("word_bits", [8, 16])
@pytest.mark.parametrize("alpha", [Fraction(1, 300), Fraction(1, 20), Fraction(1, 2), Fraction(3)], ids=str)
def test_refined_coins_follow_the_same_law(alpha: Fraction, word_bits: int) -> None:
    draws = discrete_laplace(alpha, DRAWS, Stream.system(), word_bits=word_bits)
    assert rejected(p_values(draws, laplace_law(alpha))) == []


@pytest.mark.parametrize(("alpha", "shares"), SETTINGS, ids=str)
def test_a_share_follows_its_law(alpha: Fraction, shares: int) -> None:
    draws = polya_share(alpha, shares, DRAWS, Stream.system())
    assert rejected(p_values(draws, share_law(alpha, shares))) == []


@pytest.mark.parametrize(("alpha", "shares"), SETTINGS, ids=str)
def test_shares_add_up_to_discrete_laplace(alpha: Fraction, shares: int) -> None:
    stream = Stream.system()
    total = sum(polya_share(alpha, shares, DRAWS, stream) for _ in range(shares))
    assert rejected(p_values(total, laplace_law(alpha))) == []


@pytest.mark.parametrize("word_bits", [8, 16])
@pytest.mark.parametrize(("alpha", "shares"), [("1/20", 3), ("1/10", 1), ("1", 2), ("3", 5)])
def test_refined_shares_follow_the_same_law(alpha: str, shares: int, word_bits: int) -> None:
    count = DRAWS // 4 if word_bits == 16 else DRAWS // 40  # exact integers decide nearly all short words, one by one
    draws = polya_share(Fraction(alpha), shares, count, Stream.system(), word_bits=word_bits)
    assert rejected(p_values(draws, share_law(Fraction(alpha), shares))) == []


@pytest.mark.parametrize("alpha", [Fraction(1, 1000), Fraction(1, 10), Fraction(1)], ids=str)
def test_a_scale_wrong_by_two_percent_is_rejected(alpha: Fraction) -> None:
    draws = discrete_laplace(alpha * Fraction(102, 100), DRAWS, Stream.system())
    assert rejected(p_values(draws, laplace_law(alpha)))


def test_a_share_wrong_by_two_percent_is_rejected() -> None:
    """Shares have heavier tails than the whole, so that the same difference takes more draws to see."""
    draws = polya_share(Fraction(102, 1000), 3, 5 * DRAWS, Stream.system())
    assert rejected(p_values(draws, share_law(Fraction(1, 10), 3)))


def test_coins_cut_to_eight_bits_are_rejected() -> None:
    """What the sampler would give without refinement: each probability rounded down to a multiple of 1/256."""
    generator = np.random.default_rng()
    rate = 0.05
    cut = [np.floor(256 / (1 + np.exp(rate * 2**bit))) / 256 for bit in range(11)]
    geometric = sum((generator.random(DRAWS) < p).astype(np.int64) << bit for bit, p in enumerate(cut))
    nonzero = generator.random(DRAWS) < 2 / (1 + np.exp(rate))
    draws = (geometric + 1) * nonzero * generator.choice([-1, 1], DRAWS)
    assert rejected(p_values(draws, laplace_law(Fraction(1, 20))))


def test_repeated_draws_are_rejected() -> None:
    draws = np.repeat(discrete_laplace(Fraction(1, 10), DRAWS // 2, Stream.system()), 2)
    assert "pairs" in rejected(p_values(draws, laplace_law(Fraction(1, 10))))


def test_a_lopsided_sign_is_rejected() -> None:
    draws = discrete_laplace(Fraction(1, 10), DRAWS, Stream.system())
    draws[: DRAWS // 40] = np.abs(draws[: DRAWS // 40])
    assert "signs" in rejected(p_values(draws, laplace_law(Fraction(1, 10))))
