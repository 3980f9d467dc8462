"""Junction trees: cliques over which a model of several overlapping tables can be computed exactly.

It does not know counts, noise, how the cliques are found (`protocol.model.triangulation`) or how a model is fitted.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from protocol.model.triangulation import TableGraph, cells
from protocol.tables.domain import Variables

Array = NDArray[np.float64]
_TALL = 16  # times as many rows as columns


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
        return cls.of_graph(TableGraph(sizes, tables))

    @classmethod
    def of_graph(cls, graph: TableGraph) -> "JunctionTree":
        cliques = graph.cliques()
        order, parents = _spanning_tree(cliques, len(graph.sizes))
        in_order = [cliques[i] for i in order]
        return cls(graph.sizes, tuple(_new_first(in_order, parents, place) for place in range(len(order))), parents)

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
            if len(logs) > _TALL * self._shared[place]:
                logs = np.asfortranarray(logs)  # numpy reduces many short rows one by one
            largest = logs.max(axis=0)
            weights = logs - largest
            np.exp(weights, out=weights)
            summed = weights.sum(axis=0)
            weights /= summed
            conditionals.append(weights)
            message = largest + np.log(summed)
            if place:
                gathered[self.parents[place]] = gathered[self.parents[place]] + message.take(self._above[place])
        return self._outwards(conditionals[::-1], potentials), float(message[0])

    def _outwards(self, conditionals: Sequence[Array], potentials: Sequence[Array]) -> list[Array]:
        """The cliques' distributions, from each clique's distribution of its new variables given the shared ones."""
        found = [conditionals[0].ravel()]
        for place in range(1, len(self.cliques)):
            above = found[self.parents[place]]
            known = np.bincount(self._above[place], weights=above, minlength=self._shared[place])
            own = conditionals[place]
            own *= known
            found.append(own.ravel())
        return [own.reshape(potential.shape) for own, potential in zip(found, potentials, strict=True)]


def places(sizes: Sequence[int], clique: Variables, inside: Variables) -> NDArray[np.intp]:
    """For every cell of a clique, its index in a table over some of the variables, with the last varying fastest."""
    found = np.zeros((1,) * len(clique), dtype=np.intp)
    for variable in inside:
        axis = [sizes[v] if v == variable else 1 for v in clique]
        found = found * sizes[variable] + np.arange(sizes[variable]).reshape(axis)
    return np.broadcast_to(found, [sizes[v] for v in clique]).ravel()


def _spanning_tree(cliques: Sequence[Variables], count: int) -> tuple[list[int], tuple[int, ...]]:
    """The cliques' order and parents in the tree whose neighbours share the most variables (Prim)."""
    inside = np.zeros((len(cliques), count))
    for place, clique in enumerate(cliques):
        inside[place, list(clique)] = 1
    shared = (inside @ inside.T).astype(np.int64)
    # For every clique: how many variables it shares with a clique of the tree, and the place of the last such clique.
    most, nearest, is_outside = shared[0], np.zeros(len(cliques), dtype=np.intp), np.arange(len(cliques)) > 0
    order, parents = [0], [0]
    while is_outside.any():
        closest = int(np.argmax(np.where(is_outside, most, -1)))
        order.append(closest)
        parents.append(int(nearest[closest]))
        is_outside[closest] = False
        nearest = np.where(shared[closest] >= most, len(order) - 1, nearest)
        most = np.maximum(shared[closest], most)
    return order, tuple(parents)


def _new_first(cliques: Sequence[Variables], parents: Sequence[int], place: int) -> Variables:
    above = cliques[parents[place]] if place else ()
    return tuple(sorted(cliques[place], key=lambda v: (v in above, v)))
