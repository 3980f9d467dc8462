"""Base of the papers' update rules: a search frontier, statistics of its families, and the best network in it.

It does not know whose rows an update adds, or under which noise.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from protocol.messages.tasks import Contribution, Count
from protocol.network.frontier import search_frontier
from protocol.network.limits import Limits
from protocol.network.network import best_network
from protocol.plan.step import Step
from protocol.plan.terms import Terms
from protocol.stages.knowledge import Knowledge, Statistic
from protocol.stages.stage import Size, Stage
from protocol.tables.domain import Variables
from protocol.tables.marginal import Table


class FrontierUpdate(Stage):
    name = "update"
    label = "Updates"
    takes_from_frontier = True
    reply = Contribution
    task = Count
    keeps_former_noise = True  # whether the sum of two deliveries of one family holds the noise of both

    def narrowest_rate(self, terms: Terms, step: Step) -> Fraction | None:
        return terms.plan.definition.rate(step.budget / terms.domain.count)

    def size(self, terms: Terms, _step: Step) -> Size:
        return Size(terms.domain.count, terms.domain.count * self.limits(terms).largest_family(terms.domain))

    def limits(self, terms: Terms) -> Limits:
        return terms.frontier_limits

    def enter(self, terms: Terms, known: Knowledge) -> Knowledge:
        frontier = search_frontier(known.network, known.information, terms.frontier_limits, terms.domain)
        return replace(known, frontier=frontier)

    def tables(self, _terms: Terms, _step: Step, known: Knowledge) -> tuple[Variables, ...]:
        return tuple(family.variables for family in known.frontier.families if family.parents)

    def updated(self, terms: Terms, known: Knowledge, tables: Sequence[Table], rows: int) -> Knowledge:
        """The knowledge with these tables over `rows` more rows, and with the best network for its statistics."""
        statistics = {table.variables[0]: self._statistic(known, table, rows) for table in tables}
        network = best_network(
            known.frontier,
            {child: statistic.table for child, statistic in statistics.items()},
            {child: statistic.rows for child, statistic in statistics.items()},
            terms.limits,
            terms.domain,
        )
        return replace(known, statistics=statistics, families=network.families)

    def _statistic(self, known: Knowledge, table: Table, rows: int) -> Statistic:
        """The family's statistic with one more delivery: added up if the family is unchanged, else started anew."""
        former = known.statistics.get(table.variables[0])
        if former is None or former.table.variables != table.variables:
            return Statistic(table, rows)
        variance = table.variance + (former.table.variance if self.keeps_former_noise else 0.0)
        return Statistic(Table(table.variables, former.table.counts + table.counts, variance), former.rows + rows)
