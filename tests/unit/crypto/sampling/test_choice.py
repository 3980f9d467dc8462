"""Private choice: refusals, extremes and certain outcomes; laws are in tests/statistical."""

from fractions import Fraction

import numpy as np
import pytest

from crypto.randomness import Stream
from crypto.sampling.choice import bernoulli_exp, cumulative_weights, exponential_choice, permute_and_flip

STREAM = Stream.keyed(b"unit tests of the choice")
ONE = Fraction(1)


def array(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def test_nothing_to_choose_from() -> None:
    with pytest.raises(ValueError, match="the list of scores is empty"):
        permute_and_flip(array(), ONE, 1, STREAM)
    with pytest.raises(ValueError, match="the list of scores is empty"):
        exponential_choice(array(), ONE, STREAM)


@pytest.mark.parametrize("rate", [Fraction(0), Fraction(-1, 3)])
def test_the_rate_must_be_positive(rate: Fraction) -> None:
    with pytest.raises(ValueError, match="needs a positive rate"):
        permute_and_flip(array(1, 2), rate, 1, STREAM)
    with pytest.raises(ValueError, match="needs a positive rate"):
        exponential_choice(array(1, 2), rate, STREAM)
    with pytest.raises(ValueError, match="needs a positive unit"):
        bernoulli_exp(array(1), rate, 1, STREAM)


def test_scores_further_apart_than_the_span_are_refused() -> None:
    with pytest.raises(ValueError, match="scores are 5 apart, expected at most 4"):
        permute_and_flip(array(-2, 3), ONE, 4, STREAM)
    assert permute_and_flip(array(-2, 3), ONE, 5, STREAM) in (0, 1)


@pytest.mark.parametrize(("multiples", "span"), [((-1, 2), "-1..2"), ((0, 9), "0..9")])
def test_multiples_out_of_range_are_refused(multiples: tuple[int, int], span: str) -> None:
    with pytest.raises(ValueError, match=f"multiples lie in {span}, expected 0..8"):
        bernoulli_exp(array(*multiples), ONE, 8, STREAM)


@pytest.mark.parametrize("largest", [-1, 2**63])
def test_a_span_that_does_not_fit_is_refused(largest: int) -> None:
    with pytest.raises(ValueError, match=r"must lie in 0\.\.2\^63-1"):
        bernoulli_exp(array(), ONE, largest, STREAM)


def test_multiple_zero_is_certain_and_a_far_one_impossible() -> None:
    accepted = bernoulli_exp(np.tile(array(0, 10**6), 20_000), ONE, 2**20, STREAM)
    assert accepted[::2].all()
    assert not accepted[1::2].any()


def test_multiples_that_can_only_be_zero_need_no_coins() -> None:
    assert bernoulli_exp(array(0, 0, 0), ONE, 0, STREAM).tolist() == [True] * 3
    assert bernoulli_exp(array(), ONE, 7, STREAM).tolist() == []


@pytest.mark.parametrize("scores", [(4,), (0, 10**6, 5), (-(2**62), 2**61, 2**61 - 10**6)])
def test_a_lead_that_cannot_be_missed(scores: tuple[int, ...]) -> None:
    best = scores.index(max(scores))
    for _ in range(20):
        assert permute_and_flip(array(*scores), ONE, 2**63 - 1, STREAM) == best
        assert exponential_choice(array(*scores), ONE, STREAM) == best


def test_scores_at_both_ends_of_int64() -> None:
    scores = array(-(2**63), 2**63 - 1)
    assert {exponential_choice(scores, Fraction(1, 2**70), STREAM) for _ in range(100)} == {0, 1}
    assert {exponential_choice(scores, ONE, STREAM) for _ in range(100)} == {1}
    with pytest.raises(ValueError, match="scores are 18446744073709551615 apart"):
        permute_and_flip(scores, ONE, 2**63 - 1, STREAM)


def test_the_work_is_the_same_whatever_the_scores() -> None:
    """The bytes drawn depend on the number of candidates and the public span alone."""
    after = []
    for scores in (array(*[0] * 500), array(*range(500)), array(499, *[0] * 499)):
        stream = Stream.keyed(b"one seed")
        permute_and_flip(scores, Fraction(1, 50), 499, stream)
        exponential_choice(scores, Fraction(1, 50), stream)
        after.append(stream.take(16))
    assert len(set(after)) == 1


def test_weights_are_equally_long_whatever_the_scores() -> None:
    """A longer integer takes longer: a favourite far ahead of all others would show."""
    for scores in (array(*[0] * 500), array(*range(500)), array(2**40, *[0] * 499)):
        behind = (scores.max() - scores).astype(np.uint64)
        for running in cumulative_weights(behind, Fraction(1, 50), 192):
            weights = np.diff(running, prepend=0)
            assert {int(weight).bit_length() for weight in weights} == {192 + 32 + 1}
