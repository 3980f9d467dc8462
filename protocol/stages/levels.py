"""Phase 1 where views do not pay: one pass over every variable alone.

It does not know views of several variables (`protocol.stages.correlations`).
"""

from collections.abc import Mapping
from dataclasses import replace

from protocol.messages.tasks import Reply
from protocol.model.halves import halves_of
from protocol.model.rare_categories import merged_by
from protocol.plan.step import Step
from protocol.plan.terms import Terms
from protocol.secure_sum.sums import CuratorSums
from protocol.stages.knowledge import Knowledge
from protocol.stages.picked_tables import coming_noise
from protocol.stages.planned_pass import PlannedPass
from protocol.tables.domain import Variables
from protocol.views.cover import Cover


class Levels(PlannedPass):
    name = "levels"
    label = "Every column alone"

    def cover(self, terms: Terms) -> Cover:
        return terms.single_cover

    def tables(self, terms: Terms, _step: Step, _known: Knowledge) -> tuple[Variables, ...]:
        return terms.single_cover.views

    def conclude(
        self, terms: Terms, step: Step, known: Knowledge, replies: Mapping[int, Reply], sums: CuratorSums
    ) -> Knowledge:
        plan, singles = terms.plan, self.opened(terms, step, known, replies, sums)
        known = known.with_released(step, singles, plan.total_rows)
        merged = merged_by(singles, coming_noise(terms, step)) if plan.merging else ()
        halves = halves_of(singles, terms.schema, plan.total_rows) if plan.views == "halves" else ()
        return replace(known, merged=merged, halves=halves)
