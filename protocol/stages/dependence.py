"""Dependence of columns, asked before views: one noisy number that says whether views are worth their noise.

It does not know how a party measures dependence (`protocol.tables.dependence`), or when a plan asks for it
(`protocol.plan.small_budgets`). `dependence.md` has the argument.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil, comb

import numpy as np

from protocol.messages.tasks import Reply
from protocol.plan.step import Step
from protocol.plan.terms import Terms
from protocol.privacy.layout import Vector
from protocol.secure_sum.sums import CuratorSums
from protocol.stages.knowledge import Knowledge
from protocol.stages.planned_pass import PlannedPass
from protocol.tables.any_rows import AnyRows
from protocol.tables.dependence import by_chance, dependence, sensitivity
from protocol.tables.domain import Variables
from protocol.views.cover import Cover


class ColumnDependence(PlannedPass):
    name = "dependence"
    label = "Dependence of columns"

    def cover(self, terms: Terms) -> Cover:
        """One table over no variable: a single number."""
        return Cover(_sizes(terms), ((),), (1,))

    def tables(self, terms: Terms, _step: Step, _known: Knowledge) -> tuple[Variables, ...]:
        return self.cover(terms).views

    def sets(self, terms: Terms, _tables: int) -> int:
        return comb(terms.domain.count, 2)

    def noise_rates(self, terms: Terms, step: Step, _cells: Sequence[int]) -> tuple[Fraction, ...]:
        return (terms.plan.definition.rate_of_number(step.budget, sensitivity(_sizes(terms))),)

    def counted(self, terms: Terms, rows: AnyRows, _tables: Sequence[Variables]) -> Vector:
        return np.array([dependence(rows, _bound(terms, rows.count))], dtype=np.int64)

    def conclude(
        self, terms: Terms, step: Step, known: Knowledge, replies: Mapping[int, Reply], sums: CuratorSums
    ) -> Knowledge:
        (number,) = self.opened(terms, step, known, replies, sums)
        return replace(known, dependence=int(number.counts))


def counts_alone(terms: Terms, known: Knowledge) -> bool:
    """Whether columns turned out to depend so little on each other that every column is counted alone."""
    return known.dependence is not None and known.dependence < rows_below(terms)


def rows_below(terms: Terms) -> int:
    """The dependence in rows below which columns are counted alone: the plan's bound, and what chance may show."""
    return sum(_bound(terms, member.rows) for member in terms.plan.members)


def _bound(terms: Terms, rows: int) -> int:
    return ceil(terms.plan.alone_below * rows) + by_chance(_sizes(terms), rows)


def _sizes(terms: Terms) -> tuple[int, ...]:
    return terms.domain.sizes[: terms.domain.count]
