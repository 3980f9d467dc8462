"""Merging: categories whose noisy counts do not rise above the noise are modelled as one, and spread again at the end.

It does not know how a model is fitted or drawn from.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crypto.randomness import Stream
from protocol.drawing import cumulative_shares, systematic
from protocol.junction import Array
from protocol.marginal import Table, project_to_simplex

Groups = NDArray[np.intp]
_SUPPORT = 3.0  # standard deviations of noise that a category's count has to rise above


@dataclass(frozen=True, eq=False)
class Merging:
    """For every variable the merged code of every code, and how a merged code is spread over its codes."""

    groups: tuple[Groups, ...]
    weights: tuple[Array, ...]

    @classmethod
    def of(cls, sizes: Sequence[int], single: Mapping[int, Table], total: float) -> "Merging":
        """From noisy tables of single variables; a variable without one stays as it is."""
        groups = tuple(_groups(size, single.get(v)) for v, size in enumerate(sizes))
        weights = tuple(_weights(size, single.get(v), total) for v, size in enumerate(sizes))
        return cls(groups, weights)

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(int(own.max()) + 1 for own in self.groups)

    def merge(self, table: Table) -> tuple[Table, Array]:
        """The table over merged codes, and the variance of every cell: that of as many cells as it was added up of."""
        counts, cells = np.asarray(table.counts, dtype=np.float64), np.ones(table.counts.shape)
        for axis, variable in enumerate(table.variables):
            counts, cells = self._along(counts, axis, variable), self._along(cells, axis, variable)
        return Table(table.variables, counts, table.variance), cells * table.variance

    def spread(self, columns: Sequence[Groups], stream: Stream) -> list[Groups]:
        """Codes from merged codes."""
        return [self._spread(variable, column, stream) for variable, column in enumerate(columns)]

    def _along(self, values: Array, axis: int, variable: int) -> Array:
        moved = np.moveaxis(values, axis, 0)
        merged = np.zeros((self.sizes[variable], *moved.shape[1:]))
        np.add.at(merged, self.groups[variable], moved)
        return np.moveaxis(merged, 0, axis)

    def _spread(self, variable: int, column: Groups, stream: Stream) -> Groups:
        groups = self.groups[variable]
        if self.sizes[variable] == len(groups):
            return column
        inside = groups[None, :] == np.arange(self.sizes[variable])[:, None]
        return systematic(cumulative_shares(inside * self.weights[variable]), column, stream)


def _groups(size: int, table: Table | None) -> Groups:
    """Supported codes first, in their order; then one merged code for all others, if there are at least two."""
    alone = np.arange(size)
    if table is None or size == 2:
        return alone
    weak = table.counts < _SUPPORT * np.sqrt(table.variance)
    if weak.sum() < 2 or weak.all():
        return alone
    return np.where(weak, (~weak).sum(), np.cumsum(~weak) - 1)


def _weights(size: int, table: Table | None, total: float) -> Array:
    return np.ones(size) if table is None else project_to_simplex(table.counts, total)
