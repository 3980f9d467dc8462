"""What holds for every list of scores and every rate."""

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto.randomness import Stream
from crypto.sampling.choice import bernoulli_exp, cumulative_weights, exponential_choice, permute_and_flip
from tests.support.effort import examples

SCORES = st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=12).map(lambda found: np.array(found))
RATES = st.builds(Fraction, st.integers(1, 1000), st.integers(1, 10**6))
SEEDS = st.binary(min_size=1, max_size=8)


@settings(deadline=None, max_examples=examples(60))
@given(SCORES, RATES, SEEDS, st.integers(-(10**6), 10**6))
def test_only_differences_of_scores_matter(scores: np.ndarray, rate: Fraction, seed: bytes, shift: int) -> None:
    def both(moved: np.ndarray) -> tuple[int, int]:
        stream = Stream.keyed(seed)
        return permute_and_flip(moved, rate, 2**22, stream), exponential_choice(moved, rate, stream)

    assert both(scores) == both(scores + shift)
    assert max(both(scores)) < scores.size


@settings(deadline=None, max_examples=examples(60))
@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=8), RATES, st.sampled_from([1, 3, 8, 24]))
def test_weights_are_enclosed_by_their_bounds(behind: list[int], rate: Fraction, bits: int) -> None:
    """Bounds with few digits contain bounds with 64 more, which are 2**64 times tighter."""
    distances, places = np.array(behind, dtype=np.uint64), np.arange(1, len(behind) + 1).astype(object)
    low, high = (bound - (places << (bits + 32)) for bound in cumulative_weights(distances, rate, bits))
    finer_low, finer_high = (
        bound - (places << (bits + 96)) for bound in cumulative_weights(distances, rate, bits + 64)
    )
    assert all(low * 2**64 <= finer_high)
    assert all(finer_low <= high * 2**64)
    reference = np.cumsum(np.exp(-float(rate) * np.array(behind, dtype=float)))
    slack = 1e-6 * len(behind)
    assert all(finer_low / 2 ** (bits + 64) <= reference + slack)
    assert all(finer_high / 2 ** (bits + 64) >= reference - slack)


@settings(deadline=None, max_examples=examples(60))
@given(st.lists(st.integers(0, 2**20), max_size=50), RATES, SEEDS)
def test_coins_of_more_bits_than_needed_change_nothing_for_zero(
    multiples: list[int], rate: Fraction, seed: bytes
) -> None:
    array = np.array(multiples, dtype=np.int64)
    accepted = bernoulli_exp(array, rate, 2**40, Stream.keyed(seed))
    assert accepted.shape == array.shape
    assert accepted[array == 0].all()
