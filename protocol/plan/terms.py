"""The terms of a run: all that plan and schema imply, worked out alike by every party and the curator.

It does not know rows, messages or noise. Everybody who joins works the terms out alone and trusts nobody's price.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from protocol.network.limits import Limits
from protocol.network.workload import affordable, bearable
from protocol.plan.plan import Plan
from protocol.plan.step import Step
from protocol.privacy.usefulness import useful_cells, useful_degree
from protocol.tables.domain import Domain
from protocol.tables.encoding import Block, Encoding
from protocol.tables.schema import Schema
from protocol.views.cover import LARGEST_VIEW, Cover, cover, single_views


@dataclass(frozen=True, eq=False)
class Terms:
    """Made by `protocol.run.agreement.agree`, which refuses what cannot work."""

    plan: Plan
    schema: Schema
    encoding: Encoding
    steps: tuple[Step, ...]

    @cached_property
    def plan_hash(self) -> str:
        return self.plan.hash()

    @property
    def domain(self) -> Domain:
        return self.encoding.domain

    @property
    def blocks(self) -> tuple[Block, ...]:
        return self.encoding.blocks

    def price(self, party: int) -> Fraction:
        """The epsilon that the whole run costs the rows of one party."""
        return sum((step.charge(party) for step in self.steps), Fraction(0))

    def delta(self, party: int) -> Fraction:
        """The delta that it costs them."""
        return sum((step.delta(party) for step in self.steps), Fraction(0))

    @cached_property
    def cover(self) -> Cover:
        """The views of phase 1."""
        plan = self.plan
        sizes = self.domain.sizes[: self.domain.count]
        if plan.views == "single":
            return single_views(sizes, plan.cover_budgets)
        return cover(sizes, plan.cover_objective, plan.cover_budgets, primes_only=plan.cover_objective == "paper")

    @cached_property
    def limits(self) -> Limits:
        """How large a family of the network may be. Score M weighs noise itself: nothing else limits its pairs."""
        if self.plan.score == "M":
            return Limits(cells=None if self.domain.is_binary else LARGEST_VIEW, degree=1)
        wanted = self._limits(self.plan.total_rows, self.plan.split[-1], self.plan.theta, self.plan.degree)
        comparing_all = self.plan.method == "dp-ccbn" and self.plan.split[0] > 0
        return affordable(self.domain, wanted, self.plan.score, comparing_all)

    @cached_property
    def frontier_limits(self) -> Limits:
        """How large a family of the search frontier may be: never smaller than the network's."""
        wide = bearable(
            self.domain, self._limits(self.plan.total_rows, self.plan.split[2], self.plan.frontier_theta, None)
        )
        return Limits(_larger(wide.cells, self.limits.cells), _larger(wide.degree, self.limits.degree))

    def local_limits(self, party: int) -> Limits:
        """The same for a party that models its own rows alone (method independent)."""
        wanted = self._limits(self.plan.members[party].rows, self.plan.split[-1], self.plan.theta, self.plan.degree)
        return affordable(self.domain, wanted, self.plan.score, comparing_all=False)

    def _limits(self, rows: int, budget: Fraction, theta: Fraction, degree: int | None) -> Limits:
        count, definition = self.domain.count, self.plan.definition
        if self.domain.is_binary:
            return Limits(degree=useful_degree(rows, count, budget, theta, definition) if degree is None else degree)
        return Limits(cells=useful_cells(rows, count, budget, theta, definition), degree=degree)


def _larger(one: int | None, other: int | None) -> int | None:
    return max(one, other) if one is not None and other is not None else None
