"""What the tables of a plan will say about pairs of attributes: how noisily they count one, or that they leave it out.

It does not know what noise does to a table (`protocol.forecast.typical_tables`), and it foresees no network: only how
many pairs one will hold.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from protocol.forecast.typical_tables import STRENGTH, Shape, strength_of_picks, strength_of_strongest, typical_size
from protocol.plan.plan import Plan
from protocol.plan.terms import Terms

_SENSITIVITY = {"R": 3, "F": 1, "M": 1}  # of a score, in rows; score I below epsilon 1 chooses nearly at random
_SURE = 10  # how many times as likely a strong pair is picked at most: the strongest come to an end


@dataclass(frozen=True)
class Counted:
    share: float  # of the pairs of a shape
    variance: float  # of the noise in a cell of such a pair


@dataclass(frozen=True)
class Evidence:
    kinds: Mapping[Shape, int]  # how many pairs of attributes have this shape
    single: Mapping[int, float]  # variance of the noise in the count of one category, by its attribute's size
    pairs: Mapping[Shape, Counted]
    strength: float  # mean distance from independence of the pairs that are left out
    rows: int  # that a table counts
    is_fitted: bool  # together, by a model that believes no more dependence than the tables bear out
    tables: float = 1.0  # as many independent tables like it the published one is the mean of
    weight: float = 1.0  # of it in that mean

    @property
    def all_pairs(self) -> int:
        return sum(self.kinds.values())


def sizes_of(terms: Terms) -> list[int]:
    return [typical_size(size) for size in terms.domain.sizes[: terms.domain.count]]


def kinds_of(sizes: Sequence[int]) -> dict[Shape, int]:
    many = sorted(Counter(sizes).items())
    found = {(a, b): n * m for (a, n), (b, m) in combinations(many, 2)}
    return found | {(a, a): math.comb(n, 2) for a, n in many if n > 1}


def lean_of(plan: Plan, party: int, epsilon: float) -> float:
    """How a private pick of a party prefers a pair one row stronger for each of its rows: in the exponent."""
    return epsilon * plan.members[party].rows / (2 * _SENSITIVITY.get(plan.score, math.inf))


def eagerness(lean: float) -> float:
    """How many times as likely a pair is picked for its strength, over all strengths."""
    return min(float(_SURE), strength_of_picks(lean) / STRENGTH)


def left_out(pairs: int, held: float, gained: float) -> float:
    """The mean strength of the other pairs, if those that are held have this strength together."""
    if held >= pairs:
        return 0.0
    best = held * strength_of_strongest(held / pairs) if held else 0.0
    return max(0.0, pairs * STRENGTH - min(gained, best)) / (pairs - held)
