"""One step of a run: the parties that answer, the budget, and the charges.

It does not know the tasks of the step.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from protocol.plan.plan import Plan

StageName = Literal[
    "joining",
    "edges",
    "dependence",
    "levels",
    "correlations",
    "initial",
    "growth",
    "tables",
    "further",
    "frontier",
    "update",
    "candidates",
    "models",
    "clusters",
    "parameters",
]


@dataclass(frozen=True)
class Step:
    name: str
    stage: StageName
    parties: tuple[int, ...]  # those that answer
    budget: Fraction = Fraction(0)  # epsilon or rho of one exposure of a row; determines the noise
    spends: dict[int, Fraction] = field(default_factory=dict)  # epsilon or rho of all exposures of a person, by party
    is_alone: bool = False  # what each party releases stands alone, not in a sum over all parties
    tables: int = 0  # the most tables of a pass over picked pairs; 0: as many as there are variables
    charges: dict[int, tuple[Fraction, Fraction]] = field(default_factory=dict)  # epsilon and delta, by party

    def charge(self, party: int) -> Fraction:
        """Epsilon that the step costs this party."""
        return self.charges.get(party, (Fraction(0), Fraction(0)))[0]

    def delta(self, party: int) -> Fraction:
        """Delta that the step costs this party."""
        return self.charges.get(party, (Fraction(0), Fraction(0)))[1]


def shared_step(plan: Plan, name: str, stage: StageName, budget: Fraction, tables: int = 0) -> Step:
    """A pass that every party answers, with a sum of all rows of a person: it costs everybody the whole budget."""
    everybody = tuple(range(plan.parties))
    return Step(name, stage, everybody, plan.in_sums(budget), dict.fromkeys(everybody, budget), tables=tables)


def lone_step(plan: Plan, name: str, stage: StageName, parties: tuple[int, ...], budget: Fraction) -> Step:
    """A step in which each of the parties releases something of its own: a person's parties share the budget."""
    spends = dict.fromkeys(parties, budget / plan.parties_per_person)
    return Step(name, stage, parties, plan.alone(budget), spends, is_alone=True)
