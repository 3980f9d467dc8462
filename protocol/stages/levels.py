"""Phase 1 where views do not pay: one pass over every variable alone.

It does not know views of several variables (`protocol.stages.correlations`). A variable of the plan's wavelets is
counted as the coefficients of its tree, level after level (`protocol/privacy/wavelets.md`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import islice

import numpy as np

from protocol.exact import allocate
from protocol.messages.tasks import Reply
from protocol.model.halves import halves_of
from protocol.model.rare_categories import merged_by
from protocol.plan.step import Step
from protocol.plan.terms import Terms
from protocol.privacy.layout import Layout, Vector, joined
from protocol.secure_sum.sums import CuratorSums
from protocol.stages.knowledge import Knowledge
from protocol.stages.picked_tables import coming_noise
from protocol.stages.planned_pass import PlannedPass
from protocol.tables.any_rows import AnyRows
from protocol.tables.domain import Domain, Merged, Variables
from protocol.tables.marginal import Table
from protocol.views.cover import Cover


class Levels(PlannedPass):
    name = "levels"
    label = "Every column alone"

    def cover(self, terms: Terms) -> Cover:
        return terms.single_cover

    def tables(self, terms: Terms, _step: Step, _known: Knowledge) -> tuple[Variables, ...]:
        return terms.single_cover.views

    def parts(self, terms: Terms, step: Step) -> Iterator[tuple[int, Fraction]]:
        definition, cover = terms.plan.definition, terms.single_cover
        for (variable,), cells, share in zip(
            cover.views, cover.view_cells, allocate(self.budget(terms, step), cover.weights), strict=True
        ):
            wavelet = terms.wavelets.get(variable)
            if wavelet is None:
                yield cells, definition.rate(share)
                continue
            for count, part in zip(wavelet.tree.cells, wavelet.shares(definition), strict=True):
                yield count, definition.rate(share * part)

    def layout(
        self, terms: Terms, step: Step, _tables: Sequence[Variables], rows: int, _merged: Sequence[Merged] = ()
    ) -> Layout:
        cells, rates = zip(*self.parts(terms, step), strict=True)
        return Layout(cells, rates, rows)

    def counted(self, terms: Terms, rows: AnyRows, tables: Sequence[Variables]) -> Vector:
        return joined(
            [
                counts if (wavelet := terms.wavelets.get(variable)) is None else wavelet.tree.coefficients(counts)
                for (variable,), counts in zip(tables, rows.tables(tables), strict=True)
            ]
        )

    def told(
        self, terms: Terms, tables: Sequence[Variables], domain: Domain, parts: Sequence[tuple[Vector, float]]
    ) -> list[Table]:
        left, found = iter(parts), list[Table]()
        for table in tables:
            wavelet = terms.wavelets.get(table[0])
            if wavelet is None:
                found += super().told(terms, [table], domain, [next(left)])
                continue
            coefficients, variances = zip(*islice(left, len(wavelet.tree.levels)), strict=True)
            noise = wavelet.noise(variances)
            counts = wavelet.tree.counts(terms.plan.total_rows, joined(coefficients))
            found.append(Table(table, counts, noise.variance, noise))
        return found

    def blank(self, terms: Terms, step: Step) -> list[Table]:
        """Tables of every variable as the pass releases them, with their noise known and nothing counted."""
        mode, views = terms.plan.noise_mode, terms.single_cover.views
        parts = [(np.zeros(cells, np.int64), mode.retained_variance(rate)) for cells, rate in self.parts(terms, step)]
        return self.told(terms, views, terms.domain, parts)

    def conclude(
        self, terms: Terms, step: Step, known: Knowledge, replies: Mapping[int, Reply], sums: CuratorSums
    ) -> Knowledge:
        plan, singles = terms.plan, self.opened(terms, step, known, replies, sums)
        known = known.with_released(step, singles, plan.total_rows)
        merged = merged_by(singles, coming_noise(terms, step)) if plan.merging else ()
        halves = halves_of(singles, terms.schema, plan.total_rows) if plan.views == "halves" else ()
        return replace(known, merged=merged, halves=halves)
