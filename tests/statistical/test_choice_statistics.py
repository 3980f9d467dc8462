"""Private choices have the probabilities of their mechanisms. False-alarm rate 1e-6 per test, by exact binomials."""

from fractions import Fraction
from itertools import pairwise, permutations

import numpy as np
import pytest

from crypto.randomness import Stream
from crypto.sampling.choice import bernoulli_exp, exponential_choice, one_of, permute_and_flip
from crypto.sampling.coins import Coins, exponential_digits
from tests.statistical.goodness import FALSE_ALARM, binomial_p_value
from tests.support.effort import mostly_exhaustive

CHOICES = 10_000
FLIPS = 200_000
SCORES = [[0, 0], [3, 1], [0, -1, -2], [7, 7, 2, 0], [0, 10, 20, 30], [5, 5, 5, 5, 4], [-9, -3, -8, -3, -4, -20]]
RATES = [Fraction(1, 30), Fraction(1, 4), Fraction(2)]
SETTINGS = [(scores, rate) for scores in SCORES for rate in RATES]
QUICK = range(0, len(SETTINGS), 2)  # every score and every rate


def permute_and_flip_law(scores: list[int], rate: Fraction) -> np.ndarray:
    """Term by term over all orders: the first candidate whose coin shows heads."""
    heads = np.exp(float(rate) * (np.array(scores) - max(scores)))
    law = np.zeros(len(scores))
    orders = list(permutations(range(len(scores))))
    for order in orders:
        reached = 1.0
        for candidate in order:
            law[candidate] += reached * heads[candidate] / len(orders)
            reached *= 1 - heads[candidate]
    return law


def exponential_law(scores: list[int], rate: Fraction) -> np.ndarray:
    weights = np.exp(float(rate) * (np.array(scores) - max(scores)))
    return weights / weights.sum()


def surprises(chosen: list[int], law: np.ndarray) -> list[int]:
    counts = np.bincount(chosen, minlength=law.size)
    return [
        candidate
        for candidate, (count, probability) in enumerate(zip(counts, law, strict=True))
        if binomial_p_value(int(count), len(chosen), min(probability, 1.0)) < FALSE_ALARM / law.size
    ]


@pytest.mark.parametrize(("scores", "rate"), mostly_exhaustive(SETTINGS, QUICK), ids=str)
def test_permute_and_flip_has_its_law(scores: list[int], rate: Fraction) -> None:
    stream, array = Stream.system(), np.array(scores)
    chosen = [permute_and_flip(array, rate, 31, stream) for _ in range(CHOICES)]
    assert surprises(chosen, permute_and_flip_law(scores, rate)) == []


@pytest.mark.parametrize(("scores", "rate"), mostly_exhaustive(SETTINGS, QUICK), ids=str)
def test_exponential_choice_has_its_law(scores: list[int], rate: Fraction) -> None:
    stream, array = Stream.system(), np.array(scores)
    chosen = [exponential_choice(array, rate, stream) for _ in range(CHOICES)]
    assert surprises(chosen, exponential_law(scores, rate)) == []


@pytest.mark.parametrize("weight_bits", mostly_exhaustive([1, 2, 4, 8], {3}))
def test_refined_exponential_choice_has_the_same_law(weight_bits: int) -> None:
    scores, rate, stream = [0, 1, 3, 300], Fraction(1, 100), Stream.system()
    chosen = [exponential_choice(np.array(scores), rate, stream, weight_bits=weight_bits) for _ in range(CHOICES)]
    assert surprises(chosen, exponential_law(scores, rate)) == []


def test_refined_permute_and_flip_has_the_same_law() -> None:
    scores, rate, stream = [0, 1, 3, 300], Fraction(1, 100), Stream.system()
    chosen = [permute_and_flip(np.array(scores), rate, 300, stream, word_bits=8) for _ in range(CHOICES)]
    assert surprises(chosen, permute_and_flip_law(scores, rate)) == []


def test_the_two_mechanisms_and_a_wrong_rate_are_told_apart() -> None:
    scores, rate, stream = [0, 0, 3, 3], Fraction(1, 3), Stream.system()
    flipped = [permute_and_flip(np.array(scores), rate, 3, stream) for _ in range(4 * CHOICES)]
    assert surprises(flipped, exponential_law(scores, rate))
    assert surprises(flipped, permute_and_flip_law(scores, rate * Fraction(5, 4)))


@pytest.mark.parametrize("word_bits", [8, 16, 32])
@pytest.mark.parametrize("unit", [Fraction(1, 100), Fraction(1, 3), Fraction(2)], ids=str)
def test_bernoulli_exp_has_its_probability(unit: Fraction, word_bits: int) -> None:
    multiples = np.repeat(np.arange(12), FLIPS // 12)
    accepted = bernoulli_exp(multiples, unit, 13, Stream.system(), word_bits=word_bits).reshape(12, -1)
    for multiple, row in enumerate(accepted):
        probability = min(float(np.exp(-float(unit) * multiple)), 1.0)
        assert binomial_p_value(int(row.sum()), row.size, probability) > FALSE_ALARM / 12


@pytest.mark.parametrize("word_bits", [8, 16, 32])
def test_coins_in_a_row_and_across_rows_are_independent(word_bits: int) -> None:
    xs = [Fraction(1, 2), Fraction(1), Fraction(3, 2)]
    coins = Coins([lambda bits, x=x: exponential_digits(x, bits) for x in xs], word_bits)
    heads = coins.flip(FLIPS, Stream.system())
    comparisons = [
        *(
            (upper & lower, float(np.exp(-float(a + b))))
            for (upper, a), (lower, b) in pairwise(zip(heads, xs, strict=True))
        ),
        *((row[::2] & row[1::2], float(np.exp(-2 * float(x)))) for row, x in zip(heads, xs, strict=True)),
    ]
    for both, probability in comparisons:
        assert binomial_p_value(int(both.sum()), both.size, probability) > FALSE_ALARM / len(comparisons)


def test_the_accepted_are_chosen_uniformly_in_spite_of_ties() -> None:
    stream, accepted = Stream.system(), np.array([True, False, True, True] * 10)
    chosen = [one_of(accepted, stream, ticket_bits=8) for _ in range(4 * CHOICES)]
    assert surprises(chosen, accepted / accepted.sum()) == []
