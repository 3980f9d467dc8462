"""Method privbayes: a network that the parties place in turn by private choices, then one pass over its tables.

It does not know how a family is scored, or which tables a network needs.

With one party it is PrivBayes as published. With several it is dp-subn without views and updates: each party places its
share of the variables (`protocol.stages.initial`), and all count the families' tables together.
"""

from fractions import Fraction
from typing import ClassVar

from protocol.network.network import Family
from protocol.plan.plan import Plan
from protocol.plan.step import Step, shared_step
from protocol.plan.terms import Terms
from protocol.stages.definitions.definition import Everybody, MethodDefinition, Order, families_alone
from protocol.stages.initial import initial_steps


class PrivBayes(MethodDefinition):
    budgets = ("structure", "parameters")
    order: ClassVar[Order] = {
        "joining": ("initial", "parameters"),
        "initial": ("initial", "parameters"),
        "parameters": (),
    }

    def steps(self, plan: Plan, _everybody: Everybody, _variables: int) -> list[Step]:
        e1, e2 = plan.split
        found = self.placing_steps(plan, e1) if e1 else []
        return [*found, shared_step(plan, "parameters", "parameters", e2)]

    def placing_steps(self, plan: Plan, budget: Fraction) -> list[Step]:
        """The steps in which each party places its share of the variables."""
        return initial_steps(plan, budget)

    def first_families(self, terms: Terms, _first_variable: int) -> tuple[Family, ...]:
        """Without a budget for structure, every variable as a family without parents; otherwise nothing."""
        return () if terms.plan.split[0] else families_alone(terms)
