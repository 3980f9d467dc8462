"""One step of a run: who answers, what it may spend, and what it is charged.

It does not know what is asked in it.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

StageName = Literal[
    "joining", "correlations", "initial", "tables", "further", "update", "candidates", "models", "parameters"
]


@dataclass(frozen=True)
class Step:
    name: str
    stage: StageName
    parties: tuple[int, ...]  # who answers
    budget: Fraction = Fraction(0)  # the epsilon or rho of one exposure of a row: the noise follows from it
    spends: dict[int, Fraction] = field(default_factory=dict)  # the epsilon or rho of all exposures, by party
    charges: dict[int, tuple[Fraction, Fraction]] = field(default_factory=dict)  # by party: the epsilon and delta of it

    def charge(self, party: int) -> Fraction:
        """The epsilon that the step costs this party."""
        return self.charges.get(party, (Fraction(0), Fraction(0)))[0]

    def delta(self, party: int) -> Fraction:
        return self.charges.get(party, (Fraction(0), Fraction(0)))[1]


def shared_step(name: str, stage: StageName, everybody: tuple[int, ...], budget: Fraction) -> Step:
    """A step that everybody answers and pays for alike."""
    return Step(name, stage, everybody, budget, dict.fromkeys(everybody, budget))
