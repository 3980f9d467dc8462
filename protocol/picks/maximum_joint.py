"""How close a binary X and its parents come to maximal mutual information: the core of score F (PrivBayes 4.4).

It does not know sensitivities or mechanisms.

A joint distribution of maximal information gives one half to each code of X, and to every cell of the parents only
one code of X. Of the assignments Z of a code of X to every cell, with a = the rows that have X = 0 where Z says 0 and
b = those that have X = 1 where Z says 1, the best one has the largest min(2a, n) + min(2b, n), and
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
    # In operations, with what one call of numpy costs: all assignments of all tables at once, or table by table.
    if 2**cells * (many + 2000) <= many * cells * (rows + 5000):
        return by_enumeration(counts, rows)
    return np.array([by_dynamic_programme(table, rows) for table in counts], dtype=np.int64)


def by_enumeration(counts: Counts, rows: int) -> NDArray[np.int64]:
    """All 2^cells assignments, each one step from the one before (Gray code)."""
    # Overflow safety: sums reach 2 n.
    kind = np.int32 if rows < 1 << 30 else np.int64
    zero, one = np.ascontiguousarray(2 * counts.transpose(1, 2, 0), dtype=kind)
    change = np.stack([zero, -one], axis=1)  # by cell: what its change to code 0 adds to (2a, 2b)
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
    """For every a the largest b: the states that are not dominated (Definition 4.6), cell by cell."""
    unreachable = -2 * rows - 1
    # The front half stays unreachable: a shift by any count reads a piece of the same length.
    states = np.full(2 * rows + 2, unreachable, dtype=np.int64)
    largest = states[rows + 1 :]
    largest[0] = 0
    for zero, one in table.T.tolist():
        shifted = states[rows + 1 - zero : 2 * rows + 2 - zero]
        largest[:] = np.maximum(largest + one, shifted)
    a = np.arange(rows + 1, dtype=np.int64)
    return int(np.max(np.minimum(2 * a, rows) + np.minimum(2 * largest, rows)))


def _gray_steps(cells: int) -> Iterator[tuple[int, bool]]:
    """Which cell changes, and whether to code 0, so that all assignments are met once; they start with all ones."""
    for number in range(1, 1 << cells):
        cell = (number & -number).bit_length() - 1
        yield cell, not number >> (cell + 1) & 1
