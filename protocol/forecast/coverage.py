"""Forecast of which pairs of attributes a plan's tables will count, with how much noise, and which they leave out.

It does not know how noise distorts a table (`protocol.plan.typical_tables`). It does not predict the network
itself, only how many pairs the network will hold.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

from protocol.picks.scores import SCORES
from protocol.plan.plan import Plan
from protocol.plan.terms import Terms
from protocol.plan.typical_tables import STRENGTH, Shape, strength_of_picks, strength_of_strongest, typical_size
from protocol.stages.registry import blank_columns

# By one changed row, per unit of strength. Score M, which looks away from levels, sees about 0.6 of a dependence.
_ROWS_MOVED = {"M": 1.6} | {name: score.moved_rows for name, score in SCORES.items()}
_LARGEST_GAIN = 10  # upper limit on how much more likely strong pairs are picked; there are only so many of them


@dataclass(frozen=True)
class Counted:
    share: float  # of the pairs of a shape
    variance: float  # of the noise in a cell of such a pair


@dataclass(frozen=True)
class Evidence:
    kinds: Mapping[Shape, int]  # number of pairs of attributes, by shape
    single: Mapping[int, float]  # variance of the noise in the count of one category, by its attribute's size
    pairs: Mapping[Shape, Counted]
    strength: float  # mean distance from independence of the pairs that are left out
    rows: int  # that a table counts
    is_fitted: bool  # by a model of all tables, which assumes no more dependence than the tables support
    tables: float = 1.0  # number of independent tables whose mean is published (method independent)
    weight: float = 1.0  # of this evidence in that mean

    @property
    def all_pairs(self) -> int:
        return sum(self.kinds.values())


def sizes_of(terms: Terms) -> list[int]:
    return [typical_size(size) for size in terms.domain.sizes[: terms.domain.count]]


def variances_alone(terms: Terms) -> dict[int, float]:
    """The mean variance of columns that are counted alone, by their typical size; empty if no pass counts them so."""
    found: dict[int, list[float]] = {}
    for size, table in zip(sizes_of(terms), blank_columns(terms), strict=False):
        found.setdefault(size, []).append(table.variance)
    return {size: fmean(variances) for size, variances in found.items()}


def kinds_of(sizes: Sequence[int]) -> dict[Shape, int]:
    many = sorted(Counter(sizes).items())
    found = {(a, b): n * m for (a, n), (b, m) in combinations(many, 2)}
    return found | {(a, a): math.comb(n, 2) for a, n in many if n > 1}


def preference_of(plan: Plan, party: int, epsilon: float) -> float:
    """The exponent by which a party's private pick favours a pair, per unit of strength."""
    return epsilon * plan.members[party].rows / (2 * _ROWS_MOVED[plan.score])


def likelihood_gain(preference: float) -> float:
    """The mean factor by which strength raises the likelihood of a pick, over pairs of all strengths."""
    return min(float(_LARGEST_GAIN), strength_of_picks(preference) / STRENGTH)


def left_out(pairs: int, held: float, gained: float) -> float:
    """The mean strength of the pairs that are left out, if the `held` pairs have the strength `gained` in total."""
    if held >= pairs:
        return 0.0
    best = held * strength_of_strongest(held / pairs) if held else 0.0
    return max(0.0, pairs * STRENGTH - min(gained, best)) / (pairs - held)
