"""Accounts: which charges count against which limit, and the budget that follows.

It does not know plans, files or the ledger.

An account belongs to rows. Its claims say which charges of the ledger were spent on these rows, whatever name the data
set had then. A charge that two accounts claim counts in both.
"""

from dataclasses import dataclass
from fractions import Fraction

Amounts = tuple[Fraction, Fraction]  # of epsilon and delta
NOTHING: Amounts = (Fraction(0), Fraction(0))


@dataclass(frozen=True)
class Claims:
    """Names of data sets, digests of sources, and names of budgets: a charge that bears one of them is claimed."""

    names: frozenset[str] = frozenset()
    sources: frozenset[str] = frozenset()
    budgets: frozenset[str] = frozenset()

    def has(self, name: str, source: str, budget: str) -> bool:
        """Whether a charge is claimed. An empty text is no source and no budget."""
        found = (name, self.names), (source, self.sources), (budget, self.budgets)
        return any(one and one in claimed for one, claimed in found)

    def __or__(self, other: "Claims") -> "Claims":
        return Claims(self.names | other.names, self.sources | other.sources, self.budgets | other.budgets)


@dataclass(frozen=True)
class Account:
    """One limit, and the data sets of party.toml that share it; none for a data set of the past."""

    name: str
    claims: Claims
    datasets: tuple[str, ...] = ()
    limit: Amounts = NOTHING
    before: Amounts = NOTHING  # spent before this ledger was begun, as the data owner says


@dataclass(frozen=True)
class Budget:
    """The epsilon and delta of an account: in total, spent, and set aside."""

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


def added(*amounts: Amounts) -> Amounts:
    return sum((one[0] for one in amounts), Fraction(0)), sum((one[1] for one in amounts), Fraction(0))
