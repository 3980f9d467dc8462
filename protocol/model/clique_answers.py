"""Answers of a clique: many small tables computed at once from its distribution, and weights spread back over it.

It does not know noise, potentials or how a model is fitted.

A clique's cells form a matrix S, with the codes of the first variables as rows and those of the others as columns. For
two matrices L and R of zeros and ones, the product L^T S R holds all cells of all tables. Where L or R would be large,
or most multiplications by L would be by zero, sums over the first variables stand for L.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from protocol.model.junction_tree import Array, places
from protocol.model.triangulation import cells
from protocol.tables.domain import Variables

LARGEST_SIDE = 1 << 18  # most numbers in L or in R
ALWAYS_A_PRODUCT = 1 << 12  # cells of a clique up to which calls of numpy take longer than multiplications
SUM = 8  # multiplications of a cell that take as long as a sum over it


class CliqueAnswers(Protocol):
    def answers(self, shares: Array) -> Array:
        """Compute all cells of all tables, one table after the other, from the clique's shares."""
        ...

    def spread(self, weights: Array) -> Array:
        """Sum, for every cell of the clique, the weights of the cells of all tables in which it is counted."""
        ...


def clique_answers(sizes: Sequence[int], clique: Variables, tables: Sequence[Variables]) -> CliqueAnswers:
    """Prepare the answers for different tables over variables of the clique."""
    middle = _middle(sizes, clique)
    left, right = _side(clique[:middle], tables), _side(clique[middle:], tables)
    is_slow = sum(cells(sizes, own) for own in left) > SUM * len(left) and cells(sizes, clique) > ALWAYS_A_PRODUCT
    largest = max(_numbers(sizes, clique[:middle], left), _numbers(sizes, clique[middle:], right))
    if is_slow or largest > LARGEST_SIDE:
        return _Summed.of(sizes, clique, middle, tables)
    return _Product.of(sizes, (clique[:middle], left), (clique[middle:], right), tables)


@dataclass(frozen=True, eq=False)
class _Product:
    left: Array
    right: Array
    cells: NDArray[np.intp]  # positions of the tables' cells in left^T shares right

    @classmethod
    def of(
        cls,
        sizes: Sequence[int],
        left: tuple[Variables, Sequence[Variables]],
        right: tuple[Variables, Sequence[Variables]],
        tables: Sequence[Variables],
    ) -> "_Product":
        first, second = _indicators(sizes, *left), _indicators(sizes, *right)
        rows, columns = _offsets(sizes, left[1]), _offsets(sizes, right[1])
        found = [_block(sizes, table, (left[0], rows), (right[0], columns), second.shape[1]) for table in tables]
        return cls(first, second, np.concatenate(found))

    def answers(self, shares: Array) -> Array:
        matrix = shares.reshape(len(self.left), len(self.right))
        return _product(self.left.T, matrix, self.right).ravel()[self.cells]

    def spread(self, weights: Array) -> Array:
        middle = np.zeros((self.left.shape[1], self.right.shape[1]))
        middle.ravel()[self.cells] = weights
        return _product(self.left, middle, self.right.T).ravel()


@dataclass(frozen=True, eq=False)
class _Summed:
    """Sums over the first variables leave few rows, of which products with small parts of R make the tables."""

    shape: tuple[int, ...]  # of the clique
    parts: Sequence["_Part"]
    size: int

    @classmethod
    def of(cls, sizes: Sequence[int], clique: Variables, middle: int, tables: Sequence[Variables]) -> "_Summed":
        starts = _offsets(sizes, tables)
        alike: dict[tuple[Variables, Variables | None], list[Variables]] = {}
        for table in tables:
            first, second = (tuple(v for v in part if v in table) for part in (clique[:middle], clique[middle:]))
            wide = second == clique[middle:] or cells(sizes, clique[middle:]) * cells(sizes, second) > LARGEST_SIDE
            alike.setdefault((first, second if wide else None), []).append(table)
        parts = [_Part.of(sizes, clique, middle, kept, own, starts) for kept, own in alike.items()]
        return cls(tuple(sizes[v] for v in clique), parts, sum(cells(sizes, table) for table in tables))

    def answers(self, shares: Array) -> Array:
        whole, found = shares.reshape(self.shape), np.empty(self.size)
        for part in self.parts:
            rows = whole.sum(axis=part.dropped) if part.dropped else whole
            if part.right is not None:
                rows = rows.reshape(-1, len(part.right)) @ part.right
            found[part.targets] = rows.ravel()[part.places]
        return found

    def spread(self, weights: Array) -> Array:
        whole = np.zeros(self.shape)
        for part in self.parts:
            rows = np.zeros(part.numbers)
            rows[part.places] = weights[part.targets]
            if part.right is not None:
                rows = rows.reshape(-1, part.right.shape[1]) @ part.right.T
            whole += rows.reshape([1 if axis in part.dropped else size for axis, size in enumerate(self.shape)])
        return whole.ravel()


@dataclass(frozen=True, eq=False)
class _Part:
    """Tables that need the same sums over the clique's variables."""

    dropped: tuple[int, ...]  # axes that are summed over
    right: Array | None  # for each row that is left; None if the sums are the tables
    numbers: int  # of the sums, or of their products with `right`
    places: NDArray[np.intp]  # of the tables' cells among these
    targets: NDArray[np.intp]  # of the same cells among all tables' cells

    @classmethod
    def of(
        cls,
        sizes: Sequence[int],
        clique: Variables,
        middle: int,
        kept: tuple[Variables, Variables | None],
        tables: Sequence[Variables],
        starts: Mapping[Variables, int],
    ) -> "_Part":
        first, second = kept
        targets = np.concatenate([starts[table] + np.arange(cells(sizes, table)) for table in tables])
        if second is not None:
            held = (*first, *second)
            dropped = tuple(axis for axis, variable in enumerate(clique) if variable not in held)
            found = [places(sizes, table, held) for table in tables]
            return cls(dropped, None, cells(sizes, held), np.concatenate(found), targets)
        dropped = tuple(axis for axis, variable in enumerate(clique[:middle]) if variable not in first)
        behind = _side(clique[middle:], tables)
        right, columns = _indicators(sizes, clique[middle:], behind), _offsets(sizes, behind)
        found = [
            places(sizes, table, first) * right.shape[1] + columns[own] + places(sizes, table, own)
            for table, own in ((table, _inside(table, clique[middle:])) for table in tables)
        ]
        return cls(dropped, right, cells(sizes, first) * right.shape[1], np.concatenate(found), targets)


def _product(left: Array, middle: Array, right: Array) -> Array:
    """Multiply three matrices in the order that takes fewer multiplications: L or R may be many times as large."""
    (rows, height), (width, columns) = left.shape, right.shape
    if rows * width * (height + columns) <= height * columns * (width + rows):
        return np.asarray(left @ middle @ right)
    return np.asarray(left @ (middle @ right))


def _middle(sizes: Sequence[int], clique: Variables) -> int:
    """The place that divides the clique into two parts with the most similar numbers of cells."""
    whole = cells(sizes, clique)
    behind = list(accumulate((sizes[v] for v in clique), initial=1, func=lambda a, b: a * b))
    return min(range(len(clique) + 1), key=lambda place: max(behind[place], whole // behind[place]))


def _side(part: Variables, tables: Sequence[Variables]) -> list[Variables]:
    """The distinct parts of the tables that lie in a part of the clique."""
    return list(dict.fromkeys(_inside(table, part) for table in tables))


def _inside(table: Variables, part: Variables) -> Variables:
    return tuple(v for v in table if v in part)


def _numbers(sizes: Sequence[int], part: Variables, asked: Sequence[Variables]) -> int:
    return cells(sizes, part) * sum(cells(sizes, own) for own in asked)


def _indicators(sizes: Sequence[int], part: Variables, asked: Sequence[Variables]) -> Array:
    """Build L or R: a row for every cell of the part, with ones at the cells of the tables in which it is counted."""
    return np.hstack([np.eye(cells(sizes, own))[places(sizes, part, own)] for own in asked])


def _offsets(sizes: Sequence[int], tables: Sequence[Variables]) -> dict[Variables, int]:
    starts = accumulate((cells(sizes, table) for table in tables), initial=0)
    return dict(zip(tables, starts, strict=False))


def _block(
    sizes: Sequence[int],
    table: Variables,
    left: tuple[Variables, dict[Variables, int]],
    right: tuple[Variables, dict[Variables, int]],
    width: int,
) -> NDArray[np.intp]:
    """The positions of a table's cells in the product."""
    first, second = (tuple(v for v in table if v in part) for part, _ in (left, right))
    row = left[1][first] + places(sizes, table, first)
    return (row * width + right[1][second] + places(sizes, table, second)).astype(np.intp)
