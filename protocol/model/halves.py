"""Halves: every variable's categories in two groups that hold about as many rows, by its noisy counts.

It does not know rows: the counts were released before. Views of halves measure which pairs depend on each other where
views of whole variables would drown in noise.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from protocol.tables.domain import Merged
from protocol.tables.marginal import Table, nonnegative
from protocol.tables.schema import Schema


def halves_of(singles: Sequence[Table], schema: Schema, total: int) -> tuple[Merged, ...]:
    """The halves of every variable with more than two categories, by tables of single variables."""
    found = []
    for table in singles:
        (variable,) = table.variables
        counts = nonnegative(table, total)
        if len(counts) > 2:
            in_order = schema.attributes[variable].kind != "categorical"
            groups = _below_and_above(counts) if in_order else _balanced(counts)
            found.append((variable, tuple(groups.tolist())))
    return tuple(sorted(found))


def _below_and_above(counts: NDArray[np.float64]) -> NDArray[np.intp]:
    """Cut ordered categories where the halves are most alike."""
    below = np.cumsum(counts)[:-1]
    cut = int(np.argmin(np.abs(below - counts.sum() / 2))) + 1
    return (np.arange(len(counts)) >= cut).astype(np.intp)


def _balanced(counts: NDArray[np.float64]) -> NDArray[np.intp]:
    """Deal out categories, the commonest first, to the half with fewer rows."""
    groups, sums = np.zeros(len(counts), dtype=np.intp), [0.0, 0.0]
    order = np.argsort(-counts, kind="stable").tolist()
    for place, category in enumerate(order):
        half = place if place < 2 else int(sums[1] < sums[0])
        groups[category] = half
        sums[half] += float(counts[category])
    return groups
