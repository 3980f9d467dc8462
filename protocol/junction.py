"""Junction trees: the cliques over which a model of several overlapping tables can be calculated exactly.

It does not know counts, noise or how a model is fitted.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from protocol.domain import Variables

Array = NDArray[np.float64]


@dataclass(frozen=True)
class JunctionTree:
    """Cliques from the root outwards; `parents[i]` is an earlier clique, which holds all that i shares with earlier."""

    sizes: tuple[int, ...]  # codes of every variable
    cliques: tuple[Variables, ...]
    parents: tuple[int, ...]  # of the root: itself

    @classmethod
    def of(cls, sizes: Sequence[int], tables: Iterable[Variables]) -> "JunctionTree":
        """A tree in which every table lies inside one clique."""
        cliques = maximal_cliques(sizes, tables)
        order, parents = _spanning_tree(cliques)
        return cls(tuple(sizes), tuple(cliques[i] for i in order), parents)

    @cached_property
    def separators(self) -> tuple[Variables, ...]:
        """What each clique shares with its parent, in the clique's order; nothing at the root."""
        return tuple(
            tuple(v for v in clique if place and v in self.cliques[parent])
            for place, (clique, parent) in enumerate(zip(self.cliques, self.parents, strict=True))
        )

    def home(self, variables: Iterable[int]) -> int:
        """The smallest clique with all these variables."""
        wanted = set(variables)
        fitting = [i for i, clique in enumerate(self.cliques) if wanted <= set(clique)]
        return min(fitting, key=lambda i: cells(self.sizes, self.cliques[i]))

    def shape(self, clique: Variables) -> tuple[int, ...]:
        return tuple(self.sizes[v] for v in clique)

    def spread(self, values: Array, inside: Variables, clique: Variables) -> Array:
        """A table over some of a clique's variables, shaped so that it combines with the clique's."""
        return values.reshape([self.sizes[v] if v in inside else 1 for v in clique])

    def marginals(self, potentials: Sequence[Array]) -> list[Array]:
        """Every clique's distribution under the product of exp(potentials): sum-product, inwards and outwards."""
        gathered, messages = list(potentials), dict[int, Array]()
        for place in range(len(self.cliques) - 1, 0, -1):
            parent, separator = self.parents[place], self.separators[place]
            messages[place] = _log_sum(gathered[place], dropped(self.cliques[place], separator))
            spread = self.spread(messages[place], separator, self.cliques[parent])
            gathered[parent] = gathered[parent] + spread
        root = np.exp(gathered[0] - gathered[0].max())
        found = [root / root.sum()]
        for place in range(1, len(self.cliques)):
            clique, separator, parent = self.cliques[place], self.separators[place], self.parents[place]
            known = found[parent].sum(axis=dropped(self.cliques[parent], separator))
            conditional = np.exp(gathered[place] - self.spread(messages[place], separator, clique))
            found.append(conditional * self.spread(known, separator, clique))
        return found


def cells(sizes: Sequence[int], variables: Iterable[int]) -> int:
    return math.prod(sizes[v] for v in variables)


def model_cells(sizes: Sequence[int], tables: Iterable[Variables]) -> int:
    """How many numbers a model of these tables is made of."""
    return sum(cells(sizes, clique) for clique in maximal_cliques(sizes, tables))


def dropped(clique: Variables, kept: Variables) -> tuple[int, ...]:
    """The axes of a clique's table that are summed over to keep these variables."""
    return tuple(axis for axis, variable in enumerate(clique) if variable not in kept)


def maximal_cliques(sizes: Sequence[int], tables: Iterable[Variables]) -> list[Variables]:
    """Of a triangulated graph in which every table is connected: whoever adds fewest edges is eliminated next."""
    found: list[int] = []
    for variable, neighbours in elimination(sizes, tables):
        clique = neighbours | 1 << variable
        if not any(clique & ~other == 0 for other in found):
            found.append(clique)
    return [_members(clique) for clique in found]


def elimination(sizes: Sequence[int], tables: Iterable[Variables]) -> Iterator[tuple[int, int]]:
    """The variables in the order of their elimination, each with a mask of its neighbours that are left."""
    adjacent = _graph(len(sizes), tables)
    weights = [math.log(max(2, size)) for size in sizes]
    left = set(range(len(sizes)))
    while left:
        variable = min(left, key=lambda v: (_missing_edges(adjacent, v), _weight(weights, adjacent[v] | 1 << v), v))
        neighbours = adjacent[variable]
        yield variable, neighbours
        left.discard(variable)
        for other in _members(neighbours):
            adjacent[other] = (adjacent[other] | neighbours) & ~(1 << other | 1 << variable)


def _graph(count: int, tables: Iterable[Variables]) -> list[int]:
    """For every variable a mask of the variables that it shares a table with."""
    adjacent = [0] * count
    for table in tables:
        mask = sum(1 << v for v in table)
        for variable in table:
            adjacent[variable] |= mask & ~(1 << variable)
    return adjacent


def _missing_edges(adjacent: Sequence[int], variable: int) -> int:
    """Twice the number of neighbours that are not neighbours of each other."""
    around = adjacent[variable]
    return sum((around & ~adjacent[other] & ~(1 << other)).bit_count() for other in _members(around))


def _weight(weights: Sequence[float], mask: int) -> float:
    return sum(weights[v] for v in _members(mask))


def _members(mask: int) -> Variables:
    found = []
    while mask:
        lowest = mask & -mask
        found.append(lowest.bit_length() - 1)
        mask ^= lowest
    return tuple(found)


def _spanning_tree(cliques: Sequence[Variables]) -> tuple[list[int], tuple[int, ...]]:
    """The cliques' order and parents in the tree whose neighbours share most (Prim)."""
    sets = [set(clique) for clique in cliques]
    order, parents = [0], [0]
    outside = set(range(1, len(cliques)))
    while outside:
        _, _, place, clique = max(
            (len(sets[inner] & sets[outer]), -outer, place, outer)
            for outer in outside
            for place, inner in enumerate(order)
        )
        order.append(clique)
        parents.append(place)
        outside.discard(clique)
    return order, tuple(parents)


def _log_sum(logs: Array, axes: tuple[int, ...]) -> Array:
    """log of the sum of exponentials over these axes."""
    largest = logs.max(axis=axes, keepdims=True)
    summed = np.log(np.exp(logs - largest).sum(axis=axes, keepdims=True)) + largest
    return np.asarray(np.squeeze(summed, axis=axes))
