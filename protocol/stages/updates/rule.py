"""The interface of phase 3's update rules: the steps of each, their prices, and the stages that answer them.

It does not know which rules there are: each is a module `protocol.stages.updates.<name>` that holds its RULE.
"""

from abc import ABC, abstractmethod
from fractions import Fraction

from protocol.plan.plan import Plan
from protocol.plan.step import Step
from protocol.stages.stage import Stage


class UpdateRule(ABC):
    def initial_budget(self, _plan: Plan, budget: Fraction) -> Fraction:
        """The first network's part of the budget for picks."""
        return budget

    @abstractmethod
    def steps(self, plan: Plan, everybody: tuple[int, ...]) -> list[Step]:
        """The steps after the first network, with their exposures and costs."""

    @property
    @abstractmethod
    def stages(self) -> tuple[Stage, ...]:
        """The stages of these steps."""
