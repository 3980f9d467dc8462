"""Coverage by a network's families: each child is counted together with as many parents as fit.

It does not know the network itself. With method independent, each party has a network of its own.
"""

import math
from dataclasses import replace
from fractions import Fraction

from protocol.forecast.coverage import Counted, Evidence, kinds_of, left_out, preference_of, sizes_of
from protocol.network.limits import Limits
from protocol.plan.plan import Plan
from protocol.plan.terms import Terms
from protocol.plan.typical_tables import STRENGTH, strength_of_picks
from protocol.stages.definitions.privabn import noise_of_cell


def evidence_of_networks(terms: Terms) -> list[Evidence]:
    """Return the evidence for the run's network.

    With method `independent`, return one entry per group of parties with similar row counts.
    """
    plan = terms.plan
    if plan.method != "independent":
        return [_of_network(terms, _usual_limits(terms), plan.total_rows, _mean_preference(terms))]
    alike: dict[int, list[int]] = {}
    for party, member in enumerate(plan.members):
        alike.setdefault(round(2 * math.log2(member.rows)), []).append(party)
    weights = [member.rows / plan.total_rows for member in plan.members]
    tables = 1 / math.fsum(weight**2 for weight in weights)
    return [
        replace(
            _of_network(
                terms, terms.local_limits(group[0]), plan.members[group[0]].rows, _own_preference(plan, group[0])
            ),
            tables=tables,
            weight=math.fsum(weights[party] for party in group),
        )
        for group in alike.values()
    ]


def _usual_limits(terms: Terms) -> Limits:
    """The limits of the network's families; where families grow, they end when noise outweighs a parent's strength."""
    if terms.plan.method == "jtree":
        return Limits(terms.cluster_cells[-1], terms.plan.degree)
    noise = noise_of_cell(terms)
    if terms.plan.method != "privabn" or not noise:
        return terms.limits
    cells = max(1, int(2 * STRENGTH / noise))
    degree = max(0, cells.bit_length() - 2) if terms.domain.is_binary else None
    return Limits(_smaller(terms.limits.cells, cells), _smaller(terms.limits.degree, degree))


def _smaller(one: int | None, other: int | None) -> int | None:
    return min((limit for limit in (one, other) if limit is not None), default=None)


def _of_network(terms: Terms, limits: Limits, rows: int, preference: float) -> Evidence:
    plan, sizes = terms.plan, sizes_of(terms)
    kinds, parents = kinds_of(sizes), _parents(sizes, limits) if _has_structure(plan) else dict.fromkeys(sizes, 0.0)
    largest = max(limits.cells or 2 ** (1 + (limits.degree or 0)), max(sizes))
    fitting = {shape: many for shape, many in kinds.items() if math.prod(shape) <= largest}
    held = min(math.fsum(parents[size] for size in sizes), sum(fitting.values()))
    variance = _noise(plan, plan.split[-1] / _families(terms, limits))
    scale = math.fsum(math.log(size) for size in sizes) / len(sizes)
    cells = {size: size * math.exp(parents[size] * scale) for size in sizes}
    usual = math.fsum(cells[size] for size in sizes) / len(sizes)
    share = held / sum(fitting.values()) if held else 0.0
    return Evidence(
        kinds,
        {size: variance * cells[size] / size for size in sizes},
        {shape: Counted(share, variance * max(1.0, usual / math.prod(shape))) for shape in fitting},
        left_out(sum(kinds.values()), held, held * strength_of_picks(preference)),
        rows,
        False,
    )


def _has_structure(plan: Plan) -> bool:
    return any(plan.split[:-1])


def _parents(sizes: list[int], limits: Limits) -> dict[int, float]:
    """The number of parents of a child, by its size: as many as fit, but not more than are placed before the child."""
    placed, scale = (len(sizes) - 1) / 2, math.fsum(math.log(size) for size in sizes) / len(sizes)
    found = {}
    for size in set(sizes):
        fitting = placed if limits.cells is None else max(0.0, math.log(max(1, limits.cells) / size)) / (scale or 1)
        found[size] = min(placed, fitting, placed if limits.degree is None else limits.degree)
    return found


def _families(terms: Terms, limits: Limits) -> int:
    """The number of families that are not part of others; in a network of bits the first families nest."""
    return max(1, terms.domain.count - (limits.degree or 0 if terms.domain.is_binary else 0))


def _noise(plan: Plan, budget: Fraction) -> float:
    """The variance of the noise in a cell of a family's table."""
    if plan.method == "independent":
        return plan.definition.variance(plan.definition.rate(plan.alone(budget)))
    return plan.noise_mode.retained_variance(plan.definition.rate(plan.in_sums(budget)))


def _mean_preference(terms: Terms) -> float:
    """The mean preference over all parties.

    DP-CCBN compares noisy tables and prefers no pair for its strength: the noisiest tables seem the strongest.
    """
    plan = terms.plan
    if plan.method == "jtree":
        return math.inf
    if not plan.placing_budget:
        return 0.0
    placing = {party: plan.placing_budget / picks for party, picks in enumerate(plan.picks) if picks}
    return math.fsum(_preference_at(plan, party, budget) for party, budget in placing.items()) / len(placing)


def _own_preference(plan: Plan, party: int) -> float:
    """The preference of a party that models its rows alone, and places every variable but the first privately."""
    return _preference_at(plan, party, plan.split[0] / max(1, sum(plan.picks) - 1))


def _preference_at(plan: Plan, party: int, budget: Fraction) -> float:
    return preference_of(plan, party, float(plan.definition.choice_epsilon(plan.alone(budget), plan.choice)))
