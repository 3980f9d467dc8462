"""Which noise a table's share of the budget buys: discrete Laplace for pure privacy, discrete Gaussian for zCDP.

It does not know passes, phases or who adds the noise; `privacy.md` and `zcdp.md` hold the arguments.

A budget is an epsilon or a rho. A `rate` says how narrow the noise is: alpha for Laplace, 1 / variance for Gaussian.
"""

import math
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from crypto.randomness import Stream
from crypto.sampling.gaussian import discrete_gaussian, gaussian_bound, gaussian_variance
from crypto.sampling.laplace import discrete_laplace, laplace_bound, laplace_variance, polya_bound, polya_share
from protocol.options import Choice, Privacy
from protocol.privacy.zcdp import root_below, share_variance

Vector = NDArray[np.int64]

# Privacy: bounded neighbours. Changing one row's values takes one count down and another up (SPEC section 1).
SENSITIVITY = 2  # in L1; and the square of the sensitivity in L2


class NoiseLaw(Protocol):
    def rate(self, budget: Fraction) -> Fraction:
        """Of the noise that makes one table private at this budget."""
        ...

    def draw(self, rate: Fraction, size: int, stream: Stream) -> Vector:
        """A full share of noise for every cell."""
        ...

    def bound(self, rate: Fraction) -> int: ...

    def variance(self, rate: Fraction) -> float: ...

    def draw_share(self, rate: Fraction, shares: int, size: int, stream: Stream) -> Vector:
        """One of `shares` that together are as good as a full one."""
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
        """The most cells whose average count is theta times the mean size of the noise, if so many tables share it."""
        ...


class Laplace:
    """The budget is an epsilon."""

    def rate(self, budget: Fraction) -> Fraction:
        return budget / SENSITIVITY

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


class Gaussian:
    """The budget is a rho. One table of squared L2 sensitivity 2 under variance s is (2 / 2s)-zCDP."""

    def rate(self, budget: Fraction) -> Fraction:
        return 2 * budget / SENSITIVITY

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
        # The exponential mechanism's privacy loss has a range of epsilon, permute-and-flip's is at most epsilon.
        return root_below(budget * (8 if mechanism == "exponential" else 2))

    def useful_cells(self, rows: int, tables: int, budget: Fraction, theta: Fraction) -> int:
        # The noise of one table is sqrt(2 tables / (pi rho)) on average; 157/100 stands for pi/2.
        square = rows**2 * budget * Fraction(157, 100) / (tables * theta**2)
        return math.isqrt(int(square))


LAPLACE, GAUSSIAN = Laplace(), Gaussian()
LAWS: dict[Privacy, NoiseLaw] = {"pure": LAPLACE, "zcdp": GAUSSIAN}
