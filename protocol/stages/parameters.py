"""Phase 4: one pass over the tables from which the synthetic rows are drawn.

It does not know how they are drawn (`protocol.run.synthesis`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from protocol.messages.tasks import Reply
from protocol.model.run_model import network_of
from protocol.network.frontier import search_frontier
from protocol.network.network import Family, counted_families
from protocol.plan.step import StageName, Step
from protocol.plan.terms import Terms
from protocol.secure_sum.sums import CuratorSums
from protocol.stages import picked_tables
from protocol.stages.dependence import counts_alone
from protocol.stages.knowledge import Knowledge, counted_domain
from protocol.stages.picked_tables import unmeasured
from protocol.stages.stage import Size
from protocol.stages.sum_pass import SumPass
from protocol.tables.domain import Variables


class Parameters(SumPass):
    name: StageName = "parameters"
    label = "Parameters"

    def weights(self, terms: Terms, cells: Sequence[int]) -> Sequence[int]:
        return picked_tables.weights(terms, cells)

    def narrowest_rate(self, terms: Terms, step: Step) -> Fraction | None:
        return picked_tables.narrowest_rate(terms, step)

    def size(self, terms: Terms, step: Step) -> Size:
        most = picked_tables.most_tables(terms, step)
        return Size(most, most * terms.limits.largest_family(terms.domain))

    def enter(self, terms: Terms, known: Knowledge) -> Knowledge:
        if _chooses_openly(terms) and not counts_alone(terms, known):
            # All pairs have been released already, so the network costs nothing.
            network = search_frontier(known.network, known.information, terms.limits, terms.domain)
            return replace(known, families=network.families)
        # DP-CCBN without a budget for structure: variables without a family get one without parents.
        placed = {family.child for family in known.families}
        alone = tuple(Family(v) for v in range(terms.domain.count) if v not in placed)
        return replace(known, families=known.families + alone)

    def tables(self, terms: Terms, step: Step, known: Knowledge) -> tuple[Variables, ...]:
        if terms.plan.picks_pairs:
            return unmeasured(terms, step, known)
        return tuple(counted_families(known.network, terms.domain, terms.plan.family_tables))

    def conclude(
        self, terms: Terms, step: Step, known: Knowledge, replies: Mapping[int, Reply], sums: CuratorSums
    ) -> Knowledge:
        plan = terms.plan
        known = known.with_released(step, self.opened(terms, step, known, replies, sums), plan.total_rows)
        if plan.estimate != "graphical-model":
            return known
        tables = known.heard(plan.total_rows)
        network = network_of(tables, counted_domain(terms, known), plan.total_rows, plan.definition, terms.model_room)
        return replace(known, families=network.families)


def _chooses_openly(terms: Terms) -> bool:
    plan = terms.plan
    has_model = plan.method in ("dp-subn", "guided")
    return has_model and plan.views == "pairs" and bool(plan.split[0]) and not any(plan.split[1:3])
