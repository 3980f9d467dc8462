"""Mean, standard deviation and quartiles of every number and date, each with the range that holds the true one.

They follow from released counts alone: many rows of counts that may be the true ones, given the noise, and many ways in
which values may lie inside bins. It does not know files, HTML or any row.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crypto.randomness import Stream
from protocol.model.ordered_counts import DRAWS, normal_numbers, possible_counts
from protocol.tables.attributes import Moment, Numeric, Ranged
from protocol.tables.domain import Variable
from protocol.tables.kinds.slopes import places, slopes_beside
from protocol.tables.marginal import Table

Json = dict[str, Any]
Array = NDArray[np.float64]
FIGURES = ("mean", "standard deviation", "quartiles")
_QUARTILES = (0.25, 0.5, 0.75)
# Wider than 95 %: runs of counts fit real counts only nearly (measured by tests/benchmarks/numbers.py).
_BAND = (0.01, 0.99)
_MEAN_WITHIN = 0.1  # standard deviations: an error that a comparison of means can live with
_DEVIATION_WITHIN = 0.1  # of itself
_QUARTILE_WITHIN = 0.1  # of the distance between the first and the third
_FLAT = 1e-3
_DAY = 86_400  # seconds


def number_figures(attribute: Ranged, drawn: NDArray[Any], estimate: Table | None, rows: int) -> Json:
    """Return the figures of one number or date. `drawn` counts the published rows, `estimate` has the noisy counts."""
    writing = _Writing.of(attribute)
    published = _Bins.of(attribute, drawn[: attribute.categories].astype(np.float64)).figures()
    told = {"attribute": attribute.name, "unit": writing.unit}
    if estimate is None or published is None:
        return told | {"figures": None, "good_for": []}
    variable = Variable(attribute.name, attribute.size, 0, ordered=attribute.categories)
    draws = possible_counts(estimate, variable, rows)[:, : attribute.categories]
    stream = Stream.keyed(b"values in bins")
    doubts = normal_numbers(stream, DRAWS, attribute.categories)
    possible = [_Bins.of(attribute, counts, doubt).figures() for counts, doubt in zip(draws, doubts, strict=True)]
    ranges = np.quantile([one for one in possible if one is not None], _BAND, axis=0, method="nearest")
    errors = np.max(np.abs(ranges - published), axis=0)
    names = ("mean", "deviation", "first_quartile", "median", "third_quartile")
    figures = {
        name: {"value": write(value), "low": write(low), "high": write(high), "error": writing.size(error)}
        for name, write, value, low, high, error in zip(
            names, writing.writers, published, ranges[0], ranges[1], errors, strict=True
        )
    }
    return told | {"figures": figures, "good_for": _good_for(published, errors)}


def _good_for(published: Array, errors: Array) -> list[str]:
    """Name the figures whose error allows their use."""
    deviation, between = published[1], published[4] - published[2]
    allowed = (
        errors[0] <= _MEAN_WITHIN * deviation,
        errors[1] <= _DEVIATION_WITHIN * deviation,
        max(errors[2:]) <= _QUARTILE_WITHIN * between,
    )
    return [name for name, is_allowed in zip(FIGURES, allowed, strict=True) if is_allowed]


@dataclass(frozen=True, eq=False)
class _Bins:
    """Shares of bins, and how values lie in them: numbers of the attribute's grid."""

    shares: Array
    first: Array
    held: Array
    rises: Array  # of the density's logarithm over a bin

    @classmethod
    def of(cls, attribute: Ranged, counts: Array, doubt: Array | float = 0.0) -> "_Bins":
        """Take the slopes that neighbours suggest, and as many of the differences between them as `doubt` says."""
        first, held = (np.array(one, np.float64) for one in attribute.grid)
        rises, apart = slopes_beside(counts, held)
        slanting = np.where(held > 1, rises + doubt * apart, 0.0)  # a bin of one value has no inside
        return cls(counts / max(counts.sum(), 1e-9), first, held, slanting)

    def figures(self) -> Array | None:
        """Mean, standard deviation and quartiles, in numbers of the grid; None without rows."""
        if not self.shares.any():
            return None
        centres, spreads = _moments(self.rises)
        # The values of a bin are whole numbers: the mean of h of them from 0 on is (h - 1) / 2.
        means = self.first + self.held * centres - 0.5
        inside = np.maximum(self.held**2 * spreads - 1 / 12, 0.0)
        mean = self.shares @ means
        variance = self.shares @ ((means - mean) ** 2 + inside)
        return np.array([mean, np.sqrt(variance), *map(self._quantile, _QUARTILES)])

    @cached_property
    def _sums(self) -> Array:
        return np.asarray(np.cumsum(self.shares))

    def _quantile(self, share: float) -> float:
        place = min(int(np.searchsorted(self._sums, share)), int(np.flatnonzero(self.shares)[-1]))
        before = self._sums[place] - self.shares[place]
        share_inside = np.clip([(share - before) / self.shares[place]], 0.0, 1.0)
        inside = places(share_inside, np.array([place]), self.rises)[0]
        return float(self.first[place] + min(np.floor(inside * self.held[place]), self.held[place] - 1))


def _moments(rises: Array) -> tuple[Array, Array]:
    """Mean and variance of a place between 0 and 1 whose density's logarithm rises so much from end to end."""
    steep = np.where(np.abs(rises) > _FLAT, rises, 1.0)
    mean = -1 / np.expm1(-steep) - 1 / steep
    variance = 1 / steep**2 - 1 / (4 * np.sinh(np.clip(steep / 2, -300, 300)) ** 2)
    is_flat = np.abs(rises) <= _FLAT
    return np.where(is_flat, 0.5 + rises / 12, mean), np.where(is_flat, 1 / 12, variance)


@dataclass(frozen=True)
class _Writing:
    """How figures in numbers of the grid are written: values, and distances between values."""

    unit: str
    value: Callable[[float], Any]
    size: Callable[[float], float]

    @classmethod
    def of(cls, attribute: Ranged) -> "_Writing":
        if isinstance(attribute, Moment):
            unit, seconds = ("days", _DAY) if attribute.tick == _DAY else ("hours", 3600)
            return cls(
                unit,
                lambda number: attribute.written_value(round(number)),
                lambda number: _short(number * attribute.tick / seconds),
            )
        assert isinstance(attribute, Numeric)
        spacing = float(attribute.spacing)
        return cls(attribute.unit, lambda number: _short(number * spacing), lambda number: _short(number * spacing))

    @property
    def writers(self) -> Sequence[Callable[[float], Any]]:
        return (self.value, self.size, self.value, self.value, self.value)


def _short(value: float) -> float:
    return float(f"{value:.6g}")
