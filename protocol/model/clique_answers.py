"""Answering: many small tables read off one clique's distribution at once, and their weights laid back over it.

It does not know noise, potentials or how a model is fitted.

A clique's cells are a matrix, the first variables' codes by the others'. A table over some of them is the matrix
between two matrices of zeros and ones, so that a few products answer all tables. Where a variable has so many codes
that these would be large, every cell's place in every table is kept instead.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from protocol.model.junction_tree import Array, cells, places
from protocol.tables.domain import Variables

_LARGEST_SIDE = 1 << 18  # numbers in a matrix of zeros and ones


class Reader(Protocol):
    def answers(self, shares: Array) -> Array:
        """All tables' cells, one table after the other."""
        ...

    def spread(self, weights: Array) -> Array:
        """For every cell of the clique the sum of the weights of the cells of all tables that it is counted in."""
        ...


def reader(sizes: Sequence[int], clique: Variables, tables: Sequence[Variables]) -> Reader:
    """Of these different tables over variables of the clique."""
    middle = _middle(sizes, clique)
    left, right = _side(clique[:middle], tables), _side(clique[middle:], tables)
    if max(_numbers(sizes, clique[:middle], left), _numbers(sizes, clique[middle:], right)) > _LARGEST_SIDE:
        return _Indexed.of(sizes, clique, tables)
    return _Product.of(sizes, (clique[:middle], left), (clique[middle:], right), tables)


@dataclass(frozen=True, eq=False)
class _Product:
    left: Array
    right: Array
    cells: NDArray[np.intp]  # where the tables' cells stand in left^T shares right

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
        return np.asarray((self.left.T @ matrix @ self.right).ravel()[self.cells])

    def spread(self, weights: Array) -> Array:
        middle = np.zeros((self.left.shape[1], self.right.shape[1]))
        middle.ravel()[self.cells] = weights
        return np.asarray((self.left @ middle @ self.right.T).ravel())


@dataclass(frozen=True, eq=False)
class _Indexed:
    places: NDArray[np.intp]  # by table, then by cell of the clique
    size: int

    @classmethod
    def of(cls, sizes: Sequence[int], clique: Variables, tables: Sequence[Variables]) -> "_Indexed":
        starts = _offsets(sizes, tables)
        return cls(
            np.array([start + places(sizes, clique, t) for t, start in starts.items()]),
            sum(cells(sizes, t) for t in tables),
        )

    def answers(self, shares: Array) -> Array:
        tiled = np.tile(shares.ravel(), len(self.places))
        return np.bincount(self.places.ravel(), tiled, self.size).astype(np.float64, copy=False)

    def spread(self, weights: Array) -> Array:
        return np.asarray(weights[self.places].sum(axis=0))


def _middle(sizes: Sequence[int], clique: Variables) -> int:
    """Where the clique falls into two parts whose cells differ least."""
    whole = cells(sizes, clique)
    behind = list(accumulate((sizes[v] for v in clique), initial=1, func=lambda a, b: a * b))
    return min(range(len(clique) + 1), key=lambda place: max(behind[place], whole // behind[place]))


def _side(part: Variables, tables: Sequence[Variables]) -> list[Variables]:
    """The different parts of the tables that lie in a part of the clique."""
    return list(dict.fromkeys(tuple(v for v in table if v in part) for table in tables))


def _numbers(sizes: Sequence[int], part: Variables, asked: Sequence[Variables]) -> int:
    return cells(sizes, part) * sum(cells(sizes, own) for own in asked)


def _indicators(sizes: Sequence[int], part: Variables, asked: Sequence[Variables]) -> Array:
    """By cell of the part: a one in every table's cell that it is counted in."""
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
    """Where a table's cells stand in the product."""
    first, second = (tuple(v for v in table if v in part) for part, _ in (left, right))
    row = left[1][first] + places(sizes, table, first)
    return (row * width + right[1][second] + places(sizes, table, second)).astype(np.intp)
