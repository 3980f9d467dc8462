"""Distance of a binary X and its parents from maximal mutual information: the core of score F (PrivBayes 4.4).

It does not know sensitivities or mechanisms.

A joint distribution of maximal information gives one half to each code of X, and allows only one code of X in every
cell of the parents. Let Z assign a code of X to every cell, let a be the number of rows with X = 0 where Z assigns 0,
and b the number of rows with X = 1 where Z assigns 1. The best assignment has the largest min(2a, n) + min(2b, n), and
2 n F = min(2a, n) + min(2b, n) - 2 n.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]


def surplus(counts: Counts, rows: int) -> NDArray[np.int64]:
    """The largest min(2a, n) + min(2b, n), for tables of shape (m, 2, cells of the parents) over n rows.

    Privacy: the work depends on the shape and on n alone.
    """
    many, _, cells = counts.shape
    # Costs in operations, with the overhead of numpy's calls: all assignments of all tables at once, or table by table.
    if 2**cells * (many + 2000) <= many * cells * (rows + 5000):
        return by_enumeration(counts, rows)
    return np.array([by_dynamic_programme(table, rows) for table in counts], dtype=np.int64)


def by_enumeration(counts: Counts, rows: int) -> NDArray[np.int64]:
    """Compute `surplus` over all 2^cells assignments, each a single step from the previous (Gray code)."""
    # Overflow safety: sums reach 2 n.
    kind = np.int32 if rows < 1 << 30 else np.int64
    zero, one = np.ascontiguousarray(2 * counts.transpose(1, 2, 0), dtype=kind)
    change = np.stack([zero, -one], axis=1)  # by cell: the change of (2a, 2b) if the cell changes to code 0
    reached = np.stack([np.zeros_like(zero[0]), one.sum(axis=0, dtype=kind)])
    half = np.full_like(reached, rows)
    capped = np.minimum(reached, half)
    best = capped[0] + capped[1]
    for cell, to_zero in _gray_steps(counts.shape[2]):
        (np.add if to_zero else np.subtract)(reached, change[cell], out=reached)
        np.minimum(reached, half, out=capped)
        np.add(capped[0], capped[1], out=capped[0])
        np.maximum(best, capped[0], out=best)
    return np.asarray(best, dtype=np.int64)


def by_dynamic_programme(table: Counts, rows: int) -> int:
    """Compute `surplus` of one table, cell by cell, from the largest b for every a.

    These are the states that are not dominated (Definition 4.6).
    """
    unreachable = -2 * rows - 1
    # The front half stays unreachable, so that a shift by any count reads a piece of the same length.
    states = np.full(2 * rows + 2, unreachable, dtype=np.int64)
    largest = states[rows + 1 :]
    largest[0] = 0
    for zero, one in table.T.tolist():
        shifted = states[rows + 1 - zero : 2 * rows + 2 - zero]
        largest[:] = np.maximum(largest + one, shifted)
    a = np.arange(rows + 1, dtype=np.int64)
    return int(np.max(np.minimum(2 * a, rows) + np.minimum(2 * largest, rows)))


def _gray_steps(cells: int) -> Iterator[tuple[int, bool]]:
    """Steps through all assignments, starting from all ones: the cell that changes, and whether to code 0."""
    for number in range(1, 1 << cells):
        cell = (number & -number).bit_length() - 1
        yield cell, not number >> (cell + 1) & 1
