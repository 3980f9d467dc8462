"""Privacy definitions: the unit of a budget, the noise for a share of a budget, and the epsilon of spent budget.

It does not know passes, stages or which party adds the noise; `privacy.md` and `zcdp.md` hold the arguments.

A budget is an epsilon or a rho. A `rate` says how narrow the noise is: alpha for Laplace, 1 / variance for Gaussian.
"""

import math
from fractions import Fraction
from typing import Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from crypto.randomness import Stream
from crypto.sampling.gaussian import discrete_gaussian, gaussian_bound, gaussian_variance
from crypto.sampling.laplace import discrete_laplace, laplace_bound, laplace_variance, polya_bound, polya_share
from protocol.errors import PlanError
from protocol.options import Choice, Privacy
from protocol.privacy.zcdp import epsilon_of, largest_rho, root_below, share_variance

Vector = NDArray[np.int64]

_RHO_UNITS = 10**18  # rho is rounded down to a multiple of 1 over this number, so that people can read it
_EPSILON_UNITS = 10**9  # the epsilon spent under zcdp is rounded up to a multiple of 1 over this number
# Privacy: bounded neighbours. Changing one row's values takes one count down and another up
# (docs/protocol.md, section 1).
SENSITIVITY = 2  # the sensitivity in L1, and also the square of the sensitivity in L2


class PrivacyDefinition(Protocol):
    needs_delta: bool  # whether a budget is the rho of an (epsilon, delta); if not, it is an epsilon
    grows_by_root: bool  # whether noise grows only with the root of a budget's number of parts, so that many parts pay
    cost_of_two: int  # of one count that changes by two, where two counts that change by one cost 1
    guarantee: str  # in words
    about_noise: str  # in words, at the end of a sentence

    def check_delta(self, delta: Fraction, rows: int) -> None:
        """Raise `PlanError` if a plan over so many rows must not have this delta."""
        ...

    def budget(self, epsilon: Fraction, delta: Fraction) -> Fraction:
        """The largest budget that is worth at most (epsilon, delta)."""
        ...

    def epsilon_spent(self, budget: Fraction, epsilon: Fraction, delta: Fraction) -> Fraction:
        """The epsilon of the budget that a party has spent so far; the plan's whole budget is worth `epsilon`."""
        ...

    def of_row(self, budget: Fraction, rows: int) -> Fraction:
        """The budget at which one row is protected so that so many rows together are protected at `budget`."""
        ...

    def rate(self, budget: Fraction) -> Fraction:
        """The rate of the noise that makes one table private at this budget."""
        ...

    def rate_of_number(self, budget: Fraction, change: int) -> Fraction:
        """The rate of the noise that makes one number private which a row changes by at most `change`."""
        ...

    def draw(self, rate: Fraction, size: int, stream: Stream) -> Vector:
        """Draw a full share of noise for every cell."""
        ...

    def bound(self, rate: Fraction) -> int: ...

    def variance(self, rate: Fraction) -> float: ...

    def draw_share(self, rate: Fraction, shares: int, size: int, stream: Stream) -> Vector:
        """Draw one of `shares` partial shares that together protect as well as a full share."""
        ...

    def share_bound(self, rate: Fraction, shares: int) -> int: ...

    def share_variance(self, rate: Fraction, shares: int) -> float: ...

    def mean_size(self, variance: float) -> float:
        """The expected absolute value of noise of this variance."""
        ...

    def choice_epsilon(self, budget: Fraction, mechanism: Choice) -> Fraction:
        """The epsilon of one private choice that costs this budget."""
        ...

    def useful_cells(self, rows: int, tables: int, budget: Fraction, theta: Fraction) -> int:
        """The most cells of a table whose average count is at least theta times the mean size of the noise.

        The budget is shared by `tables` tables.
        """
        ...


class PurePrivacy:
    """Epsilon-differential privacy: the budget is an epsilon, and the noise is discrete Laplace."""

    needs_delta = False
    grows_by_root = False
    cost_of_two = 1
    guarantee = "ε-differentially private"
    about_noise = ""

    def check_delta(self, delta: Fraction, _rows: int) -> None:
        if delta:
            raise PlanError(f"delta is {delta}, but pure privacy has no delta: choose privacy=zcdp, or leave delta out")

    def budget(self, epsilon: Fraction, _delta: Fraction) -> Fraction:
        return epsilon

    def epsilon_spent(self, budget: Fraction, _epsilon: Fraction, _delta: Fraction) -> Fraction:
        return budget

    def of_row(self, budget: Fraction, rows: int) -> Fraction:
        return budget / rows

    def rate(self, budget: Fraction) -> Fraction:
        return budget / SENSITIVITY

    def rate_of_number(self, budget: Fraction, change: int) -> Fraction:
        return budget / change

    def draw(self, rate: Fraction, size: int, stream: Stream) -> Vector:
        return discrete_laplace(rate, size, stream)

    def bound(self, rate: Fraction) -> int:
        return laplace_bound(rate)

    def variance(self, rate: Fraction) -> float:
        return laplace_variance(rate)

    def draw_share(self, rate: Fraction, shares: int, size: int, stream: Stream) -> Vector:
        return polya_share(rate, shares, size, stream)

    def share_bound(self, rate: Fraction, shares: int) -> int:
        return polya_bound(rate, shares)

    def share_variance(self, rate: Fraction, shares: int) -> float:
        return laplace_variance(rate) / shares

    def mean_size(self, variance: float) -> float:
        return math.sqrt(variance / 2)

    def choice_epsilon(self, budget: Fraction, _mechanism: Choice) -> Fraction:
        return budget

    def useful_cells(self, rows: int, tables: int, budget: Fraction, theta: Fraction) -> int:
        # PrivBayes, section 5.2: the noise of one table is 2 tables / epsilon on average.
        return int(rows * budget / (SENSITIVITY * tables * theta))


class ConcentratedPrivacy:
    """Zero-concentrated differential privacy: the budget is a rho, and the noise is discrete Gaussian.

    A table of squared L2 sensitivity 2 under noise of variance s is (2 / 2s)-zCDP.
    """

    needs_delta = True
    grows_by_root = True
    cost_of_two = 2
    guarantee = "(ε, δ)-differentially private"
    about_noise = "; it is Gaussian, and needs a delta"

    def check_delta(self, delta: Fraction, rows: int) -> None:
        if not 0 < delta < Fraction(1, rows):
            raise PlanError(
                f"delta is {delta}: with zcdp, delta must be positive and below 1/{rows}, one over the number of rows; "
                "otherwise whole rows could be published"
            )

    def budget(self, epsilon: Fraction, delta: Fraction) -> Fraction:
        if not 0 < delta < 1:
            raise PlanError(
                f"delta is {delta}: with zcdp, delta must lie between 0 and 1, far below one over the number of rows"
            )
        rho = Fraction(math.floor(largest_rho(epsilon, delta) * _RHO_UNITS), _RHO_UNITS)
        if rho <= 0:
            raise PlanError(f"epsilon {epsilon} with delta {delta} leaves no rho to spend: raise epsilon")
        return rho

    def epsilon_spent(self, budget: Fraction, epsilon: Fraction, delta: Fraction) -> Fraction:
        """The epsilon of the spent rho, rounded up, but not beyond the plan's epsilon unless the exact value is."""
        if not budget:
            return budget
        least = epsilon_of(budget, delta)
        rounded = Fraction(math.ceil(least * _EPSILON_UNITS), _EPSILON_UNITS)
        return epsilon if least <= epsilon < rounded else rounded

    def of_row(self, budget: Fraction, rows: int) -> Fraction:
        return budget / rows**2

    def rate(self, budget: Fraction) -> Fraction:
        return 2 * budget / SENSITIVITY

    def rate_of_number(self, budget: Fraction, change: int) -> Fraction:
        # A number of sensitivity c under noise of variance s is (c^2 / 2s)-zCDP.
        return 2 * budget / change**2

    def draw(self, rate: Fraction, size: int, stream: Stream) -> Vector:
        return discrete_gaussian(1 / rate, size, stream)

    def bound(self, rate: Fraction) -> int:
        return gaussian_bound(1 / rate)

    def variance(self, rate: Fraction) -> float:
        return gaussian_variance(1 / rate)

    def draw_share(self, rate: Fraction, shares: int, size: int, stream: Stream) -> Vector:
        return discrete_gaussian(share_variance(rate, shares), size, stream)

    def share_bound(self, rate: Fraction, shares: int) -> int:
        return gaussian_bound(share_variance(rate, shares))

    def share_variance(self, rate: Fraction, shares: int) -> float:
        return gaussian_variance(share_variance(rate, shares))

    def mean_size(self, variance: float) -> float:
        return math.sqrt(2 * variance / math.pi)

    def choice_epsilon(self, budget: Fraction, mechanism: Choice) -> Fraction:
        # The exponential mechanism's privacy loss has a range of epsilon. Permute-and-flip's loss is at most epsilon.
        return root_below(budget * (8 if mechanism == "exponential" else 2))

    def useful_cells(self, rows: int, tables: int, budget: Fraction, theta: Fraction) -> int:
        # The noise of one table is sqrt(2 tables / (pi rho)) on average; 157/100 stands for pi/2.
        square = rows**2 * budget * Fraction(157, 100) / (tables * theta**2)
        return math.isqrt(int(square))


PURE, ZCDP = PurePrivacy(), ConcentratedPrivacy()
DEFINITIONS: dict[Privacy, PrivacyDefinition] = {"pure": PURE, "zcdp": ZCDP}
assert tuple(DEFINITIONS) == get_args(Privacy)
