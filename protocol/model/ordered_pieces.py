"""Evidence that noisy counts of ordered categories hold for runs of neighbours whose counts rise or fall steadily.

It does not know how runs make up a whole range (`protocol.model.ordered_counts`). `ordered.md` has the argument.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

Array = NDArray[np.float64]
Fall = tuple[float, float]  # rate and bend

# At distance i from a run's largest count, the logarithm of counts has fallen by rate i + bend i^2 / 2.
_RATES = (0.0, *(0.02 * 2.0 ** np.arange(8)))
_BENDS = (0.0, 0.02, 0.06, 0.2, 0.6)
_FALLS: tuple[Fall, ...] = tuple(product(_RATES, _BENDS))
_SHAPES: tuple[tuple[Fall, bool], ...] = (
    *((fall, False) for fall in _FALLS),
    *((fall, True) for fall in _FALLS),
)  # falling, and rising
_NOBODY = 0.5  # probability beforehand that a run is empty
_LONGER = 1.15  # ratio of the lengths of long runs that are weighed
_STEP = 4.0  # ratio of the mean counts that are weighed
_GRID = np.linspace(-5.0, 5.0, 65)  # of counts around the likeliest, in standard deviations
# The logarithm of the complementary error function, as a polynomial with a relative error of 1.2e-7 (Press et al.)
_ERFC = (
    -1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398, 1.48851587, -0.82215223,
    0.17087277,
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Pieces:
    """All runs of categories, by first category and length, with the evidence for each.

    A run is empty, or its counts fall from its first or rise to its last, steadily or as a bell does. How large its
    largest count is beforehand is exponentially distributed, with a mean between one row and all rows.
    """

    counts: Array
    weights: Array  # 1 / variance
    total: float

    @cached_property
    def lengths(self) -> NDArray[np.intp]:
        found, length = [], 1
        while length < len(self.counts):
            found.append(length)
            length = max(length + 1, int(length * _LONGER))
        return np.array([*found, len(self.counts)])

    @cached_property
    def fits(self) -> NDArray[np.bool_]:
        """Whether a run of each length fits behind each first category."""
        count = len(self.counts)
        return np.arange(count)[:, None] + self.lengths <= count

    @cached_property
    def evidence(self) -> Array:
        """The logarithm of the counts' likelihood for every run, divided by that of an empty run."""
        found = np.full(self.fits.shape, np.log(_NOBODY))
        for dots, squares in zip(*self._moments, strict=True):
            found = np.logaddexp(found, np.logaddexp.reduce(self._likelihoods(dots, squares), axis=-1))
        return np.where(self.fits, found, -np.inf)

    def draw(self, first: int, place: int, uniforms: Array) -> Array:
        """Draw counts of the run with this first category and place among the lengths, given the noisy counts.

        There is a row for each row of `uniforms`, which holds two uniform numbers.
        """
        dots, squares = (one[:, first, place] for one in self._moments)
        kinds = self._likelihoods(dots, squares).ravel()
        chances = np.cumsum(np.exp(np.append(np.log(_NOBODY), kinds) - self.evidence[first, place]))
        chosen = np.searchsorted(chances[:-1], uniforms[:, 0] * chances[-1]) - 1
        shape, mean = np.divmod(np.maximum(chosen, 0), len(self._means))
        likeliest = (dots[shape] - 1 / self._means[mean]) / squares[shape]
        largest = np.where(chosen < 0, 0.0, _above_zero(likeliest, 1 / np.sqrt(squares[shape]), uniforms[:, 1]))
        used, which = np.unique(shape, return_inverse=True)
        shapes = np.array([_shape(*_SHAPES[int(one)], int(self.lengths[place])) for one in used])
        return np.asarray(largest[:, None] * shapes[which])

    @cached_property
    def _means(self) -> Array:
        """The largest counts that are expected beforehand."""
        return np.asarray(self.total / _STEP ** np.arange(1 + int(np.log(max(self.total, 1.0)) / np.log(_STEP))))

    @cached_property
    def _moments(self) -> tuple[Array, Array]:
        """For every shape and run: the weighted products of its shape with the counts, and with itself."""
        found = [self._products(*one) for one in _SHAPES]
        return np.stack([dots for dots, _ in found]), np.stack([squares for _, squares in found])

    def _products(self, fall: Fall, rising: bool) -> tuple[Array, Array]:
        weights, weighted = self.weights, self.weights * self.counts
        if rising:
            weights, weighted = weights[::-1], weighted[::-1]
        shape = _shape(fall, False, len(weights))
        dots, squares = self._sums(weighted, shape), self._sums(weights, shape**2)
        return (self._mirrored(dots), self._mirrored(squares)) if rising else (dots, squares)

    def _sums(self, values: Array, shape: Array) -> Array:
        """The products of a shape with the values from every first category on, for every length."""
        windows = sliding_window_view(np.concatenate([values, np.zeros(len(values) - 1)]), len(values))
        return np.asarray(np.cumsum(windows * shape, axis=1)[:, self.lengths - 1])

    def _mirrored(self, sums: Array) -> Array:
        """Turn sums by the last category of a run, counted from the end, into sums by its first category."""
        firsts = len(self.counts) - np.arange(len(self.counts))[:, None] - self.lengths
        return np.where(self.fits, np.take_along_axis(sums, np.maximum(firsts, 0), axis=0), 1.0)

    def _likelihoods(self, dots: Array, squares: Array) -> Array:
        """Integrate over a run's largest count, for each mean that is expected of it."""
        deviation = (1 / np.sqrt(squares))[..., None]
        above = (dots[..., None] - 1 / self._means) * deviation
        known = above**2 / 2 + log_normal(above) + np.log(deviation * np.sqrt(2 * np.pi) / self._means)
        return np.asarray(known + np.log((1 - _NOBODY) / (len(_SHAPES) * len(self._means))))


def log_normal(value: Array) -> Array:
    """The logarithm of the probability that a standard normal variable lies below a value."""
    size = np.abs(value) / np.sqrt(2)
    inverse = 1 / (1 + size / 2)
    beyond = np.log(inverse / 2) - size**2 + np.polynomial.polynomial.polyval(inverse, _ERFC)
    return np.asarray(np.where(value < 0, beyond, np.log1p(-np.exp(np.minimum(beyond, -np.log(2))))))


def _shape(fall: Fall, rising: bool, length: int) -> Array:
    rate, bend = fall
    distance = np.arange(length)
    falling = np.exp(-rate * distance - bend * distance**2 / 2)
    return np.asarray(falling[::-1] if rising else falling)


def _above_zero(likeliest: Array, deviation: Array, uniforms: Array) -> Array:
    """Invert the distribution of normal variables that are known to lie above zero, on a grid."""
    start = np.maximum(likeliest - 5 * deviation, 0.0)
    grid = start[:, None] + (np.maximum(likeliest, 0.0) + 5 * deviation - start)[:, None] * (_GRID + 5) / 10
    logarithms = -(((grid - likeliest[:, None]) / deviation[:, None]) ** 2) / 2
    density = np.exp(logarithms - logarithms.max(axis=1, keepdims=True))
    summed = np.cumsum(density, axis=1)
    places = (summed[:, :-1] < (uniforms * summed[:, -1])[:, None]).sum(axis=1)
    return np.asarray(grid[np.arange(len(grid)), places])
