"""Discrete Gaussian noise: its blocks, table and bounds by hand; the law itself is in tests/statistical."""

import math
from fractions import Fraction

import numpy as np
import pytest

from crypto.errors import NoiseOutOfReach
from crypto.randomness import Stream
from crypto.sampling import gaussian
from crypto.sampling.gaussian import discrete_gaussian, gaussian_bound, gaussian_variance
from tests.unit.crypto.sampling.test_laplace import Script

STREAM = Stream.keyed(b"unit tests of the Gaussian")


@pytest.mark.parametrize(
    ("variance", "width"),
    [(Fraction(1, 9), 1), (Fraction(16_383), 1), (Fraction(16_384), 2), (Fraction(65_535), 2), (Fraction(65_536), 4)],
)
def test_blocks_are_at_most_a_64th_of_the_deviation_wide(variance: Fraction, width: int) -> None:
    blocks = gaussian.blocks_of(variance)
    assert blocks.width == width
    assert width == 1 or 64 * width <= math.sqrt(variance) < 128 * width


@pytest.mark.parametrize(
    "variance", [Fraction(1, 1000), Fraction(1), Fraction(77, 3), Fraction(10**6), Fraction(10**17)]
)
def test_the_cut_tail_is_below_two_to_the_minus_128(variance: Fraction) -> None:
    bound = gaussian_bound(variance)
    # 2 exp(-(bound + 1)^2 / (2 variance)) < 2^-128, in logarithms
    assert math.log(2) - Fraction((bound + 1) ** 2) / (2 * variance) < -128 * math.log(2)
    draws = discrete_gaussian(variance, 5000, STREAM)
    assert draws.dtype == np.int64
    assert np.abs(draws).max() <= bound


def test_thresholds_by_hand() -> None:
    # variance 2: blocks of one value with weights exp(-m^2/4), here zero counted with both its signs
    weights = np.exp(-(np.arange(30.0) ** 2) / 4)
    expected = np.cumsum(weights) / weights.sum()
    found = [threshold / 2**50 for threshold in gaussian.thresholds(Fraction(2), 50)]
    assert len(found) == gaussian_bound(Fraction(2))
    assert found[:10] == pytest.approx(expected[:10], rel=1e-12)


@pytest.mark.parametrize("variance", [Fraction(1, 3), Fraction(9), Fraction(20_000)])
def test_thresholds_are_prefixes_of_longer_thresholds(variance: Fraction) -> None:
    long = gaussian.thresholds(variance, 256)
    assert gaussian.thresholds(variance, 64) == [threshold >> 192 for threshold in long]
    assert gaussian.thresholds(variance, 64, guard_bits=1) == [threshold >> 192 for threshold in long]


def test_narrow_noise_is_almost_surely_zero() -> None:
    assert not discrete_gaussian(Fraction(1, 1000), 5000, STREAM).any()


@pytest.mark.parametrize("size", [0, 1, 7, 16_384, 16_385, 40_000])
@pytest.mark.parametrize("variance", [Fraction(1, 10), Fraction(10**5)])
def test_any_number_of_draws(size: int, variance: Fraction) -> None:
    assert discrete_gaussian(variance, size, STREAM).shape == (size,)


def test_the_same_stream_gives_the_same_noise_and_uses_the_same_bytes() -> None:
    first, second = Stream.keyed(b"k"), Stream.keyed(b"k")
    variance = Fraction(10**5, 7)
    assert (discrete_gaussian(variance, 100, first) == discrete_gaussian(variance, 100, second)).all()
    assert first.take(8) == second.take(8)


def test_draws_by_hand() -> None:
    """Variance 1, one draw: 17 trials of a block each (64-bit words), no coins, then 17 signs."""
    table = gaussian.thresholds(Fraction(1), 64)
    blocks = [0, 0, 2, *[1] * 14]
    words = np.array([0, 5, table[1] + 1, *[table[0] + 1] * 14], dtype="<u8").tobytes()
    rests = bytes(4 * 17)
    # the first two trials are zeros with a minus, which are not kept; the third is block 2 with a minus
    signs = bytes([0b11100000, 0, 0])
    assert len(blocks) == 17
    script = Script(words + rests + signs)
    assert discrete_gaussian(Fraction(1), 1, script).tolist() == [-2]
    assert script.left == b""


def test_variance_is_the_parameter_but_for_narrow_noise() -> None:
    assert gaussian_variance(Fraction(1000)) == 1000.0
    weights = {x: math.exp(-2 * x * x) for x in range(-9, 10)}  # variance 1/4
    expected = sum(w * x * x for x, w in weights.items()) / sum(weights.values())
    assert gaussian_variance(Fraction(1, 4)) == pytest.approx(expected, rel=1e-12)
    assert gaussian_variance(Fraction(1, 4)) < 0.25


def test_variances_out_of_reach_are_refused() -> None:
    for variance in (Fraction(0), Fraction(-1)):
        with pytest.raises(ValueError, match="positive variance"):
            discrete_gaussian(variance, 1, STREAM)
    with pytest.raises(NoiseOutOfReach, match="use a larger epsilon"):
        discrete_gaussian(Fraction(2**60), 1, STREAM)
