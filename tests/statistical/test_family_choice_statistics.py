"""The chance of every family is the mechanism's, at the epsilon asked for. False-alarm rate 1e-6 per test."""

from fractions import Fraction
from itertools import permutations
from math import exp

import numpy as np
import pytest
from scipy.stats import chisquare

from crypto.randomness import Stream
from protocol.picks.by_score import choose, family_scores
from protocol.picks.scores import scoring
from protocol.tables.counting import Rows
from protocol.tables.domain import Domain

FALSE_ALARM = 1e-6
DRAWS = 4000
FAMILIES = [(2, (0,)), (2, (1,)), (3, (0,))]
EPSILON = Fraction(3, 2)


def exponential_law(weights):
    return [weight / sum(weights) for weight in weights]


def permute_and_flip_law(weights):
    """By order: the first whose coin shows heads, where the best one's always does."""
    best = max(weights)
    chances = [0.0] * len(weights)
    orders = list(permutations(range(len(weights))))
    for order in orders:
        reached = 1.0 / len(orders)
        for place in order:
            # A coin has the chance exp(rate (score - best)), the ratio of two weights.
            chances[place] += reached * weights[place] / best
            reached *= 1 - weights[place] / best
    return chances


@pytest.mark.parametrize("score", ["R", "I"])
@pytest.mark.parametrize(
    ("mechanism", "law"), [("exponential", exponential_law), ("permute-and-flip", permute_and_flip_law)]
)
def test_families_are_chosen_with_the_chances_of_the_mechanism(mechanism, law, score):
    codes = np.random.default_rng(5).integers(0, 3, (4, 12)).astype(np.uint8)
    codes[2] = codes[0]
    rows = Rows(Domain.of_sizes([3] * 4), list(codes))
    rule = scoring(score, rows.count, rows.domain)
    scores = family_scores(rows, FAMILIES, rule)
    weights = [exp(float(EPSILON) * (s - int(scores.max())) / (2 * float(rule.sensitivity))) for s in scores.tolist()]
    stream = Stream.system()
    drawn = [choose(rows, FAMILIES, score, EPSILON, mechanism, stream) for _ in range(DRAWS)]
    observed = [drawn.count(family) for family in FAMILIES]
    assert chisquare(observed, [DRAWS * chance for chance in law(weights)]).pvalue > FALSE_ALARM
