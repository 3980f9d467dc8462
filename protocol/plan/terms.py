"""The terms of a run: everything that plan and schema imply, computed identically by every party and the curator.

It does not know rows, messages or noise. Each party that joins computes the terms itself and trusts nobody else's
price.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from protocol.model.evidence import Room
from protocol.network.limits import Limits
from protocol.network.workload import affordable, bearable
from protocol.plan.plan import Plan
from protocol.plan.step import Step
from protocol.plan.targets import targets_of
from protocol.plan.trees import wavelets_of
from protocol.plan.tuning import room_of_model
from protocol.privacy.usefulness import useful_cells, useful_degree
from protocol.privacy.wavelets import Wavelet
from protocol.tables.domain import Domain, Variables
from protocol.tables.encoding import Block, Encoding
from protocol.tables.schema import Schema
from protocol.views.cover import LARGEST_VIEW, Cover, cover, single_views

FRONTIER_DEGREE = 4  # parents of a variable in the frontier, where pairs are picked from it


@dataclass(frozen=True, eq=False)
class Terms:
    """Terms come from `protocol.run.agreement.agree`, which refuses plans that cannot work."""

    plan: Plan
    schema: Schema  # as tables count it: edges that are still to be found divide their grid evenly
    encoding: Encoding
    steps: tuple[Step, ...]
    agreed: Schema  # as everybody agreed to it, and as rows are coded

    @cached_property
    def plan_hash(self) -> str:
        return self.plan.hash()

    @cached_property
    def finest(self) -> Encoding:
        """The encoding of rows: of every bin of the agreed schema, whichever bins are counted."""
        return Encoding.of(self.agreed, self.plan.encoding) if self.plan.edges else self.encoding

    @property
    def domain(self) -> Domain:
        return self.encoding.domain

    @property
    def blocks(self) -> tuple[Block, ...]:
        return self.encoding.blocks

    def price(self, party: int) -> Fraction:
        """Epsilon that the whole run costs the rows of one party."""
        return sum((step.charge(party) for step in self.steps if party in step.charges), Fraction(0))

    def delta(self, party: int) -> Fraction:
        """Delta that the whole run costs the rows of one party."""
        return sum((step.delta(party) for step in self.steps if party in step.charges), Fraction(0))

    @cached_property
    def cover(self) -> Cover:
        """The views of phase 1 that hold every pair of variables."""
        plan = self.plan
        sizes = self.domain.sizes[: self.domain.count]
        if plan.views == "halves":
            sizes = (2,) * len(sizes)
        return cover(sizes, plan.cover_objective, plan.cover_budgets, primes_only=plan.cover_objective == "paper")

    @cached_property
    def single_cover(self) -> Cover:
        """Every variable alone."""
        return single_views(self.domain.sizes[: self.domain.count], self.plan.cover_budgets)

    @cached_property
    def wavelets(self) -> Mapping[int, Wavelet]:
        """The variables whose single counts have their noise in the coefficients of a tree, with their trees."""
        return wavelets_of(self.schema) if self.plan.noise_shape == "wavelet" else {}

    @cached_property
    def targets(self) -> tuple[frozenset[int], ...]:
        """The sets of variables that matter most; none if all matter alike."""
        return targets_of(self.plan.target, self.schema.names)

    def matters(self, variables: Variables) -> bool:
        """Whether the table is for this set: it holds a target, or lies in one."""
        return not self.targets or any(one <= set(variables) or one >= set(variables) for one in self.targets)

    @cached_property
    def model_room(self) -> Room:
        """What the model of all tables may hold."""
        plan, sizes = self.plan, self.domain.sizes[: self.domain.count]
        shared = plan.in_sums(sum(plan.split, Fraction(0)))
        rows = [member.rows for member in plan.members]
        return Room(room_of_model(sizes, rows, shared, plan.definition, plan.insiders), plan.ways)

    @cached_property
    def limits(self) -> Limits:
        """Limits on the size of a family of the network. Score M weighs noise itself, so only size limits its pairs."""
        if self.plan.picks_pairs:
            return Limits(cells=None if self.domain.is_binary else LARGEST_VIEW, degree=self.plan.ways - 1)
        if self.plan.method == "jtree":
            return Limits(self.cluster_cells[0], self.plan.degree)
        wanted = self._limits(
            self.plan.total_rows, self.plan.in_sums(self.plan.split[-1]), self.plan.theta, self.plan.degree
        )
        comparing_all = self.plan.method == "dp-ccbn" and self.plan.split[0] > 0
        takes_time = self.plan.degree is not None or self.plan.method in ("privbayes", "privabn")
        rows = max(member.rows for member in self.plan.members) if takes_time else None
        return affordable(self.domain, wanted, self.plan.score, comparing_all, rows)

    @cached_property
    def cluster_cells(self) -> tuple[int, ...]:
        """The most cells of a table in a pass over one table, over two, and so on up to one for every variable."""
        plan, count = self.plan, self.domain.count
        budget = plan.in_sums(plan.split[-1])
        useful = [useful_cells(plan.total_rows, many + 1, budget, plan.theta, plan.definition) for many in range(count)]
        return tuple(bearable(self.domain, Limits(cells)).cells or 1 for cells in useful)

    @cached_property
    def frontier_limits(self) -> Limits:
        """Limits on the size of a family of the search frontier: never smaller than the network's.

        Where only the pairs of a family are counted, their number alone limits it.
        """
        if self.plan.picks_pairs:
            return Limits(degree=FRONTIER_DEGREE)
        wide = bearable(
            self.domain,
            self._limits(self.plan.total_rows, self.plan.in_sums(self.plan.split[2]), self.plan.frontier_theta, None),
        )
        return Limits(_larger(wide.cells, self.limits.cells), _larger(wide.degree, self.limits.degree))

    def local_limits(self, party: int) -> Limits:
        """Limits on the size of a family for a party that models its own rows alone (method independent)."""
        rows = self.plan.members[party].rows
        wanted = self._limits(rows, self.plan.alone(self.plan.split[-1]), self.plan.theta, self.plan.degree)
        return affordable(self.domain, wanted, self.plan.score, False, None if self.plan.degree is None else rows)

    def _limits(self, rows: int, budget: Fraction, theta: Fraction, degree: int | None) -> Limits:
        count, definition = self.domain.count, self.plan.definition
        if self.domain.is_binary:
            useful = useful_degree(rows, count, budget, theta, definition, self.plan.family_tables)
            return Limits(degree=useful if degree is None else degree)
        return Limits(cells=useful_cells(rows, count, budget, theta, definition), degree=degree)


def _larger(one: int | None, other: int | None) -> int | None:
    return max(one, other) if one is not None and other is not None else None
