"""What a plan's picks will say about pairs of attributes: those that the model answers worst are counted.

It does not know which pairs they will be: how strong they are, and how large, follows from how private picks lean.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from protocol.forecast.coverage import Counted, Evidence, eagerness, kinds_of, lean_of, left_out, sizes_of
from protocol.forecast.typical_tables import STRENGTH, Shape, strength_of_picks
from protocol.plan.plan import Plan
from protocol.plan.step import Step
from protocol.plan.terms import Terms
from protocol.stages.picked_tables import coming_noise
from protocol.stages.registry import stage_of

_UNITS = 10**9  # to which a table's share of a budget is rounded


@dataclass(frozen=True)
class _Round:
    """Picks of all parties, one after the other, and the pass that counts what they picked."""

    picking: tuple[Step, ...]
    picks: tuple[int, ...]  # private ones, by party
    counting: Step
    options: int  # of one pick, about


def evidence_of_picks(terms: Terms) -> Evidence:
    plan, sizes = terms.plan, sizes_of(terms)
    kinds = kinds_of(sizes)
    pairs, held, gained = sum(kinds.values()), 0.0, 0.0
    counted = {shape: Counted(0.0, 0.0) for shape in kinds}
    for one in _rounds(terms, pairs):
        lean = _lean(plan, one)
        likely = _likely(terms, one, kinds, lean)
        number = min(_number(one, likely, pairs, lean), pairs - held)
        counted = _also(plan, counted, kinds, one.counting.budget, {k: number * share for k, share in likely.items()})
        held, gained = held + number, gained + number * strength_of_picks(lean)
    return Evidence(kinds, _single(terms, sizes), counted, left_out(pairs, held, gained), plan.total_rows, True)


def _single(terms: Terms, sizes: list[int]) -> dict[int, float]:
    step = next(step for step in terms.steps if step.stage == "correlations")
    rates = stage_of(terms, step).noise_rates(terms, step, terms.cover.view_cells)
    return {
        sizes[view[0]]: terms.plan.noise_mode.retained_variance(rate)
        for view, rate in zip(terms.cover.views, rates, strict=True)
    }


def _rounds(terms: Terms, pairs: int) -> Iterator[_Round]:
    """The tree first, whose very first variable is drawn blindly, then the rounds of further pairs."""
    plan = terms.plan
    passes = [step for step in terms.steps if step.stage in ("tables", "parameters")]
    tree = tuple(step for step in terms.steps if step.stage == "initial")
    if tree and pairs:
        first = tree[0].parties[0]
        picks = tuple(count - (party == first) for party, count in enumerate(plan.picks))
        yield _Round(tree, picks, passes[0], max(1, terms.domain.count // 2))
    further = [step for step in terms.steps if step.stage == "further"]
    for round_, counting in enumerate(passes[1:]):
        each = len(further) // plan.guided_rounds
        yield _Round(tuple(further[round_ * each : (round_ + 1) * each]), plan.further, counting, pairs)


def _lean(plan: Plan, one: _Round) -> float:
    """The mean over all picks."""
    found = 0.0
    for step in one.picking:
        (party,) = step.parties
        if one.picks[party] and step.budget:
            epsilon = plan.definition.choice_epsilon(step.budget / one.picks[party], plan.choice)
            found += one.picks[party] * lean_of(plan, party, float(epsilon))
    return found / max(1, sum(one.picks))


def _likely(terms: Terms, one: _Round, kinds: Mapping[Shape, int], lean: float) -> dict[Shape, float]:
    """How likely a pick is of each shape before it is weighed for strength: its score takes its cells' noise off."""
    noise = coming_noise(terms, one.picking[0]) / terms.plan.total_rows
    bounded = min(lean, 1 / STRENGTH)  # beyond it the best are taken for certain, and strengths decide
    whole = sum(kinds.values())
    return {shape: many / whole * math.exp(-bounded * math.prod(shape) * noise / 2) for shape, many in kinds.items()}


def _number(one: _Round, likely: dict[Shape, float], pairs: int, lean: float) -> float:
    """How many pairs are picked: a pick may say that none is worth its noise. `likely` adds up to 1 afterwards."""
    whole = math.fsum(likely.values())
    weight = one.options * whole * eagerness(lean)
    for shape in likely:
        likely[shape] = likely[shape] / whole if whole else 0.0
    return min(float(pairs), sum(one.picks) * weight / (1 + weight))


def _also(
    plan: Plan, counted: Mapping[Shape, Counted], kinds: Mapping[Shape, int], budget: Fraction, new: dict[Shape, float]
) -> dict[Shape, Counted]:
    """What is counted after a pass over so many new pairs, which share its budget as the roots of their cells."""
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
