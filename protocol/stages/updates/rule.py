"""The interface of phase 3's update rules: the steps of each, their prices, and the stages that answer them.

It does not know which rules there are: each is a module `protocol.stages.updates.<name>` that holds its RULE.
"""

from abc import ABC, abstractmethod

from protocol.plan.plan import Plan
from protocol.plan.step import Step
from protocol.stages.stage import Stage


class UpdateRule(ABC):
    @abstractmethod
    def steps(self, plan: Plan, everybody: tuple[int, ...]) -> list[Step]:
        """The steps after the first network, with their exposures and costs."""

    @property
    @abstractmethod
    def stages(self) -> tuple[Stage, ...]:
        """The stages of these steps."""
