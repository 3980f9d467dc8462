"""Phase 1: one pass over all views, from which the mutual information of every pair follows.

It does not know how views are constructed (`protocol.views.cover`).

Where views of whole variables would drown in noise, every variable is counted alone first (`protocol.stages.levels`),
and the views are over halves: each variable's categories in two groups of about as many rows. Where columns turned out
to depend too little on each other (`protocol.stages.dependence`), every variable is counted alone instead of views.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from protocol.errors import CURATOR, FailedCheck
from protocol.messages.tasks import Count, Reply, Task
from protocol.network.mutual_information import mutual_information_matrix, pair_tables
from protocol.plan.step import Step
from protocol.plan.terms import Terms
from protocol.privacy.layout import Layout
from protocol.secure_sum.sums import CuratorSums
from protocol.stages.dependence import counts_alone
from protocol.stages.knowledge import Knowledge
from protocol.stages.party_state import PartyState
from protocol.stages.planned_pass import PlannedPass
from protocol.stages.stage import Size
from protocol.stages.task_checks import check_groups, refuse_masked, refuse_merged
from protocol.tables.domain import Domain, Merged, Variables
from protocol.tables.marginal import Table
from protocol.views.cover import Cover


class Correlations(PlannedPass):
    name = "correlations"
    label = "Correlations"

    def cover(self, terms: Terms) -> Cover:
        return terms.cover

    def merged(self, known: Knowledge) -> tuple[Merged, ...]:
        return known.halves

    def tables(self, terms: Terms, _step: Step, known: Knowledge) -> tuple[Variables, ...]:
        return terms.single_cover.views if counts_alone(terms, known) else _views(terms, known.halves)

    def layout(
        self, terms: Terms, step: Step, tables: Sequence[Variables], rows: int, merged: Sequence[Merged] = ()
    ) -> Layout:
        if not terms.plan.dependence or tables != terms.single_cover.views:
            return super().layout(terms, step, tables, rows, merged)
        cells = terms.single_cover.view_cells
        return Layout(cells, _rates_alone(terms, step), rows)

    def narrowest_rate(self, terms: Terms, step: Step) -> Fraction | None:
        alone = _rates_alone(terms, step) if terms.plan.dependence else ()
        return min((*(rate for _, rate in self.parts(terms, step)), *alone))

    def size(self, terms: Terms, step: Step) -> Size:
        found = super().size(terms, step)
        return replace(found, tables=max(found.tables, terms.domain.count)) if terms.plan.dependence else found

    def conclude(
        self, terms: Terms, step: Step, known: Knowledge, replies: Mapping[int, Reply], sums: CuratorSums
    ) -> Knowledge:
        views, rows = self.opened(terms, step, known, replies, sums), terms.plan.total_rows
        is_halved = terms.plan.views == "halves"
        known = known.with_released(step, views, rows, is_halved)
        if counts_alone(terms, known):
            return known
        domain = Domain.of_sizes(terms.cover.domain_sizes) if is_halved else terms.domain
        named = [
            Table(view, table.counts, table.variance) for view, table in zip(terms.cover.views, views, strict=True)
        ]
        pairs = pair_tables(terms.cover, named, domain)
        return replace(known, information=mutual_information_matrix(pairs, domain, rows))

    def check(self, state: PartyState, step: Step, task: Task) -> None:
        assert isinstance(task, Count)
        if state.terms.plan.views != "halves":
            self._check_whole(state, step, task)
            return
        check_groups(state.terms, step, task.merged)
        sizes = state.terms.domain.with_merged(task.merged).coarse_sizes
        if sizes != state.terms.cover.domain_sizes or task.tables != _views(state.terms, task.merged):
            raise FailedCheck(CURATOR, f"asks for other views than the plan's views of halves in {step.name!r}")
        refuse_masked(step, task)

    def _check_whole(self, state: PartyState, step: Step, task: Count) -> None:
        """Refuse anything but the plan's views, and columns alone where the plan may count them instead.

        Privacy: either costs the step's budget. The masks depend on the tables, so all parties count the same.
        """
        if not state.terms.plan.dependence or task.tables != state.terms.single_cover.views:
            super().check(state, step, task)
            return
        refuse_merged(step, task.merged)
        refuse_masked(step, task)


def _rates_alone(terms: Terms, step: Step) -> tuple[Fraction, ...]:
    return tuple(map(terms.plan.definition.rate, terms.single_cover.budgets(step.budget)))


def _views(terms: Terms, halves: tuple[Merged, ...]) -> tuple[Variables, ...]:
    """The views of the plan; over halves, if there are any."""
    domain = terms.domain.with_merged(halves)
    return tuple(map(domain.coarsest, terms.cover.views)) if halves else terms.cover.views
