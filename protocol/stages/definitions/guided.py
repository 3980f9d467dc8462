"""Method guided: single columns or views, a tree of pairs, and further pairs, each picked because a model misses it.

It does not know how a pair is picked.
"""

from typing import ClassVar

from protocol.network.network import Family
from protocol.plan.plan import Plan
from protocol.plan.step import Step, shared_step
from protocol.plan.terms import Terms
from protocol.stages.definitions.definition import Everybody, MethodDefinition, Order, families_alone, first_phase
from protocol.stages.guided import guided_steps, picks_budget
from protocol.stages.initial import initial_steps


class Guided(MethodDefinition):
    budgets = ("columns or views", "picks", "tables of the first picks", "tables of the last picks")
    order: ClassVar[Order] = {
        "joining": ("edges", "dependence", "levels", "correlations"),
        "edges": ("dependence", "levels", "correlations"),
        "dependence": ("correlations",),
        "levels": ("initial", "parameters"),
        "correlations": ("initial", "parameters"),
        "initial": ("initial", "tables", "parameters"),
        "tables": ("further",),
        "further": ("further", "tables", "parameters"),
        "parameters": (),
    }

    def steps(self, plan: Plan, _everybody: Everybody, _variables: int) -> list[Step]:
        found = first_phase(plan)
        if plan.split[1]:
            found += initial_steps(plan, picks_budget(plan))
        if plan.split[2]:
            found += guided_steps(plan)
        return [*found, shared_step(plan, "parameters", "parameters", plan.split[3])]

    def first_families(self, terms: Terms, _first_variable: int) -> tuple[Family, ...]:
        """Without picks, every variable as a family without parents; otherwise nothing."""
        return () if terms.plan.split[1] else families_alone(terms)
