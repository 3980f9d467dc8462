"""Method dp-subn: the five phases of the DP-SUBN paper; the fifth, synthesis, needs no answers.

It does not know how a phase works.
"""

from typing import ClassVar

from protocol.network.network import Family
from protocol.plan.plan import Plan
from protocol.plan.step import Step, shared_step
from protocol.plan.terms import Terms
from protocol.stages.definitions.definition import Everybody, MethodDefinition, Order, families_alone, first_phase
from protocol.stages.initial import initial_steps
from protocol.stages.registry import UPDATES


class DpSubn(MethodDefinition):
    budgets = ("correlations", "initial network", "frontier and updates", "parameters")
    order: ClassVar[Order] = {
        "joining": ("edges", "dependence", "levels", "correlations", "initial", "parameters"),
        "edges": ("dependence", "levels", "correlations"),
        "dependence": ("correlations",),
        "levels": ("correlations", "parameters"),
        "correlations": ("initial", "update", "frontier", "parameters"),
        "initial": ("initial", "update", "frontier", "parameters"),
        "update": ("update", "frontier", "parameters"),
        "frontier": ("update", "parameters"),
        "parameters": (),
    }

    def steps(self, plan: Plan, everybody: Everybody, _variables: int) -> list[Step]:
        _, e2, e3, e4 = plan.split
        found = first_phase(plan)
        if e2:
            found += initial_steps(plan, e2)
        if e3 and plan.rule:
            found += UPDATES[plan.rule].steps(plan, everybody)
        last = plan.last_picks if plan.picks_pairs else 0
        return [*found, shared_step(plan, "parameters", "parameters", e4, last)]

    def first_families(self, terms: Terms, _first_variable: int) -> tuple[Family, ...]:
        """Without phase 2, every variable as a family without parents; otherwise nothing."""
        return () if terms.plan.split[1] else families_alone(terms)
