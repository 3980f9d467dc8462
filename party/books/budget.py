"""Privacy budget of one data set.

It does not know plans.
"""

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Budget:
    """The epsilon and delta of a data set: in total, spent, and set aside."""

    total: Fraction
    spent: Fraction
    reserved: Fraction
    delta_total: Fraction = Fraction(0)
    delta_spent: Fraction = Fraction(0)
    delta_reserved: Fraction = Fraction(0)

    @property
    def left(self) -> Fraction:
        return max(Fraction(0), self.total - self.spent - self.reserved)

    @property
    def delta_left(self) -> Fraction:
        return max(Fraction(0), self.delta_total - self.delta_spent - self.delta_reserved)
