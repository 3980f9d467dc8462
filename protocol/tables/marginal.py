"""Marginal tables: counts over a few variables, with the variance of their noise.

It does not know where the counts come from.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protocol.tables.domain import Domain, Variables
from protocol.tables.haar import HaarNoise

_LEAST_VARIANCE = 1e-12


@dataclass(frozen=True, eq=False)
class Table:
    """Counts with one axis per variable, in the order of `variables`; `variance` is the noise variance of one cell."""

    variables: Variables
    counts: NDArray[Any]
    variance: float = 0.0
    noise: HaarNoise | None = None  # of a table of one variable with wavelet noise: `variance` is its mean

    def project(self, onto: Variables, domain: Domain) -> "Table":
        """The table over `onto`, whose variables are variables of this table or generalise them."""
        if onto == self.variables:
            return self
        sources = [self._source(v, domain) for v in onto]
        dropped = tuple(axis for axis in range(len(self.variables)) if axis not in sources)
        counts = self.counts.sum(axis=dropped) if dropped else self.counts
        kept = sorted(sources)
        counts = counts.transpose([kept.index(axis) for axis in sources])
        for axis, (variable, source) in enumerate(zip(onto, sources, strict=True)):
            if variable != self.variables[source]:
                counts = _merge(counts, axis, _groups(domain, self.variables[source], variable), domain.sizes[variable])
        # Where generalising merges cells unevenly, the variance is the average over the cells.
        return Table(onto, counts, self.variance * self.counts.size / counts.size)

    def _source(self, variable: int, domain: Domain) -> int:
        if variable in self.variables:
            return self.variables.index(variable)
        for axis, own in enumerate(self.variables):
            if domain.base(own) == domain.base(variable) and domain.sizes[own] > domain.sizes[variable]:
                return axis
        raise KeyError(f"a table over {self.variables} does not count variable {variable}")

    def covers(self, variables: Variables, domain: Domain) -> bool:
        try:
            sources = [self._source(v, domain) for v in variables]
        except KeyError:
            return False
        return len(set(sources)) == len(sources)


def averaged(tables: Sequence[Table]) -> Table:
    """The average of independent tables of the same variables, weighted by the inverse of their noise's variance."""
    precisions = [1 / max(table.variance, _LEAST_VARIANCE) for table in tables]
    counts = np.average([table.counts for table in tables], axis=0, weights=precisions)
    variance, noise = 1 / sum(precisions), None
    for table, precision in zip(tables, precisions, strict=True):
        if table.noise is not None:
            share = precision * variance
            noise = table.noise.averaged(share, variance * (1 - share))
    return Table(tables[0].variables, counts, variance, noise)


def nonnegative(table: Table, total: float) -> NDArray[np.float64]:
    """Non-negative counts that add up to `total`, without any assumption on their course.

    Counts with independent noise are projected to the simplex, those with wavelet noise clipped at each node.
    """
    if table.noise is None:
        return project_to_simplex(table.counts, total)
    tree = table.noise.tree
    return tree.counts(total, tree.coefficients(np.asarray(table.counts, dtype=np.float64)), is_bounded=True)


def _groups(domain: Domain, fine: int, coarse: int) -> NDArray[np.intp]:
    """The code of `coarse` for every code of `fine`; both are variants of the same base variable."""
    size = domain.sizes[domain.base(fine)]
    fine_groups = domain.variables[fine].groups or tuple(range(size))
    coarse_groups = domain.variables[coarse].groups or tuple(range(size))
    mapping = np.zeros(domain.sizes[fine], dtype=np.intp)
    mapping[list(fine_groups)] = coarse_groups
    return mapping


def _merge(counts: NDArray[Any], axis: int, groups: NDArray[np.intp], size: int) -> NDArray[Any]:
    moved = np.moveaxis(counts, axis, 0)
    merged = np.zeros((size, *moved.shape[1:]), dtype=counts.dtype)
    np.add.at(merged, groups, moved)
    return np.moveaxis(merged, 0, axis)


def project_to_simplex(counts: NDArray[Any], total: float) -> NDArray[np.float64]:
    """The closest table, by Euclidean distance, with non-negative cells that add up to `total`."""
    flat = np.asarray(counts, dtype=np.float64).ravel()
    falling = np.sort(flat)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, flat.size + 1)
    threshold = excess[np.nonzero(falling > excess)[0][-1]] if total > 0 else falling[0]
    projected: NDArray[np.float64] = np.maximum(flat - threshold, 0.0).reshape(np.shape(counts))
    return projected
