"""Impossible cells: cells of a table whose codes decode to no value, and tables without such cells.

It does not know encodings. It sees blocks of variables and the combinations of codes that are valid.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from protocol.tables.domain import Domain, Variables
from protocol.tables.encoding import Block
from protocol.tables.marginal import Table, project_to_simplex


def feasible_cells(variables: Variables, blocks: Sequence[Block], domain: Domain) -> NDArray[np.bool_] | None:
    """Mark the cells that valid codes of all attributes can fall into; None stands for all cells."""
    feasible = np.ones(domain.shape(variables), dtype=bool)
    for block in blocks:
        axes = [axis for axis, variable in enumerate(variables) if domain.base(variable) in block.variables]
        valid = Table(block.variables, block.valid.astype(np.int64))
        seen = valid.project(tuple(variables[axis] for axis in axes), domain).counts > 0
        feasible &= np.expand_dims(seen, [axis for axis in range(len(variables)) if axis not in axes])
    return None if feasible.all() else feasible


def structural_projection(table: Table, blocks: Sequence[Block], domain: Domain, total: float) -> Table:
    """The closest non-negative table that adds up to `total` and leaves impossible cells empty.

    The variance is unchanged.
    """
    feasible = feasible_cells(table.variables, blocks, domain)
    if feasible is None:
        return Table(table.variables, project_to_simplex(table.counts, total), table.variance)
    counts = np.zeros(table.counts.shape)
    counts[feasible] = project_to_simplex(table.counts[feasible], total)
    return Table(table.variables, counts, table.variance)
