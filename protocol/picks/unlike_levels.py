"""Distance of a party's tables of pairs from reference tables, whatever the levels of both attributes are.

It does not know rows, noise or budgets: `protocol.picks.by_model` scores pairs by it, and `scores.md` has the argument.

The levels of an attribute are the shares of its categories. Parties differ in them without any error of the model, so a
reference that differs in levels alone has to count as near. With the reference's levels a and b, a shift of levels
changes the reference by g b' + a h' to first order, for any vectors g and h. The distance is the least over all such
shifts, so it is a distance from a fixed set of tables: one changed row moves it no further than any such distance.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_TOLERANCE = 1 / 256  # rows; how far a distance may lie from the least one
_OF_ALL_ROWS = 2.0**-26  # this share of all rows, where it is more
_STEPS = 500  # of the search; it ends after 3 to 40
_WIDE, _NARROWING = 16, 2  # the blur begins so wide that Newton's steps are good, and narrows with every step
_CELLS_AT_ONCE = 1 << 19
_PARTS = (1.0, 0.3, 0.1, 0.03, 0.01)  # of Newton's step, which is too long far from the end
_RIDGE = 1e-13  # of the mean curvature: shifts along which nothing changes stay where they are


def tolerance(rows: int) -> float:
    """How far, in rows, a distance may lie from the least one: a public number."""
    return max(_TOLERANCE, rows * _OF_ALL_ROWS)


def distances(
    differences: Sequence[Array], levels: Sequence[tuple[Array, Array]], blurs: Sequence[Array], allowed: float
) -> Array:
    """Return for every pair the least sum over all cells of sqrt(d^2 + blur^2) - blur, to within `allowed`.

    d is the cell's difference from the reference, in rows, after a shift of levels. The blur says how large a
    difference chance makes: smaller ones count quadratically, so little.
    """
    found = np.zeros(len(differences))
    for places in _alike(differences):
        turned = differences[places[0]].shape[0] < differences[places[0]].shape[1]
        axes = (1, 0) if turned else (0, 1)
        one, other = ([levels[place][axis] for place in places] for axis in axes)
        difference, blur = (np.stack([each[p].transpose(axes) for p in places]) for each in (differences, blurs))
        found[places] = _Search(difference, blur, np.stack(one), np.stack(other)).run(allowed)
    return found


def _alike(differences: Sequence[Array]) -> Iterator[list[int]]:
    """The places of tables of one shape, few enough at a time to stay in the cache."""
    by_shape: dict[tuple[int, ...], list[int]] = {}
    for place, table in enumerate(differences):
        by_shape.setdefault(table.shape, []).append(place)
    for shape, places in by_shape.items():
        step = max(1, _CELLS_AT_ONCE // math.prod(shape))
        yield from (places[start : start + step] for start in range(0, len(places), step))


@dataclass(eq=False)
class _Search:
    """The search for the best shifts of several tables of one shape, with at least as many rows as columns."""

    difference: Array
    blur: Array
    first: Array  # levels of the attribute of the rows
    second: Array  # and of the columns

    def run(self, allowed: float) -> Array:
        found, open_, search = np.zeros(len(self.difference)), np.arange(len(self.difference)), self
        left, wider = self.difference, self._wider()
        for _ in range(_STEPS):
            bounds = search._bounds(left)
            done = bounds[1] - bounds[0] <= allowed
            found[open_[done]] = bounds.mean(axis=0)[done]
            if done.all():
                return found
            search, open_, wider = search._only(~done), open_[~done], np.maximum(1.0, wider[~done] / _NARROWING)
            left = search._with_blur(wider)._step(left[~done])
        raise ArithmeticError("the search for the nearest levels did not end")

    def _wider(self) -> Array:
        """How much wider than its blur each table's largest difference is: where the search begins."""
        return np.asarray(np.maximum(1.0, (np.abs(self.difference) / self.blur).max(axis=(1, 2)) / _WIDE))

    def _with_blur(self, times: Array) -> "_Search":
        return replace(self, blur=self.blur * times[:, None, None])

    def _only(self, kept: NDArray[np.bool_]) -> "_Search":
        return _Search(self.difference[kept], self.blur[kept], self.first[kept], self.second[kept])

    def _size(self, left: Array) -> Array:
        return np.asarray((np.hypot(left, self.blur) - self.blur).sum(axis=(1, 2)))

    def _bounds(self, left: Array) -> Array:
        """Lower and upper bounds of the least size: the dual value of the slopes, freed of levels, and the size now."""
        slopes = left / np.hypot(left, self.blur)
        by_row = (slopes * self.second[:, None, :]).sum(axis=2)
        by_column = (slopes * self.first[:, :, None]).sum(axis=1)
        both = (by_row * self.first).sum(axis=1)
        slopes = slopes - by_row[:, :, None] - by_column[:, None, :] + both[:, None, None]
        slopes /= np.maximum(1.0, np.abs(slopes).max(axis=(1, 2)))[:, None, None]
        dual = slopes * self.difference - self.blur * (1 - np.sqrt(1 - slopes**2))
        return np.stack([dual.sum(axis=(1, 2)), self._size(left)])

    def _step(self, left: Array) -> Array:
        """The best of several steps: parts of Newton's, and the step that always gains (iterated weights)."""
        length = np.hypot(left, self.blur)
        best = self._shifted(left, left / length, 1 / length)
        least = self._size(best)
        newton = self._shifted(left, left / length, self.blur**2 / length**3)
        for part in _PARTS:
            tried = left + part * (newton - left)
            size = self._size(tried)
            better = size < least
            best[better], least[better] = tried[better], size[better]
            if better.all():
                break
        return best

    def _shifted(self, left: Array, slopes: Array, curvature: Array) -> Array:
        """The differences after the shift that is best for a quadratic function of these slopes and curvatures."""
        first, second = self.first[:, :, None], self.second[:, None, :]
        rows, columns = (curvature * second**2).sum(axis=2), (curvature * first**2).sum(axis=1)
        crossed = curvature * first * second
        by_row, by_column = (slopes * second).sum(axis=2), (slopes * first).sum(axis=1)
        rows += _RIDGE * rows.mean(axis=1, keepdims=True)
        weighted = crossed / rows[:, :, None]
        system = -np.einsum("mij,mik->mjk", crossed, weighted)
        diagonal = np.arange(columns.shape[1])
        system[:, diagonal, diagonal] += columns * (1 + _RIDGE) + _RIDGE * columns.mean(axis=1, keepdims=True)
        target = by_column - np.einsum("mij,mi->mj", weighted, by_row)
        shift_second = np.linalg.solve(system, target[:, :, None])[:, :, 0]
        shift_first = (by_row - np.einsum("mij,mj->mi", crossed, shift_second)) / rows
        return np.asarray(left - shift_first[:, :, None] * second - first * shift_second[:, None, :])
