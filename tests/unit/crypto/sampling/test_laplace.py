"""Noise: bounds, variances, refusals and the certified digits behind the coins; laws are in tests/statistical."""

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from crypto.errors import NoiseOutOfReach
from crypto.randomness import Stream
from crypto.sampling import negative_binomial as nb
from crypto.sampling.coins import Coins, exponential_digits, logistic_digits
from crypto.sampling.inversion import InverseTable, count_below
from crypto.sampling.laplace import discrete_laplace, laplace_bound, laplace_variance, polya_bound, polya_share

STREAM = Stream.keyed(b"unit tests of the noise")


def test_digits_of_exp() -> None:
    # exp(-1) = 0.36787944117144232..., so 0.3678794... * 2^8 = 94.17...
    assert exponential_digits(Fraction(1), 8) == 94
    assert exponential_digits(Fraction(1), 64) == int(Fraction("0.367879441171442321595523770161460867") * 2**64)


def test_digits_of_the_logistic() -> None:
    # 1/(1+e) = 0.26894142136999512...
    assert logistic_digits(Fraction(1), 4) == 4
    assert logistic_digits(Fraction(1), 60) == int(Fraction("0.268941421369995120748840758178") * 2**60)


def test_digits_of_probabilities_near_the_ends() -> None:
    assert exponential_digits(Fraction(1000), 64) == 0
    assert exponential_digits(Fraction(10**12), 64) == 0
    assert exponential_digits(Fraction(1, 10**30), 32) == 2**32 - 1
    assert logistic_digits(Fraction(1, 10**30), 32) == 2**31 - 1
    assert logistic_digits(Fraction(10**12), 32) == 0


def test_digits_are_prefixes_of_longer_digits() -> None:
    for digits in (exponential_digits, logistic_digits):
        for x in (Fraction(1, 20), Fraction(7, 3), Fraction(90)):
            assert [digits(x, bits) for bits in range(1, 300)] == [
                digits(x, 300) >> (300 - bits) for bits in range(1, 300)
            ]


def test_enclosures_are_tightened_until_they_agree() -> None:
    """exp(-2^-100) = 1 - 2^-100 + ...: 64 guard bits cannot tell its first 8 bits from 1."""
    assert exponential_digits(Fraction(1, 2**100), 8) == 255


@pytest.mark.parametrize(
    ("alpha", "bound"),
    [
        (Fraction(1, 10), 1024),  # 90 / 0.1 = 900
        (Fraction(1, 20), 2048),
        (Fraction(90, 1024), 1024),
        (Fraction(89, 1024), 2048),
        (Fraction(50), 2),
        (Fraction(90), 1),
        (Fraction(10**6), 1),
        (Fraction(90, 2**60), 2**60),
    ],
)
def test_laplace_bound_is_the_first_power_of_two_beyond_the_tail(alpha: Fraction, bound: int) -> None:
    assert laplace_bound(alpha) == bound
    draws = discrete_laplace(alpha, 5000, STREAM)
    assert draws.dtype == np.int64
    assert np.abs(draws).max() <= bound


def test_the_cut_tail_is_below_two_to_the_minus_128() -> None:
    for alpha in (Fraction(1, 1234), Fraction(1, 10), Fraction(3)):
        assert -float(alpha) * laplace_bound(alpha) / math.log(2) < -128
        assert 1 - float(alpha) * polya_bound(alpha, 2) / math.log(2) < -128  # two draws


def test_the_widest_noise_fills_its_bits() -> None:
    draws = discrete_laplace(Fraction(90, 2**60), 20_000, STREAM)
    assert draws.max() > 2**54
    assert draws.min() < -(2**54)
    assert abs(np.abs(draws.astype(float)).mean() * 90 / 2**60 - 1) < 0.1


@pytest.mark.parametrize(
    ("alpha", "variance"),
    [(Fraction(1, 20), 799.833), (Fraction(1, 10**8), 2e16), (Fraction(2), 0.36203), (Fraction(2000), 0.0)],
)
def test_laplace_variance(alpha: Fraction, variance: float) -> None:
    assert laplace_variance(alpha) == pytest.approx(variance, rel=1e-5)


def test_noise_beyond_sixty_bits_is_refused() -> None:
    with pytest.raises(NoiseOutOfReach, match="needs 61 bits, but 60 are allowed: use a larger epsilon"):
        laplace_bound(Fraction(89, 2**60))


@pytest.mark.parametrize("alpha", [Fraction(0), Fraction(-1, 2)])
def test_alpha_must_be_positive(alpha: Fraction) -> None:
    with pytest.raises(ValueError, match="positive alpha"):
        discrete_laplace(alpha, 1, STREAM)
    with pytest.raises(ValueError, match="alpha > 0"):
        polya_share(alpha, 2, 1, STREAM)


def test_a_share_needs_shares() -> None:
    with pytest.raises(ValueError, match="at least one share"):
        polya_bound(Fraction(1), 0)


def test_shares_too_wide_for_a_table_are_refused_with_the_way_out() -> None:
    with pytest.raises(NoiseOutOfReach, match="noise=local or noise=selected"):
        polya_share(Fraction(1, 10**6), 3, 1, STREAM)


@pytest.mark.parametrize("alpha", [Fraction(1, 10), Fraction(1, 200), Fraction(90), Fraction(10**4)])
def test_shares_keep_their_bound(alpha: Fraction) -> None:
    draws = polya_share(alpha, 3, 5000, STREAM)
    assert draws.dtype == np.int64
    assert np.abs(draws).max() <= polya_bound(alpha, 3) == math.ceil(90 / alpha)


@pytest.mark.parametrize("size", [0, 1, 7, 16_384, 16_385, 40_000])
def test_any_number_of_draws(size: int) -> None:
    assert discrete_laplace(Fraction(1, 10), size, STREAM).shape == (size,)
    assert polya_share(Fraction(1, 10), 3, size, STREAM).shape == (size,)


def test_the_same_stream_gives_the_same_noise_and_uses_the_same_bytes() -> None:
    first, second = Stream.keyed(b"k"), Stream.keyed(b"k")
    assert (discrete_laplace(Fraction(1, 9), 100, first) == discrete_laplace(Fraction(1, 9), 100, second)).all()
    assert (polya_share(Fraction(1, 9), 4, 100, first) == polya_share(Fraction(1, 9), 4, 100, second)).all()
    assert first.take(8) == second.take(8)


def test_draws_from_one_stream_differ() -> None:
    stream = Stream.keyed(b"k")
    assert (discrete_laplace(Fraction(1, 9), 100, stream) != discrete_laplace(Fraction(1, 9), 100, stream)).any()


class Script(Stream):
    """A stream whose bytes are written down beforehand."""

    def __init__(self, script: bytes) -> None:
        super().__init__(bytes(32))
        self.left = script

    def take(self, count: int) -> bytes:
        assert count <= len(self.left)
        taken, self.left = self.left[:count], self.left[count:]
        return taken


@pytest.mark.parametrize(
    ("script", "heads"),
    [
        ([93], True),
        ([95], False),
        ([94, 44], True),  # exp(-1) = 0.0101 1110 0010 1101 0101 1000 ... = 94, 45, 88, ... in bytes
        ([94, 46], False),
        ([94, 45, 87], True),
        ([94, 45, 88, 255], False),
    ],
)
def test_a_word_equal_to_the_threshold_is_decided_by_the_next(script: list[int], heads: bool) -> None:
    stream = Script(bytes(script))
    coin = Coins([lambda bits: exponential_digits(Fraction(1), bits)], word_bits=8)
    assert coin.flip(1, stream).tolist() == [[heads]]
    assert stream.left == b""


def test_a_laplace_draw_by_hand() -> None:
    # alpha 22.5, so 90/22.5 = 4: words for nonzero (p = 2/(1+e^22.5) = 3.4e-10 -> 0x00, ...), bit 0 and bit 1 of G.
    # 2^32 p = 1.45: the word 0 says nonzero. 2^32 / (1+e^22.5) = 0.72 and 2^32 / (1+e^45) = 1e-10: words of 5 say 0.
    words = np.array([0, 5, 5], dtype="<u4").tobytes()
    assert discrete_laplace(Fraction(45, 2), 1, Script(words + b"\x80")).tolist() == [-1]
    assert discrete_laplace(Fraction(45, 2), 1, Script(words + b"\x00")).tolist() == [1]
    zero = np.array([2, 5, 5], dtype="<u4").tobytes()
    assert discrete_laplace(Fraction(45, 2), 1, Script(zero + b"\x80")).tolist() == [0]


def test_thresholds_of_one_share_are_those_of_the_geometric() -> None:
    # Distribution function of the geometric: 1 - q^(n+1).
    thresholds = nb.thresholds(Fraction(1, 3), 1, 100)
    assert thresholds[:50] == [2**100 - 1 - exponential_digits(Fraction(n + 1, 3), 100) for n in range(50)]


def test_thresholds_of_two_shares_by_hand() -> None:
    # alpha = 1, r = 1/2, q = 1/e: p_0 = sqrt(1-q), p_1 = p_0 q/2, p_2 = p_1 q (1 + 1/2) / 2 = p_0 q^2 3/8.
    first = [threshold / 2**40 for threshold in nb.thresholds(Fraction(1), 2, 40)[:3]]
    q = math.exp(-1)
    p0 = math.sqrt(1 - q)
    assert first == pytest.approx([p0, p0 * (1 + q / 2), p0 * (1 + q / 2 + 3 * q * q / 8)], rel=1e-11)


def test_thresholds_are_prefixes_of_longer_thresholds() -> None:
    long = nb.thresholds(Fraction(1, 4), 3, 256)
    assert nb.thresholds(Fraction(1, 4), 3, 64) == [threshold >> 192 for threshold in long]
    assert nb.thresholds(Fraction(1, 4), 3, 64, guard_bits=1) == [threshold >> 192 for threshold in long]


def test_thresholds_too_close_to_one_for_the_first_enclosure() -> None:
    # 1 - p_0 is about e^-700 / 3 < 2^-1000: far below the first precision.
    assert nb.thresholds(Fraction(700), 3, 64) == [2**64 - 1]


def test_the_search_counts_smaller_entries() -> None:
    table = np.array([3, 3, 9, 200, 255, 255, 255, 255], dtype=np.uint8)
    words = np.arange(256, dtype=np.uint8)
    assert (count_below(table, words) == np.searchsorted(table, words, side="left")).all()


def test_more_digits_decide_between_thresholds_that_look_alike() -> None:
    thresholds = nb.thresholds(Fraction(1, 4), 3, 16)
    place = next(n for n in range(len(thresholds)) if thresholds[n] >> 8 == 255) + 3
    for wanted, low in ((place, thresholds[place] - 1), (place + 1, thresholds[place] + 1)):
        assert thresholds[place - 1] < low < thresholds[place + 1]
        assert low not in thresholds
        stream = Script(bytes([low & 255]))
        assert nb.table_of(Fraction(1, 4), 3, 8).exact_value(255, stream) == wanted


def test_a_number_beyond_every_threshold_is_the_largest_value() -> None:
    stream = Script(b"\xff" * 64)
    alpha = Fraction(30)
    assert nb.table_of(alpha, 3, 8).exact_value(255, stream) == nb.largest_value(alpha, 3) == 3


@pytest.mark.parametrize(
    ("alpha", "shares"), [("30", 3), ("700", 3), ("3", 1), ("1/4", 3), ("1/40", 2), ("1/1000", 49), ("1/3000", 2)]
)
def test_the_table_is_as_close_as_is_promised(alpha: str, shares: int) -> None:
    alpha_, allowed = Fraction(alpha), 2**64 - 1
    table, exact = nb.table_of(alpha_, shares, 64).entries, nb.thresholds(alpha_, shares, 64)
    assert (np.diff(table.astype(object)) >= 0).all()
    truth = np.array([*exact[: table.size], *[allowed] * (table.size - len(exact))], dtype=object)
    assert abs(table.astype(object) - truth).max() <= nb.reach(64)


def test_a_word_within_reach_of_an_entry_is_decided_exactly() -> None:
    alpha, place = Fraction(1, 4), 5
    exact = nb.thresholds(alpha, 3, 64)[place]
    for word, wanted in ((exact - 1, place), (exact + 1, place + 1), (exact + 2 * nb.reach(64) + 9, place + 1)):
        stream = Script(word.to_bytes(8, "little"))
        assert nb.negative_binomial(alpha, 3, 1, stream).tolist() == [wanted]
    # A table that is wrong by as much as is allowed, either way, changes nothing.
    right = nb.table_of(alpha, 3, 64).entries[:-1].astype(object)
    for error in (nb.reach(64) // 2, -nb.reach(64) // 2):
        entries = np.array([max(0, min(2**64 - 1, entry + error)) for entry in right], dtype=np.uint64)
        wrong = InverseTable(partial(nb.thresholds, alpha, 3), 64, entries, nb.reach(64))
        for word, wanted in ((exact - 1, place), (exact + 1, place + 1)):
            assert wrong.draw(1, Script(word.to_bytes(8, "little"))).tolist() == [wanted]
