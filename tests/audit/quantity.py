"""One quantity that leaves the parties: its price by the ledger, and how an attacker tells two neighbours apart.

It does not know which quantities there are (`tests.audit.catalogue`).
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any

from protocol.privacy.mechanisms import PrivacyDefinition
from tests.audit.bounds import Scores, Tally

_ROUNDING = 1e-9
ENOUGH = Fraction(10**6)  # more epsilon than anything here costs
Attack = Callable[[bool], Scores]  # scores of one batch of trials, on the first table or on the second


@dataclass(frozen=True)
class Quantity:
    price: Fraction
    delta: Fraction
    attack: Attack = field(repr=False)
    exact: float | None = None  # epsilon by the exact law, where that is known
    is_broken: bool = False  # a deliberately broken variant, which has to be found out
    by_law: bool = True  # whether scores are logarithms of likelihood ratios by the law that the notes state

    def audited(self, name: str, batches: int, doubt: float) -> "Finding":
        tally = Tally(reach=1.25 * float(self.price))
        for _ in range(batches):
            tally.add(self.attack(False), self.attack(True))
        bound = tally.bound(float(self.delta), doubt)
        most = tally.most if self.by_law else None
        return Finding(
            name, str(self.price), str(self.delta), self.exact, most, bound, doubt, tally.trials, self.is_broken
        )


def variant(attack: Attack, price: int = 1) -> Quantity:
    """A variant that is priced at this epsilon, and that has to be found out unless it costs nothing."""
    return Quantity(Fraction(price), Fraction(0), attack, is_broken=price > 0, by_law=False)


def charged(definition: PrivacyDefinition, budget: Fraction, delta: Fraction) -> tuple[Fraction, Fraction]:
    """What the ledger charges for a run of which only this budget is spent: epsilon and delta."""
    return definition.epsilon_spent(budget, ENOUGH, delta), delta


@dataclass(frozen=True)
class Finding:
    quantity: str
    price: str
    delta: str
    exact: float | None  # epsilon at that delta, by the exact law
    most: float | None  # the largest loss of a single trial
    bound: float  # epsilon is larger, or a chance below `doubt` has come true
    doubt: float
    trials: int  # on each of two neighbouring tables
    is_broken: bool

    @property
    def is_as_expected(self) -> bool:
        """Whether the price holds; of a broken variant, whether it was found out."""
        price = float(Fraction(self.price))
        if self.is_broken:
            return self.bound > price
        limits = [self.exact, None if Fraction(self.delta) else self.most]  # with a delta, rare losses may be larger
        return self.bound <= price and all(known is None or known <= price + _ROUNDING for known in limits)

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"as_expected": self.is_as_expected}
