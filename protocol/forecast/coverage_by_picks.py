"""Coverage by private picks: the pairs that the model reproduces worst are counted.

It does not know which pairs will be picked: their strengths and sizes follow from the preference of private picks.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from protocol.forecast.coverage import (
    Counted,
    Evidence,
    kinds_of,
    left_out,
    likelihood_gain,
    preference_of,
    sizes_of,
    variances_alone,
)
from protocol.plan.plan import Plan
from protocol.plan.step import Step
from protocol.plan.terms import FRONTIER_DEGREE, Terms
from protocol.plan.typical_tables import STRENGTH, Shape, strength_of_picks
from protocol.stages.picked_tables import PASSES, coming_noise

_UNITS = 10**9  # to which a table's share of a budget is rounded


@dataclass(frozen=True)
class _Round:
    """Picks of all parties, one after the other, and the pass that counts the picked pairs."""

    picking: tuple[Step, ...]
    picks: tuple[int, ...]  # private picks, by party
    counting: Step
    options: int  # of one pick, approximately


def evidence_of_picks(terms: Terms) -> Evidence:
    """Return the evidence for the pairs that all rounds of picks are expected to count."""
    plan, sizes = terms.plan, sizes_of(terms)
    kinds = kinds_of(sizes)
    pairs, held, gained = sum(kinds.values()), 0.0, 0.0
    counted = {shape: Counted(0.0, 0.0) for shape in kinds}
    for one in _rounds(terms, pairs):
        preference = _mean_preference(plan, one)
        likely = _likely(terms, one, kinds, preference)
        number = min(_number(one, likely, pairs, preference), pairs - held)
        counted = _also(plan, counted, kinds, one.counting.budget, {k: number * share for k, share in likely.items()})
        held, gained = held + number, gained + number * strength_of_picks(preference)
    return Evidence(kinds, variances_alone(terms), counted, left_out(pairs, held, gained), plan.total_rows, True)


def _rounds(terms: Terms, pairs: int) -> Iterator[_Round]:
    """The picks of the tree, except for its very first variable, which is drawn at random; then the further pairs."""
    plan = terms.plan
    passes = [step for step in terms.steps if step.stage in PASSES]
    tree = tuple(step for step in terms.steps if step.stage == "initial")
    if tree and pairs:
        first = tree[0].parties[0]
        picks = tuple(count - (party == first) for party, count in enumerate(plan.picks))
        yield _Round(tree, picks, passes[0], max(1, terms.domain.count // 2))
    if plan.picks_in_turns:
        turns = [step for step in terms.steps if step.stage == "frontier"]
        yield from (_turn(terms, turn, counting, pairs) for turn, counting in zip(turns, passes[1:], strict=True))
        return
    further = [step for step in terms.steps if step.stage == "further"]
    for round_, counting in enumerate(passes[1:]):
        each = len(further) // plan.guided_rounds
        yield _Round(tuple(further[round_ * each : (round_ + 1) * each]), plan.further, counting, pairs)


def _turn(terms: Terms, turn: Step, counting: Step, pairs: int) -> _Round:
    """One party's picks among the pairs of the frontier."""
    (party,) = turn.parties
    picks = tuple(count if other == party else 0 for other, count in enumerate(terms.plan.further))
    return _Round((turn,), picks, counting, min(pairs, FRONTIER_DEGREE * terms.domain.count))


def _mean_preference(plan: Plan, one: _Round) -> float:
    """The mean preference over all picks of a round."""
    found = 0.0
    for step in one.picking:
        (party,) = step.parties
        if one.picks[party] and step.budget:
            epsilon = plan.definition.choice_epsilon(step.budget / one.picks[party], plan.choice)
            found += one.picks[party] * preference_of(plan, party, float(epsilon))
    return found / max(1, sum(one.picks))


def _likely(terms: Terms, one: _Round, kinds: Mapping[Shape, int], preference: float) -> dict[Shape, float]:
    """Relative likelihood of picks of each shape, strength aside: a pair's score subtracts the noise of its cells."""
    noise = coming_noise(terms, one.picking[0]) / terms.plan.total_rows
    bounded = min(preference, 1 / STRENGTH)  # beyond it the best pairs are certain to be picked, and strengths decide
    whole = sum(kinds.values())
    return {shape: many / whole * math.exp(-bounded * math.prod(shape) * noise / 2) for shape, many in kinds.items()}


def _number(one: _Round, likely: dict[Shape, float], pairs: int, preference: float) -> float:
    """The expected number of pairs picked: a pick may decline all pairs as not worth their noise.

    Afterwards `likely` adds up to 1.
    """
    whole = math.fsum(likely.values())
    weight = one.options * whole * likelihood_gain(preference)
    for shape in likely:
        likely[shape] = likely[shape] / whole if whole else 0.0
    return min(float(pairs), sum(one.picks) * weight / (1 + weight))


def _also(
    plan: Plan, counted: Mapping[Shape, Counted], kinds: Mapping[Shape, int], budget: Fraction, new: dict[Shape, float]
) -> dict[Shape, Counted]:
    """The coverage after a pass over the `new` numbers of pairs, which share its budget by the roots of their cells."""
    roots = math.fsum(number * math.sqrt(math.prod(shape)) for shape, number in new.items())
    found = {}
    for shape, former in counted.items():
        share = min(new[shape] / kinds[shape], 1 - former.share)
        if share <= 0:
            found[shape] = former
            continue
        part = Fraction(math.ceil(_UNITS * min(1.0, math.sqrt(math.prod(shape)) / roots)), _UNITS)
        variance = plan.noise_mode.retained_variance(plan.definition.rate(budget * part))
        together = former.share + share
        found[shape] = Counted(together, (former.variance * former.share + variance * share) / together)
    return found
