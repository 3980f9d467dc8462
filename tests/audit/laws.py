"""The exact laws of the noise that an attacker does not know, and what they allow between neighbouring tables.

It does not know how noise is drawn: the laws follow from docs/protocol.md alone. Likelihoods are computed in floating
point from sums of positive terms, so that each is right to about one part in 10^12.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from protocol.privacy.zcdp import share_variance

_CUT = 2.0**-128  # outcomes that are rarer together than this are left out, as the samplers cut them off
_TAIL = 180  # laws reach twice as far as that, so that nothing is missing where two of them are added
_PRECISION = 1e-10

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Noise:
    """A symmetric law on the integers -reach .. reach."""

    pmf: Values

    @property
    def reach(self) -> int:
        return self.pmf.size // 2

    def __add__(self, other: "Noise") -> "Noise":
        return Noise(np.convolve(self.pmf, other.pmf))  # a direct sum of positive terms, not a Fourier transform

    def loss(self, seen: NDArray[np.int64], rows: int = 1) -> Values:
        """The logarithm of P(seen | count `rows`) / P(seen | count 0)."""
        with np.errstate(divide="ignore"):
            logs = np.log(np.concatenate([[0.0], self.pmf, [0.0]]))
        last = logs.size - 1
        return logs[np.clip(seen + self.reach + 1 - rows, 0, last)] - logs[np.clip(seen + self.reach + 1, 0, last)]

    def table_losses(self, rows: int = 1) -> tuple[Values, Values]:
        """Losses and chances of a table in which `rows` rows moved together from one count to another.

        Outcomes beyond the samplers' bounds are left out. Their loss is infinite, and their chance below 2^-125.
        """
        far = int(np.searchsorted(self.pmf.cumsum(), _CUT))
        places = np.arange(far + rows, self.pmf.size - far)
        one, zero = self.pmf[places - rows], self.pmf[places]
        up = np.log(one) - np.log(zero)
        return np.add.outer(up, up[::-1]).ravel(), np.multiply.outer(one, one[::-1]).ravel()


def laplace(alpha: Fraction) -> Noise:
    reach = int(_TAIL / alpha) + 1
    return Noise(np.tanh(float(alpha) / 2) * np.exp(-float(alpha) * np.abs(np.arange(-reach, reach + 1))))


def polya(alpha: Fraction, shape: Fraction) -> Noise:
    """The difference of two negative binomials of this shape; parts of a share add their shapes up."""
    reach, q = int(_TAIL / alpha) + 1, np.exp(-float(alpha))
    steps = np.arange(reach)
    one = np.concatenate([[1.0], np.cumprod(q * (steps + float(shape)) / (steps + 1))]) * (1 - q) ** float(shape)
    return Noise(np.convolve(one, one[::-1]))


def gaussian(variance: Fraction) -> Noise:
    reach = int((2 * _TAIL * float(variance)) ** 0.5) + 1
    weights = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * float(variance)))
    return Noise(weights / weights.sum())


def shares(privacy: str, noise: str, rate: Fraction, parties: int, enough: int) -> Noise:
    """The noise of so many parties in a noise mode; in `distributed`, `enough` of them add up to a full share."""
    if noise == "distributed" and privacy == "pure":
        return polya(rate, Fraction(parties, enough))
    one = (
        laplace(rate) if privacy == "pure" else gaussian(share_variance(rate, enough if noise == "distributed" else 1))
    )
    return reduce(lambda total, _: total + one, range(parties - 1), one)


def spent(losses: Values, chances: Values, delta: float) -> float:
    """The least epsilon for which these losses are (epsilon, delta)-private, exactly but for rounding."""
    if not delta:
        return float(losses.max(initial=0.0))
    low, high = 0.0, float(losses.max(initial=0.0))
    while high - low > _PRECISION:
        middle = (low + high) / 2
        beyond = losses > middle
        missed = (chances[beyond] * -np.expm1(middle - losses[beyond])).sum()
        low, high = (middle, high) if missed > delta else (low, middle)
    return low
