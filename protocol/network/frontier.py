"""The search frontier: edges worth considering beside a network's own edges (CSFC, Algorithm 1 of the DP-SUBN paper).

It does not know rows or noise. It sees a network and the mutual information of every pair of variables.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from protocol.network.limits import Limits
from protocol.network.network import Family, Network
from protocol.tables.domain import Domain, Variables


def search_frontier(
    network: Network, mutual_information: NDArray[np.float64], limits: Limits, domain: Domain
) -> Network:
    """Build a network within `limits` (degree k') that contains `network` and many of the strongest pairs.

    `mutual_information` is symmetric and has one row and one column per base variable.
    """
    frontier = GrowingFrontier(network, mutual_information, limits, domain)  # lines 1 and 2
    for x, y in _falling_pairs(mutual_information):  # lines 3 and 4
        if not frontier.linked[x, y]:  # line 5
            edge = frontier.direction(x, y)
            if edge is not None:
                frontier.add(*edge)  # line 24
    return Network.of((Family(x, parents) for x, parents in enumerate(frontier.parents)), domain)


def _falling_pairs(mutual_information: NDArray[np.float64]) -> Iterator[tuple[int, int]]:
    """Every pair once, the strongest first; equally strong pairs in the order of their indices."""
    first, second = np.triu_indices(len(mutual_information), k=1)
    order = np.argsort(-mutual_information[first, second], kind="stable")
    return zip(first[order].tolist(), second[order].tolist(), strict=True)


class GrowingFrontier:
    """The frontier under construction, with its partial order."""

    def __init__(
        self, network: Network, mutual_information: NDArray[np.float64], limits: Limits, domain: Domain
    ) -> None:
        self._information, self._limits, self._domain = mutual_information, limits, domain
        self._small_first = sorted((variants[-1] for variants in domain.variants), key=lambda v: domain.sizes[v])
        self.parents: list[Variables] = [()] * domain.count
        self.linked = np.zeros((domain.count, domain.count), dtype=bool)
        self._precedes = np.eye(domain.count, dtype=bool)  # [x, y]: x <= y in the paper's order
        self._places = np.array([self._places_left(x) for x in range(domain.count)])
        for parent, child in network.edges():
            self._link(parent, child)

    def direction(self, x: int, y: int) -> tuple[int, int] | None:
        """Choose the edge to add between x and y, if any, as (parent, child) (lines 6 to 22)."""
        room_at_x = self._variant_for(child=x, parent=y) is not None
        room_at_y = self._variant_for(child=y, parent=x) is not None
        if self._precedes[x, y]:  # lines 7 and 21: only the end that the edge points to needs room
            return (x, y) if room_at_y else None
        if self._precedes[y, x]:  # lines 9 and 19
            return (y, x) if room_at_x else None
        if not (room_at_x and room_at_y):  # lines 19 and 21 ask for x < y or y < x
            return None
        if self.sparsity(x) * self.impact(x, y) >= self.sparsity(y) * self.impact(y, x):  # line 13
            return y, x
        return x, y

    def add(self, parent: int, child: int) -> None:
        variant = self._variant_for(child, parent)
        assert variant is not None, "direction() has found room"
        self._link(variant, child)

    def _variant_for(self, child: int, parent: int) -> int | None:
        """The finest variant of `parent` for which the child still has room."""
        for variant in self._domain.variants[parent]:
            if self._limits.admits(self._domain, child, (*self.parents[child], variant)):
                return variant
        return None

    def _link(self, variant: int, child: int) -> None:
        parent = self._domain.base(variant)
        self.parents[child] = tuple(sorted((*self.parents[child], variant)))
        self.linked[parent, child] = self.linked[child, parent] = True
        self._precedes |= np.outer(self._precedes[:, parent], self._precedes[child])
        self._places[child] = self._places_left(child)

    def sparsity(self, x: int) -> int:
        """Sparsity (Definition 3): the number of parents that x and its ancestors can still be given."""
        return int(self._places[self._precedes[:, x]].sum())

    def impact(self, x: int, y: int) -> float:
        """Impact (Definition 4): the information of all pairs, except (x, y), that an edge from x to y would order."""
        pairs = self._information[np.ix_(self._precedes[:, x], self._precedes[y])]
        return float(pairs.sum() - self._information[x, y])

    def _places_left(self, child: int) -> int:
        """The number of parents that the child can still be given: k' - |Pa(child)|.

        Where only cells are limited, the number of the smallest variables that still fit.
        """
        parents = self.parents[child]
        if self._limits.degree is not None:
            return self._limits.degree - len(parents)
        taken = {child, *(self._domain.base(p) for p in parents)}
        for variable in self._small_first:
            is_new = self._domain.base(variable) not in taken
            if is_new and self._limits.admits(self._domain, child, (*parents, variable)):
                parents = (*parents, variable)
        return len(parents) - len(self.parents[child])
