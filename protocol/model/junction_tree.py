"""Junction trees: cliques over which a model of several overlapping tables can be computed exactly.

It does not know counts, noise or how a model is fitted.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from protocol.tables.domain import Variables

Array = NDArray[np.float64]


@dataclass(frozen=True)
class JunctionTree:
    """Cliques from the root outwards. `parents[i]` is an earlier clique with all variables that i shares with earlier.

    A clique lists its new variables first, and the variables that it shares with its parent last. Sums over the new
    variables then run over the first axis of a matrix.
    """

    sizes: tuple[int, ...]  # codes of every variable
    cliques: tuple[Variables, ...]
    parents: tuple[int, ...]  # the root is its own parent

    @classmethod
    def of(cls, sizes: Sequence[int], tables: Iterable[Variables]) -> "JunctionTree":
        """Build a tree in which every table lies inside a clique."""
        cliques = maximal_cliques(sizes, tables)
        order, parents = _spanning_tree(cliques)
        in_order = [cliques[i] for i in order]
        return cls(tuple(sizes), tuple(_new_first(in_order, parents, place) for place in range(len(order))), parents)

    @cached_property
    def separators(self) -> tuple[Variables, ...]:
        """The variables that each clique shares with its parent, in the clique's order; none at the root."""
        return tuple(
            tuple(v for v in clique if place and v in self.cliques[parent])
            for place, (clique, parent) in enumerate(zip(self.cliques, self.parents, strict=True))
        )

    @cached_property
    def _above(self) -> tuple[NDArray[np.intp], ...]:
        """For every cell of a clique's parent, its index in a table over the variables that the two share."""
        return tuple(
            places(self.sizes, self.cliques[parent], separator)
            for parent, separator in zip(self.parents, self.separators, strict=True)
        )

    @cached_property
    def _shared(self) -> tuple[int, ...]:
        return tuple(cells(self.sizes, separator) for separator in self.separators)

    def home(self, variables: Iterable[int]) -> int:
        """The smallest clique with all these variables."""
        wanted = set(variables)
        fitting = [i for i, clique in enumerate(self.cliques) if wanted <= set(clique)]
        return min(fitting, key=lambda i: cells(self.sizes, self.cliques[i]))

    def shape(self, clique: Variables) -> tuple[int, ...]:
        return tuple(self.sizes[v] for v in clique)

    def marginals(self, potentials: Sequence[Array]) -> tuple[list[Array], float]:
        """Every clique's distribution under the product of exp(potentials), and the logarithm of that product's sum.

        The method is sum-product, with one pass inwards and one pass outwards.
        """
        gathered, conditionals = [potential.ravel() for potential in potentials], list[Array]()
        for place in range(len(self.cliques) - 1, -1, -1):
            logs = gathered[place].reshape(-1, self._shared[place])
            largest = logs.max(axis=0)
            weights = np.exp(logs - largest)
            summed = weights.sum(axis=0)
            conditionals.append(weights / summed)
            message = largest + np.log(summed)
            if place:
                gathered[self.parents[place]] = gathered[self.parents[place]] + message[self._above[place]]
        return self._outwards(conditionals[::-1], potentials), float(message[0])

    def _outwards(self, conditionals: Sequence[Array], potentials: Sequence[Array]) -> list[Array]:
        """The cliques' distributions, from each clique's distribution of its new variables given the shared ones."""
        found = [conditionals[0].ravel()]
        for place in range(1, len(self.cliques)):
            above = found[self.parents[place]]
            known = np.bincount(self._above[place], weights=above, minlength=self._shared[place])
            found.append((conditionals[place] * known).ravel())
        return [own.reshape(potential.shape) for own, potential in zip(found, potentials, strict=True)]


def places(sizes: Sequence[int], clique: Variables, inside: Variables) -> NDArray[np.intp]:
    """For every cell of a clique, its index in a table over some of the variables, with the last varying fastest."""
    found = np.zeros((1,) * len(clique), dtype=np.intp)
    for variable in inside:
        axis = [sizes[v] if v == variable else 1 for v in clique]
        found = found * sizes[variable] + np.arange(sizes[variable]).reshape(axis)
    return np.broadcast_to(found, [sizes[v] for v in clique]).ravel()


def cells(sizes: Sequence[int], variables: Iterable[int]) -> int:
    return math.prod(sizes[v] for v in variables)


def model_cells(sizes: Sequence[int], tables: Iterable[Variables]) -> int:
    """The number of cells in all cliques of a model of these tables."""
    return sum(cells(sizes, clique) for clique in maximal_cliques(sizes, tables))


def maximal_cliques(sizes: Sequence[int], tables: Iterable[Variables]) -> list[Variables]:
    """The maximal cliques of a triangulated graph in which the variables of every table are connected.

    The variable whose elimination adds fewest edges is eliminated next.
    """
    found: list[int] = []
    for variable, neighbours in elimination(sizes, tables):
        clique = neighbours | 1 << variable
        if not any(clique & ~other == 0 for other in found):
            found.append(clique)
    return [_members(clique) for clique in found]


def grown_cliques(
    sizes: Sequence[int], pairs: Sequence[Variables], fits: Callable[[list[Variables]], bool]
) -> list[Variables]:
    """Grow a model pair by pair and return its cliques, leaving out pairs with which the cliques would not fit.

    The first pair always fits. Growth ends when as many consecutive pairs did not fit as there are variables.
    """
    taken, refused = list(pairs[:1]), 0
    found = maximal_cliques(sizes, taken)
    for pair in pairs[1:]:
        if any(set(pair) <= set(clique) for clique in found):
            continue
        larger = maximal_cliques(sizes, [*taken, pair])
        refused = 0 if fits(larger) else refused + 1
        if not refused:
            found = larger
            taken.append(pair)
        elif refused == len(sizes):
            break
    return found


def elimination(sizes: Sequence[int], tables: Iterable[Variables]) -> Iterator[tuple[int, int]]:
    """The variables in the order of their elimination, each with a mask of its remaining neighbours."""
    adjacent = _graph(len(sizes), tables)
    weights = [math.log(max(2, size)) for size in sizes]
    ranks = {v: _rank(adjacent, weights, v) for v in range(len(sizes))}
    while ranks:
        variable = min(ranks, key=ranks.__getitem__)
        neighbours, (missing, _, _) = adjacent[variable], ranks.pop(variable)
        yield variable, neighbours
        changed = neighbours
        for other in _members(neighbours):
            # New edges also change the missing edges around each variable that neighbours both of their ends.
            changed |= adjacent[other] if missing else 0
            adjacent[other] = (adjacent[other] | neighbours) & ~(1 << other | 1 << variable)
        ranks |= {v: _rank(adjacent, weights, v) for v in _members(changed & ~(1 << variable))}


def _rank(adjacent: Sequence[int], weights: Sequence[float], variable: int) -> tuple[int, float, int]:
    """Rank of a variable for elimination: fewest new edges first, and among equals the smallest clique first."""
    return _missing_edges(adjacent, variable), _weight(weights, adjacent[variable] | 1 << variable), variable


def _graph(count: int, tables: Iterable[Variables]) -> list[int]:
    """For every variable, a mask of the variables with which it shares a table."""
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
    """The cliques' order and parents in the tree whose neighbours share the most variables (Prim)."""
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


def _new_first(cliques: Sequence[Variables], parents: Sequence[int], place: int) -> Variables:
    above = cliques[parents[place]] if place else ()
    return tuple(sorted(cliques[place], key=lambda v: (v in above, v)))
