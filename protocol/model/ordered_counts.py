"""Counts of ordered categories, estimated from noisy counts: whole rows of counts that fit the noise, and their middle.

It does not know attributes, tables of several variables, or how rows are drawn.

A range of categories is divided into runs of neighbours whose counts fall or rise steadily, or are zero
(`protocol.model.ordered_pieces`). All divisions are weighed by how well they explain the noisy counts. `ordered.md`
has the argument.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from crypto.randomness import Stream
from protocol.model.haar_counts import told_by_halves
from protocol.model.ordered_pieces import Array, Pieces
from protocol.tables.domain import Variable
from protocol.tables.haar import HaarNoise
from protocol.tables.marginal import Table, project_to_simplex

DRAWS = 200
_MOST_CELLS = 256
_LEAST_VARIANCE = 1e-2
_BREAKS = 2.0 ** -np.arange(1, 7)  # probabilities of a new run beside a category that stands out, all equally likely
_STANDS_OUT = 6.0  # standard deviations, which Laplace noise exceeds once in 10,000 times
_HIDDEN = 0.3  # runs that are expected beforehand to begin where nothing stands out
_STRAIGHT = np.sqrt(2)  # standard deviations beyond which noise is as Laplace noise: no longer likelier by squares
_FEW, _FEW_AT_MOST = 10.0, 40  # expected rows below which whole rows are drawn, and the most that are
_ROUNDS = 4  # of making counts add up
_WORD = 2.0**32


def possible_counts(table: Table, variable: Variable, total: float) -> Array:
    """Draw counts that may be the true ones, given a noisy table of one variable: one row for each of `DRAWS` draws.

    All rows are non-negative and add up to `total`. The same table always gives the same draws.
    """
    noisy = tuple(np.asarray(table.counts, np.float64).tolist())
    return _possible_counts(noisy, variable.ordered, max(table.variance, _LEAST_VARIANCE), total, table.noise)


@lru_cache(maxsize=64)  # a run fits its model again after every round, and most tables of one variable stay as they are
def _possible_counts(
    noisy: tuple[float, ...], ordered: int, variance: float, total: float, noise: HaarNoise | None
) -> Array:
    stream, counts = Stream.keyed(b"possible counts"), np.array(noisy)
    cells = -(-ordered // _MOST_CELLS)
    blocks = np.add.reduceat(counts[:ordered], np.arange(0, ordered, cells))
    found = _scattered(_Range(blocks, variance * cells, total).draw(stream), blocks, variance * cells, stream)
    found = np.repeat(found, cells, axis=1)[:, :ordered] * _shares(counts[:ordered], cells)
    strays = np.sqrt(variance) * normal_numbers(stream, DRAWS, len(counts) - ordered)
    draws = _adding_up(np.hstack([found, np.maximum(counts[ordered:] + strays, 0.0)]), variance, total)
    if noise is None:
        return draws
    coefficients = noise.tree.coefficients(counts)
    return told_by_halves(draws, coefficients, noise, normal_numbers(stream, DRAWS, len(coefficients)))


def middle(draws: Array, ordered: int) -> Array:
    """The counts whose sums up to every category lie in the middle of those of all draws."""
    sums = np.median(np.cumsum(draws[:, :ordered], axis=1), axis=0)
    found = np.concatenate([np.diff(sums, prepend=0.0), np.median(draws[:, ordered:], axis=0)])
    return np.asarray(found * (draws[0].sum() / found.sum())) if found.sum() > 0 else draws.mean(axis=0)


@dataclass(frozen=True, eq=False)
class _Range:
    """The posterior distribution over all divisions of a range into runs."""

    counts: Array
    variance: float
    total: float

    def draw(self, stream: Stream) -> Array:
        # Noise of a pure budget strays further than normal noise. What the first fit cannot explain weighs less.
        near = self._between_neighbours()
        for _ in range(2):
            pieces = Pieces(self.counts, self._weights(near), self.total)
            found = _Divisions(pieces, self._chances()).draw(stream)
            near = np.median(found, axis=0)
        return found

    def _between_neighbours(self) -> Array:
        """Each count as far as its neighbours bear it out: between both, or at an end between one and their line."""
        found, counts = self.counts.copy(), self.counts
        if len(counts) < 3:
            return found
        lower, upper = np.sort([counts[:-2], counts[2:]], axis=0)
        found[1:-1] = np.clip(counts[1:-1], lower, upper)
        for end, beside, behind in ((0, 1, 2), (-1, -2, -3)):
            lower, upper = sorted([counts[beside], 2 * counts[beside] - counts[behind]])
            found[end] = np.clip(counts[end], lower, upper)
        return found

    def _weights(self, near: Array) -> Array:
        variance = self.variance + np.maximum(near, 0.0)  # of the noise, and of rows around a steady course
        straight = np.maximum(np.abs(self.counts - near) / np.sqrt(variance), _STRAIGHT)
        return np.asarray(2 * (_STRAIGHT * straight - 1) / straight**2 / variance)

    def _chances(self) -> Array:
        """The probability of a new run before each category, for each entry of `_BREAKS`."""
        out = self.counts > _STANDS_OUT * np.sqrt(self.variance)
        beside = np.concatenate([[False], out[1:] | out[:-1]])
        return np.where(beside[:, None], _BREAKS, np.minimum(_BREAKS, _HIDDEN / len(out)))


@dataclass(frozen=True, eq=False)
class _Divisions:
    pieces: Pieces
    chances: Array  # of a new run before each category

    @cached_property
    def _runs(self) -> Array:
        """The logarithm of a run's evidence with its inner boundaries closed and a new run behind it."""
        count = len(self.chances)
        closed = np.vstack([np.zeros(len(_BREAKS)), np.cumsum(np.log1p(-self.chances), axis=0)])
        opened = np.vstack([np.log(self.chances), np.zeros(len(_BREAKS))])
        first = np.arange(count)[:, None]
        last = np.minimum(first + self.pieces.lengths, count)
        return np.asarray(closed[last] - closed[first + 1] + opened[last] + self.pieces.evidence[..., None])

    @cached_property
    def _behind(self) -> Array:
        """The logarithm of the evidence of all divisions from each category to the end."""
        count, lengths = len(self.chances), self.pieces.lengths
        found = np.zeros((count + 1, len(_BREAKS)))
        for first in reversed(range(count)):
            fitting = int(self.pieces.fits[first].sum())
            found[first] = np.logaddexp.reduce(found[first + lengths[:fitting]] + self._runs[first, :fitting], axis=0)
        return found

    def draw(self, stream: Stream) -> Array:
        count = len(self.chances)
        whole = self._behind[0]
        chances = np.cumsum(np.exp(whole - np.logaddexp.reduce(whole)))
        kinds = np.minimum(np.searchsorted(chances, _uniforms(stream, DRAWS)), len(_BREAKS) - 1)
        found, reached = np.zeros((DRAWS, count)), np.zeros(DRAWS, dtype=np.intp)
        for first in range(count):
            for kind in np.unique(kinds[reached == first]):
                here = np.flatnonzero((reached == first) & (kinds == kind))
                places = self._places(first, kind, _uniforms(stream, len(here)))
                for place in np.unique(places):
                    own, length = here[places == place], self.pieces.lengths[place]
                    uniforms = _uniforms(stream, 2 * len(own)).reshape(-1, 2)
                    found[own, first : first + length] = self.pieces.draw(first, place, uniforms)
                    reached[own] = first + length
        return found

    def _places(self, first: int, kind: int, uniforms: Array) -> NDArray[np.intp]:
        """Draw the lengths of runs from this category on, by their places."""
        fitting = int(self.pieces.fits[first].sum())
        behind = self._behind[first + self.pieces.lengths[:fitting], kind]
        chances = np.cumsum(np.exp(behind + self._runs[first, :fitting, kind] - self._behind[first, kind]))
        return np.minimum(np.searchsorted(chances, uniforms), fitting - 1)


def _scattered(courses: Array, counts: Array, variance: float, stream: Stream) -> Array:
    """Draw whole counts around their courses, as rows fall by chance, and as the noisy counts suggest."""
    found = np.median(courses, axis=0)
    strays = max(float((np.square(counts - found) - variance).sum()) / max(float(found.sum()), 1.0), 1.0)
    told = strays * courses / (strays * courses + variance)
    likely = courses + told * (counts - courses)
    many = np.maximum(likely + np.sqrt(told * variance) * normal_numbers(stream, *courses.shape), 0.0)
    uniforms = _uniforms(stream, courses.size).reshape(courses.shape)
    few, chance = np.zeros(courses.shape), np.exp(-courses)
    below = chance.copy()
    for count in range(1, _FEW_AT_MOST):
        few += uniforms > below
        chance = chance * courses / count
        below += chance
    return np.where((courses < _FEW) & (courses < variance), few, many)


def _shares(counts: Array, cells: int) -> Array:
    """The share of each category in its block of so many categories."""
    found = np.ones(len(counts))
    for first in range(0, len(counts), cells) if cells > 1 else ():
        own = np.asarray(counts[first : first + cells], np.float64)
        found[first : first + cells] = project_to_simplex(own, 1.0 * max(own.sum(), 1.0)) / max(own.sum(), 1.0)
    return found


def _adding_up(draws: Array, variance: float, total: float) -> Array:
    """Spread what lacks from the total: over a category as much as its noise, or its own count, leaves open."""
    for _ in range(_ROUNDS):
        slack = np.minimum(variance, draws**2)
        lacking = total - draws.sum(axis=1, keepdims=True)
        whole = slack.sum(axis=1, keepdims=True)
        draws = np.maximum(draws + np.where(whole > 0, slack / np.where(whole > 0, whole, 1.0) * lacking, 0.0), 0.0)
    sums = draws.sum(axis=1, keepdims=True)
    return np.where(sums > 0, draws / np.where(sums > 0, sums, 1.0) * total, total / draws.shape[1])


def _uniforms(stream: Stream, count: int) -> Array:
    return np.asarray((stream.words32(count) + 0.5) / _WORD)


def normal_numbers(stream: Stream, rows: int, columns: int) -> Array:
    """Draw independent standard normal numbers."""
    radius, angle = _uniforms(stream, 2 * rows * columns).reshape(2, rows, columns)
    return np.asarray(np.sqrt(-2 * np.log(radius)) * np.cos(2 * np.pi * angle))
