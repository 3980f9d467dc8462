"""Method independent: every party makes a network and tables of its own rows alone.

It does not know how a party does it.
"""

from fractions import Fraction
from typing import ClassVar

from protocol.plan.plan import Plan
from protocol.plan.step import Step, lone_step
from protocol.stages.definitions.definition import Everybody, MethodDefinition, Order


class Independent(MethodDefinition):
    budgets = ("structure", "parameters")
    order: ClassVar[Order] = {"joining": ("models",), "models": ()}

    def steps(self, plan: Plan, everybody: Everybody, _variables: int) -> list[Step]:
        return [lone_step(plan, "models", "models", everybody, sum(plan.split, Fraction(0)))]
