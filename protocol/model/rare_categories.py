"""Merging of categories whose noisy counts do not rise above the noise, and spreading of rows over them at the end.

It does not know how a model is fitted or drawn from.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crypto.randomness import Stream
from protocol.model.junction_tree import Array
from protocol.model.ordered_counts import middle, possible_counts
from protocol.model.systematic_sampling import cumulative_shares, systematic
from protocol.tables.domain import Domain, Merged
from protocol.tables.marginal import Table, nonnegative

Groups = NDArray[np.intp]
# A category's count must exceed both multiples (found on Adult): of its own deviation, and of later cells' mean noise.
_OWN_DEVIATIONS = 1.0
_CELLS_NOISE = 2.5
_ONE_DEVIATION = (0.1587, 0.8413)  # between these quantiles lie two deviations of a normal variable
_LEAST_DEVIATION = 1.0  # row
_LEAST_ORDERED = 12  # of fewer categories noise can fill too few to move a figure far, and each tells more by itself


@dataclass(frozen=True, eq=False)
class Merging:
    """For every variable, the merged code of each code, and the weights that spread a merged code over its codes.

    The weights of a variable that was counted are its estimated counts.
    """

    groups: tuple[Groups, ...]
    weights: tuple[Array, ...]
    draws: Mapping[int, Array]  # of an ordered variable that was counted: counts that may be the true ones

    @classmethod
    def of(cls, domain: Domain, single: Mapping[int, Table], total: float) -> "Merging":
        """Estimate weights from noisy tables of single variables. Without a table, all codes weigh alike."""
        coarsest = [domain.variables[v] for v in domain.coarsest(range(domain.count))]
        groups = [range(variable.size) if variable.groups is None else variable.groups for variable in coarsest]
        variables = domain.variables
        draws = {v: possible_counts(own, variables[v], total) for v, own in single.items() if _has_order(domain, v)}
        return cls(
            tuple(np.array(own, dtype=np.intp) for own in groups),
            tuple(
                middle(draws[v], variables[v].ordered) if v in draws else _weights(size, single.get(v), total)
                for v, size in enumerate(domain.sizes[: domain.count])
            ),
            draws,
        )

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(int(own.max()) + 1 for own in self.groups)

    def smoothed(self, variable: int) -> tuple[Table, Array]:
        """The estimated counts of an ordered variable's merged codes, and the variance of every cell."""
        inside = self.groups[variable] == np.arange(self.sizes[variable])[:, None]
        lower, upper = np.quantile(self.draws[variable] @ inside.T, _ONE_DEVIATION, axis=0)
        variances = np.maximum((upper - lower) / 2, _LEAST_DEVIATION) ** 2
        return Table((variable,), inside @ self.weights[variable]), variances

    def merge(self, table: Table) -> tuple[Table, Array]:
        """A single variable's table over merged codes, and the variance of every cell."""
        (variable,) = table.variables
        counts, codes = np.zeros(self.sizes[variable]), np.zeros(self.sizes[variable])
        np.add.at(counts, self.groups[variable], table.counts)
        np.add.at(codes, self.groups[variable], 1.0)
        return Table(table.variables, counts, table.variance), codes * table.variance

    def spread(self, columns: Sequence[Groups], stream: Stream) -> list[Groups]:
        """Turn columns of merged codes into columns of codes."""
        return [self._spread(variable, column, stream) for variable, column in enumerate(columns)]

    def _spread(self, variable: int, column: Groups, stream: Stream) -> Groups:
        groups = self.groups[variable]
        if self.sizes[variable] == len(groups):
            return column
        inside = groups[None, :] == np.arange(self.sizes[variable])[:, None]
        return systematic(cumulative_shares(inside * self.weights[variable]), column, stream)


def merged_by(tables: Sequence[Table], noise: float) -> tuple[Merged, ...]:
    """Merge the categories that noise hides, for variables that were counted alone.

    `noise` is the mean absolute noise in a cell of the later tables over several variables.
    """
    found = ((table.variables[0], _groups(table, noise)) for table in tables if len(table.variables) == 1)
    return tuple((variable, groups) for variable, groups in sorted(found) if max(groups) + 1 < len(groups))


def least_visible(variance: float, noise: float) -> float:
    """The smallest count of a category that noise does not hide; `variance` is that of its count."""
    return max(_OWN_DEVIATIONS * math.sqrt(variance), _CELLS_NOISE * noise)


def spread_table(table: Table, domain: Domain, merging: Merging) -> Table:
    """Convert a table over merged variables into a table over the plan's variables.

    Its variance is scaled as if the noise were spread evenly over all cells.
    """
    counts = np.asarray(table.counts, dtype=np.float64)
    for axis, variable in enumerate(map(domain.base, table.variables)):
        groups, weights = merging.groups[variable], merging.weights[variable]
        whole = np.bincount(groups, weights)[groups]
        alike = 1 / np.bincount(groups)[groups]
        shares = np.divide(weights, whole, out=alike, where=whole > 0)
        shape = [-1 if other == axis else 1 for other in range(counts.ndim)]
        counts = counts.take(groups, axis=axis) * shares.reshape(shape)
    variables = tuple(map(domain.base, table.variables))
    return Table(variables, counts, table.variance * (table.counts.size / counts.size) ** 2)


def _groups(table: Table, noise: float) -> tuple[int, ...]:
    """The merged code of each code: supported codes first, in order, then one code for all others, if at least two."""
    size = len(table.counts)
    weak = table.counts < least_visible(table.variance, noise)
    if size == 2 or weak.sum() < 2 or weak.all():
        return tuple(range(size))
    return tuple(np.where(weak, (~weak).sum(), np.cumsum(~weak) - 1).tolist())


def _weights(size: int, table: Table | None, total: float) -> Array:
    return np.ones(size) if table is None else nonnegative(table, total)


def _has_order(domain: Domain, variable: int) -> bool:
    return domain.variables[variable].ordered >= _LEAST_ORDERED
