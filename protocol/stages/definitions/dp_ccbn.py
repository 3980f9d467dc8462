"""Method dp-ccbn: the first cut of the DP-SUBN paper, which counts every table that could join another variable.

It does not know how tables are compared.
"""

from typing import ClassVar

from protocol.network.network import Family
from protocol.plan.plan import Plan
from protocol.plan.step import Step, shared_step
from protocol.plan.terms import Terms
from protocol.stages.definitions.definition import Everybody, MethodDefinition, Order


class DpCcbn(MethodDefinition):
    budgets = ("structure", "parameters")
    order: ClassVar[Order] = {
        "joining": ("candidates", "parameters"),
        "candidates": ("candidates", "parameters"),
        "parameters": (),
    }

    def steps(self, plan: Plan, _everybody: Everybody, variables: int) -> list[Step]:
        e1, e2 = plan.split
        rounds = variables - 1 if e1 else 0
        found = [shared_step(plan, f"candidates/{i + 1}", "candidates", e1 / rounds) for i in range(rounds)]
        return [*found, shared_step(plan, "parameters", "parameters", e2)]

    def first_families(self, _terms: Terms, first_variable: int) -> tuple[Family, ...]:
        """The first variable, which was drawn at random without reading rows."""
        return (Family(first_variable),)
