"""Definition of a method: the steps of its runs, from the plan alone, and what the methods share.

It does not know tables, messages or noise.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from protocol.network.network import Family
from protocol.plan.plan import Plan
from protocol.plan.step import StageName, Step, shared_step
from protocol.plan.terms import Terms
from protocol.plan.tuning import OF_HALVES

Everybody = tuple[int, ...]
Order = Mapping[StageName, tuple[StageName, ...]]


class MethodDefinition(ABC):
    budgets: tuple[str, ...]  # the purpose of each part of a plan's split
    order: ClassVar[Order]  # the stages that may follow each stage; after a stage without any, the run may end

    @abstractmethod
    def steps(self, plan: Plan, everybody: Everybody, variables: int) -> list[Step]:
        """The steps after joining."""

    def first_families(self, _terms: Terms, _first_variable: int) -> tuple[Family, ...]:
        """The network before any answer."""
        return ()


def first_phase(plan: Plan) -> list[Step]:
    """The passes before any pick: edges of bins and dependence, if asked for; then views, single variables, or both."""
    budget = plan.split[0]
    found: list[Step] = []
    if plan.edges:
        found.append(shared_step(plan, "edges", "edges", plan.edges_budget))
    if plan.dependence:
        found.append(shared_step(plan, "dependence", "dependence", plan.dependence_budget))
    if not budget:
        return found
    for_views = budget * (OF_HALVES if plan.views == "halves" else 1)
    if plan.views != "pairs":
        alone = budget - for_views if plan.views == "halves" else budget
        found.append(shared_step(plan, "levels", "levels", alone))
    if plan.views != "single":
        found.append(shared_step(plan, "correlations", "correlations", for_views))
    return found


def families_alone(terms: Terms) -> tuple[Family, ...]:
    """Every variable as a family without parents."""
    return tuple(Family(v) for v in range(terms.domain.count))
