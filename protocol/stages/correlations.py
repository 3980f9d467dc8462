"""Phase 1: one pass over all views, from which the mutual information of every pair follows.

It does not know how views are constructed (`protocol.views.cover`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from protocol.errors import CURATOR, FailedCheck
from protocol.messages.tasks import Count, Reply, Task
from protocol.model.rare_categories import merged_by
from protocol.network.mutual_information import mutual_information_matrix, pair_tables
from protocol.plan.step import Step
from protocol.plan.terms import Terms
from protocol.secure_sum.sums import CuratorSums
from protocol.stages.knowledge import Knowledge
from protocol.stages.party_state import PartyState
from protocol.stages.picked_tables import coming_noise
from protocol.stages.stage import Size
from protocol.stages.sum_pass import SumPass
from protocol.stages.task_checks import refuse_masked, refuse_merged
from protocol.tables.domain import Variables


class Correlations(SumPass):
    name = "correlations"
    label = "Correlations"

    def weights(self, terms: Terms, _cells: Sequence[int]) -> Sequence[int]:
        return terms.cover.weights

    def narrowest_rate(self, terms: Terms, step: Step) -> Fraction | None:
        return min(self.noise_rates(terms, step, terms.cover.view_cells))

    def size(self, terms: Terms, _step: Step) -> Size:
        return Size(len(terms.cover.views), terms.cover.cells)

    def cells_by_rate(self, terms: Terms, step: Step) -> dict[Fraction, int]:
        found: dict[Fraction, int] = {}
        sizes = terms.cover.view_cells
        for rate, cells in zip(self.noise_rates(terms, step, sizes), sizes, strict=True):
            found[rate] = found.get(rate, 0) + cells
        return found

    def tables(self, terms: Terms, _known: Knowledge) -> tuple[Variables, ...]:
        return terms.cover.views

    def conclude(
        self, terms: Terms, step: Step, known: Knowledge, replies: Mapping[int, Reply], sums: CuratorSums
    ) -> Knowledge:
        views, rows = self.opened(terms, step, known, replies, sums), terms.plan.total_rows
        known = known.with_released(step, views, rows)
        if terms.plan.views == "single":
            merged = merged_by(views, coming_noise(terms, step)) if terms.plan.merging else ()
            return replace(known, merged=merged)
        pairs = pair_tables(terms.cover, views, terms.domain)
        return replace(known, information=mutual_information_matrix(pairs, terms.domain, rows))

    def check(self, state: PartyState, step: Step, task: Task) -> None:
        assert isinstance(task, Count)
        refuse_merged(step, task.merged)
        if task.tables != state.terms.cover.views:
            raise FailedCheck(CURATOR, "asks for other views than the plan's in 'correlations'")
        refuse_masked(step, task)
