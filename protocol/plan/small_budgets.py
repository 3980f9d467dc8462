"""Small budgets for many columns: whether to ask how strongly columns depend before views count all pairs.

It does not know rows or plans. `protocol/stages/dependence.md` has the argument.

Views count every pair, and pay for it with more noise in single columns than columns that are counted alone would have.
If columns hardly depend on each other, that noise is all that views bring. No public number tells, so a plan may ask.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from statistics import fmean

from protocol.exact import allocate
from protocol.plan.typical_tables import noise_left, typical_size
from protocol.privacy.mechanisms import PrivacyDefinition
from protocol.tables.dependence import STRONG, sensitivity
from protocol.views.cover import Budgets, Cover, cover, single_views

_MOST = 30  # thousandths of the budget for the question
_CERTAIN = 2.5  # deviations of the answer's noise between a table without dependence and the bound
_GRID = 10**6  # of the bound
_LEAST = 1e-9  # variance, instead of 0 for budgets so large that no noise is drawn


@dataclass(frozen=True)
class Question:
    part: Fraction  # of the budget
    alone_below: Fraction  # mean distance of pairs from independence


def question(
    sizes: Sequence[int],
    rows: int,
    budget: Fraction,
    definition: PrivacyDefinition,
    shares_of_noise: float,
    budgets: Budgets,
) -> Question | None:
    """The cheapest question with a dependable answer; None where it would cost too much, or could change nothing."""
    covers = cover(sizes, "expected-error", budgets), single_views(sizes, budgets)
    with_views, alone = (
        _error_of_columns(one, rows, _variances(one, budget, definition, shares_of_noise)) for one in covers
    )
    # Columns alone leave out all dependence. As long as there is less of it than this, they have the smaller error.
    bound = Fraction(math.floor(max(0.0, with_views - alone) * _GRID), _GRID)
    for thousandths in range(1, _MOST + 1):
        part = Fraction(thousandths, 1000)
        rate = definition.rate_of_number(budget * part, sensitivity(sizes))
        if 0 < _CERTAIN * math.sqrt(definition.variance(rate) * shares_of_noise) <= bound * rows < STRONG * rows:
            return Question(part, bound)
    return None


def _variances(counted: Cover, budget: Fraction, definition: PrivacyDefinition, shares_of_noise: float) -> list[float]:
    """The variance of the noise in the count of one category, by column, over all views that hold the column."""
    precision = [0.0] * len(counted.domain_sizes)
    for view, cells, share in zip(counted.views, counted.view_cells, allocate(budget, counted.weights), strict=True):
        whole = max(definition.variance(definition.rate(share)) * shares_of_noise * cells, _LEAST)
        for variable in view:
            precision[variable] += counted.domain_sizes[variable] / whole
    return [1 / one for one in precision]


def _error_of_columns(counted: Cover, rows: int, variances: Sequence[float]) -> float:
    """The mean error of all pairs by noise in their two columns."""
    kinds = [(typical_size(size), variance) for size, variance in zip(counted.domain_sizes, variances, strict=True)]
    return fmean(_error_of_pair(one, other, rows) for one, other in combinations(kinds, 2))


def _error_of_pair(one: tuple[int, float], other: tuple[int, float], rows: int) -> float:
    (a, of_a), (b, of_b) = sorted((one, other))
    variance = of_a * (1 - 1 / a) / b**2 + of_b * (1 - 1 / b) / a**2
    return noise_left((a, b), round(math.sqrt(2 * variance / math.pi) / rows, 9))
