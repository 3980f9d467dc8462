"""The discrete Gaussian sampler follows its law. False-alarm rate 1e-6 per test, shared by its comparisons."""

from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest
from scipy import stats

from crypto.randomness import Stream
from crypto.sampling.gaussian import discrete_gaussian, gaussian_bound, gaussian_variance
from tests.statistical.goodness import Law, p_values, rejected
from tests.support.effort import mostly_exhaustive

DRAWS = 400_000
# One width for all blocks below a variance of 16384, then 2, 4, 8, ..., 4096.
VARIANCES = [
    *("1/10", "1/4", "1/2", "1", "3/2", "2", "5", "10", "37/3", "100", "1000", "16383", "16384", "65535", "65536"),
    *("100001/3", "300000", "1000000", "4000000", "16777216", "100000000"),
]
HUGE = [Fraction(10**10), Fraction(10**12), Fraction(10**15)]
STEP = 1 << 10
# The last needs exact integers for nearly every draw.
REFINED = [
    *((16, Fraction(v)) for v in (Fraction(1, 2), 7, 300, 20_000, 10**6)),
    *((8, Fraction(v)) for v in (Fraction(1, 2), 7, 300, 20_000, 10**6)),
]


@lru_cache(maxsize=1)
def gaussian_law(variance: Fraction) -> Law:
    reach = gaussian_bound(variance)
    weights = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * float(variance)))
    return Law(-reach, weights / weights.sum())


@pytest.mark.parametrize("variance", [Fraction(v) for v in VARIANCES], ids=str)
def test_discrete_gaussian_follows_its_law(variance: Fraction) -> None:
    draws = discrete_gaussian(variance, DRAWS, Stream.system())
    assert rejected(p_values(draws, gaussian_law(variance))) == []


@pytest.mark.parametrize(("bits", "variance"), mostly_exhaustive(REFINED, range(len(REFINED) - 1)), ids=str)
def test_refined_draws_follow_the_same_law(bits: int, variance: Fraction) -> None:
    count = DRAWS // 4 if bits == 16 else DRAWS // 40  # short words are refined one by one
    draws = discrete_gaussian(variance, count, Stream.system(), table_bits=bits, coin_bits=bits)
    assert rejected(p_values(draws, gaussian_law(variance))) == []


@pytest.mark.parametrize("variance", HUGE, ids=str)
def test_wide_noise_follows_the_normal_law_and_its_last_bits_are_uniform(variance: Fraction) -> None:
    """The sum over a block of this law is the normal law's integral up to 1 part in 10^10."""
    draws = discrete_gaussian(variance, DRAWS, Stream.system())
    deviation = float(variance) ** 0.5
    edges = np.arange(-10, 10.01, 0.05) * deviation + 0.5
    masses = np.diff(stats.norm.cdf(np.concatenate([[-np.inf], np.floor(edges) + 0.5, [np.inf]]) / deviation))
    classes = np.searchsorted(np.floor(edges), draws)
    low = -(masses.size // 2)
    found = p_values(classes + low, Law(low, masses))
    last = np.bincount(draws & (STEP - 1), minlength=STEP).reshape(-1, 4).sum(axis=1)
    found["last bits"] = 10 * stats.chisquare(last).pvalue
    assert rejected({name: p for name, p in found.items() if name not in ("zeros", "signs")}) == []


@pytest.mark.parametrize("variance", [Fraction(1, 10), Fraction(1), Fraction(10), Fraction(70)], ids=str)
def test_the_variance_that_is_published_is_the_laws(variance: Fraction) -> None:
    law = gaussian_law(variance)
    assert gaussian_variance(variance) == pytest.approx((law.pmf * law.values**2).sum(), rel=1e-12)


@pytest.mark.parametrize("variance", [Fraction(2), Fraction(1000), Fraction(10**6)], ids=str)
def test_a_deviation_wrong_by_two_percent_is_rejected(variance: Fraction) -> None:
    draws = discrete_gaussian(variance * Fraction(102, 100) ** 2, DRAWS, Stream.system())
    assert rejected(p_values(draws, gaussian_law(variance)))


def test_a_uniform_rest_is_rejected() -> None:
    """What the sampler would give without its rejections, with wide blocks: noise that is flat inside each."""
    variance = Fraction(4_000_000)
    draws = discrete_gaussian(variance, DRAWS, Stream.system())
    rest = np.random.default_rng().integers(0, 512, draws.size)
    flat = np.where(draws < 0, -1, 1) * (np.abs(draws) // 512 * 512 + rest)
    assert "shape" in rejected(p_values(flat, gaussian_law(variance)))


def test_a_zero_with_two_signs_is_rejected() -> None:
    variance = Fraction(4)
    draws = discrete_gaussian(variance, DRAWS, Stream.system())
    weights = np.exp(-(np.arange(30.0) ** 2) / 8)
    doubled = np.random.default_rng().choice(30, DRAWS, p=weights / weights.sum()) * np.where(draws < 0, -1, 1)
    assert "zeros" in rejected(p_values(doubled, gaussian_law(variance)))


def test_repeated_draws_are_rejected() -> None:
    draws = np.repeat(discrete_gaussian(Fraction(100), DRAWS // 2, Stream.system()), 2)
    assert "pairs" in rejected(p_values(draws, gaussian_law(Fraction(100))))
