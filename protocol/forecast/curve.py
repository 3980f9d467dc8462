"""The predicted error of a plan's table over epsilon, and the epsilon from which more of it helps little.

It does not know rows: every point is a plan of its own, worked out from public numbers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from protocol.errors import PlanError
from protocol.forecast.error import predicted
from protocol.options import Method
from protocol.plan.terms import Terms

EPSILONS = tuple(Fraction(2**step, 20) for step in range(8))  # 0.05 to 6.4
LITTLE = Fraction(1, 5)  # a doubling of epsilon that lowers the error by less than this part helps little


@dataclass(frozen=True)
class CurvePoint:
    epsilon: Fraction
    error: float
    low: float
    high: float
    method: Method


def error_curve(terms_at: Callable[[Fraction], Terms]) -> tuple[CurvePoint, ...]:
    """A point for each epsilon at which there is a plan whose error can be predicted."""
    found = []
    for epsilon in EPSILONS:
        try:
            terms = terms_at(epsilon)
        except PlanError:
            continue
        said = predicted(terms)
        if said.error is not None and said.low is not None and said.high is not None:
            found.append(CurvePoint(epsilon, said.error, said.low, said.high, terms.plan.method))
    return tuple(found)


def enough(curve: Sequence[CurvePoint]) -> Fraction | None:
    """The smallest epsilon of the curve from which every doubling helps little; None if there is none."""
    found = None
    for one, twice in reversed([*pairwise(curve)]):
        if twice.epsilon != 2 * one.epsilon or twice.error < (1 - LITTLE) * one.error:
            break
        found = one.epsilon
    return found
