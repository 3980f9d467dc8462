"""Tables of the pairs that parties picked by the model: which are counted when, and with how much noise.

It does not know how pairs are picked, or by which party.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import isqrt, prod

from protocol.errors import CURATOR, FailedCheck
from protocol.messages.tasks import Count, Reply, Task
from protocol.network.network import Family
from protocol.plan.plan import Plan
from protocol.plan.step import Step
from protocol.plan.terms import Terms
from protocol.secure_sum.sums import CuratorSums
from protocol.stages.knowledge import Knowledge, counted_domain
from protocol.stages.party_state import PartyState
from protocol.stages.stage import Size
from protocol.stages.sum_pass import SumPass
from protocol.tables.domain import Variables
from protocol.views.cover import SMALLEST_SHARE, table_weights

PASSES = ("tables", "update", "parameters")


def picked_pairs(families: Sequence[Family], further: Sequence[Variables]) -> list[Variables]:
    """The pairs that score M has picked so far: those of the network (one parent at most) and the further pairs."""
    return [*(tuple(sorted(family.variables)) for family in families if family.parents), *further]


def unmeasured(terms: Terms, step: Step, known: Knowledge) -> tuple[Variables, ...]:
    """The picked pairs that no pass has counted yet; if there are none, variables alone once more."""
    domain, counted = counted_domain(terms, known), {released.table.variables for released in known.released}
    picked = map(domain.coarsest, picked_pairs(known.families if counts_network(terms.plan) else (), known.further))
    new = tuple(pair for pair in picked if pair not in counted)
    return new or tuple((variable,) for variable in range(most_tables(terms, step)))


def counts_network(plan: Plan) -> bool:
    """Whether the first network's pairs are counted: not where every pair was counted in a view."""
    return plan.views != "pairs"


def most_tables(terms: Terms, step: Step) -> int:
    return min(step.tables or terms.domain.count, terms.domain.count)


def coming_noise(terms: Terms, step: Step) -> float:
    """Mean size of the noise in a cell of the next pass, if that pass counts as many tables as it may."""
    plan = terms.plan
    coming = next(s for s in terms.steps[terms.steps.index(step) + 1 :] if s.stage in PASSES)
    count = coming.tables or max(1, sum(plan.further) if step.stage == "further" else terms.domain.count - 1)
    rate = plan.definition.rate(coming.budget / count)
    return plan.definition.mean_size(plan.noise_mode.retained_variance(rate))


def weights(terms: Terms, cells: Sequence[int]) -> Sequence[int]:
    """Weights by which the tables of a pass over picked pairs share its budget."""
    return table_weights(cells) if terms.plan.table_budgets == "square-root" else (1,) * len(cells)


def narrowest_rate(terms: Terms, step: Step) -> Fraction:
    return terms.plan.definition.rate(step.budget / (_smallest_share(terms) * most_tables(terms, step)))


def _smallest_share(terms: Terms) -> int:
    """Upper bound on how many times smaller than an equal share the share of a table can be.

    Without picks every table counts a single variable.
    """
    plan, sizes = terms.plan, sorted((1, *terms.domain.sizes))
    if plan.table_budgets == "equal":
        return 1
    largest = prod(sizes[-plan.ways :]) if plan.split[1] else sizes[-1]
    smallest = min(2, sizes[1]) if plan.merging else sizes[1]
    return min(SMALLEST_SHARE, isqrt(-(-largest // smallest) - 1) + 1)


class CountPicked(SumPass):
    def weights(self, terms: Terms, cells: Sequence[int]) -> Sequence[int]:
        return weights(terms, cells)

    def narrowest_rate(self, terms: Terms, step: Step) -> Fraction | None:
        return narrowest_rate(terms, step)

    def size(self, terms: Terms, step: Step) -> Size:
        most = most_tables(terms, step)
        return Size(most, most * terms.limits.largest_family(terms.domain))

    def tables(self, terms: Terms, step: Step, known: Knowledge) -> tuple[Variables, ...]:
        return unmeasured(terms, step, known)

    def conclude(
        self, terms: Terms, step: Step, known: Knowledge, replies: Mapping[int, Reply], sums: CuratorSums
    ) -> Knowledge:
        return known.with_released(step, self.opened(terms, step, known, replies, sums), terms.plan.total_rows)

    def check(self, state: PartyState, step: Step, task: Task) -> None:
        assert isinstance(task, Count)
        most = most_tables(state.terms, step)
        if len(task.tables) > most:
            raise FailedCheck(CURATOR, f"asks for {len(task.tables)} tables in {step.name!r}, expected at most {most}")
        super().check(state, step, task)
