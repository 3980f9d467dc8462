"""Edges of bins, found before anything else is counted: one pass over the fine grids of attributes that ask for it.

It does not know how edges are chosen (`protocol.model.bin_edges`). `edges.md` has the argument.
"""

from collections.abc import Mapping
from dataclasses import replace

from protocol.messages.tasks import Reply
from protocol.model.bin_edges import bin_starts
from protocol.plan.step import Step
from protocol.plan.terms import Terms
from protocol.secure_sum.sums import CuratorSums
from protocol.stages.knowledge import Knowledge
from protocol.stages.planned_pass import PlannedPass
from protocol.tables.domain import Domain, Variables
from protocol.tables.found_edges import asking
from protocol.views.cover import Cover, single_views


class BinEdges(PlannedPass):
    name = "edges"
    label = "Edges of bins"

    def domain(self, terms: Terms) -> Domain:
        return terms.finest.domain

    def cover(self, terms: Terms) -> Cover:
        sizes, places = self.domain(terms).sizes, tuple(asking(terms.agreed))
        weights = single_views([sizes[place] for place in places], terms.plan.cover_budgets).weights
        return Cover(sizes, tuple((place,) for place in places), weights)

    def tables(self, terms: Terms, _step: Step, _known: Knowledge) -> tuple[Variables, ...]:
        return self.cover(terms).views

    def conclude(
        self, terms: Terms, step: Step, known: Knowledge, replies: Mapping[int, Reply], sums: CuratorSums
    ) -> Knowledge:
        grids, rows = tuple(self.opened(terms, step, known, replies, sums)), terms.plan.total_rows
        variables, attributes = self.domain(terms).variables, asking(terms.agreed)
        edges = tuple(
            (place, bin_starts(grid, variables[place], attributes[place].find or 1, rows, attributes[place].beginnings))
            for grid in grids
            for place in grid.variables
        )
        return replace(known, grids=grids, edges=edges)
