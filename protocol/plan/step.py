"""One step of a run: the parties that answer, the budget, and the charges.

It does not know the tasks of the step.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

StageName = Literal[
    "joining",
    "levels",
    "correlations",
    "initial",
    "tables",
    "further",
    "frontier",
    "update",
    "candidates",
    "models",
    "parameters",
]


@dataclass(frozen=True)
class Step:
    name: str
    stage: StageName
    parties: tuple[int, ...]  # those that answer
    budget: Fraction = Fraction(0)  # epsilon or rho of one exposure of a row; determines the noise
    spends: dict[int, Fraction] = field(default_factory=dict)  # epsilon or rho of all exposures, by party
    tables: int = 0  # the most tables of a pass over picked pairs; 0: as many as there are variables
    charges: dict[int, tuple[Fraction, Fraction]] = field(default_factory=dict)  # epsilon and delta, by party

    def charge(self, party: int) -> Fraction:
        """Epsilon that the step costs this party."""
        return self.charges.get(party, (Fraction(0), Fraction(0)))[0]

    def delta(self, party: int) -> Fraction:
        """Delta that the step costs this party."""
        return self.charges.get(party, (Fraction(0), Fraction(0)))[1]


def shared_step(name: str, stage: StageName, everybody: tuple[int, ...], budget: Fraction, tables: int = 0) -> Step:
    """A step that every party answers at the same cost."""
    return Step(name, stage, everybody, budget, dict.fromkeys(everybody, budget), tables)
