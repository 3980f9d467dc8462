"""What a network's families will say about pairs of attributes: each child is counted beside as many parents as fit.

It does not know which network it will be; method independent's parties each have their own.
"""

import math
from fractions import Fraction

from protocol.evidence import Counted, Evidence, kinds_of, lean_of, left_out, sizes_of
from protocol.limits import Limits
from protocol.plan import Plan
from protocol.secure_sum import retained_variance
from protocol.terms import Terms
from protocol.typical import strength_of_picks


def evidence_of_networks(terms: Terms) -> Evidence:
    plan, sizes = terms.plan, sizes_of(terms)
    is_alone = plan.method == "independent"
    limits = terms.local_limits(0) if is_alone else terms.limits
    kinds, parents = kinds_of(sizes), _parents(sizes, limits) if _has_structure(plan) else dict.fromkeys(sizes, 0.0)
    largest = max(limits.cells or 2 ** (1 + (limits.degree or 0)), max(sizes))
    fitting = {shape: many for shape, many in kinds.items() if math.prod(shape) <= largest}
    held = min(math.fsum(parents[size] for size in sizes), sum(fitting.values()))
    variance = _variance(plan, plan.split[-1] / _families(terms, limits))
    scale = math.fsum(math.log(size) for size in sizes) / len(sizes)
    cells = {size: size * math.exp(parents[size] * scale) for size in sizes}
    usual = math.fsum(cells[size] for size in sizes) / len(sizes)
    share = held / sum(fitting.values()) if held else 0.0
    return Evidence(
        kinds,
        {size: variance * cells[size] / size for size in sizes},
        {shape: Counted(share, variance * max(1.0, usual / math.prod(shape))) for shape in fitting},
        left_out(sum(kinds.values()), held, held * strength_of_picks(_lean(terms))),
        plan.members[0].rows if is_alone else plan.total_rows,
        plan.parties if is_alone else 1,
    )


def _has_structure(plan: Plan) -> bool:
    return any(plan.split[:-1])


def _parents(sizes: list[int], limits: Limits) -> dict[int, float]:
    """How many parents a child of each size has: as many as fit beside it, but not more than are placed before it."""
    placed, scale = (len(sizes) - 1) / 2, math.fsum(math.log(size) for size in sizes) / len(sizes)
    found = {}
    for size in set(sizes):
        fitting = placed if limits.cells is None else max(0.0, math.log(max(1, limits.cells) / size)) / (scale or 1)
        found[size] = min(placed, fitting, placed if limits.degree is None else limits.degree)
    return found


def _families(terms: Terms, limits: Limits) -> int:
    """That are not part of others: in a network of bits the first ones nest."""
    return max(1, terms.domain.count - (limits.degree or 0 if terms.domain.is_binary else 0))


def _variance(plan: Plan, budget: Fraction) -> float:
    rate = plan.law.rate(budget)
    return plan.law.variance(rate) if plan.method == "independent" else retained_variance(plan, rate)


def _lean(terms: Terms) -> float:
    """DP-CCBN compares noisy tables instead of picking privately: it leans nowhere, as the noisiest seem strongest."""
    plan, count = terms.plan, terms.domain.count
    if plan.method == "independent":
        budgets = dict.fromkeys(range(plan.parties), (plan.split[0], count - 1))
    elif plan.method == "dp-subn":
        budgets = {party: (plan.split[1], picks) for party, picks in enumerate(plan.picks) if picks}
    else:
        return 0.0
    found = [
        lean_of(plan, party, float(plan.law.choice_epsilon(budget / picks, plan.choice)))
        for party, (budget, picks) in budgets.items()
        if budget and picks
    ]
    return math.fsum(found) / len(found) if found else 0.0
