"""Triangulation: the cliques of a model of overlapping tables, found by eliminating one variable after another.

It does not know counts, or how the cliques are connected to a tree.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from heapq import heapify, heappop, heappush

from protocol.tables.domain import Variables


class TableGraph:
    """Variables, connected where they share a table. Sets of variables are masks of bits.

    For every variable it keeps what decides when the variable is eliminated: the number of edges missing between its
    neighbours, and the weight of its clique. Both change only around a new edge or an eliminated variable.
    """

    def __init__(self, sizes: Sequence[int], tables: Iterable[Variables] = ()) -> None:
        self.sizes = tuple(sizes)
        self._logarithms = [math.log(max(2, size)) for size in sizes]
        self._adjacent, self._missing = [0] * len(sizes), [0] * len(sizes)
        self._weights = [self._weight(variable) for variable in range(len(sizes))]
        self._add(tables)

    def joined(self, *tables: Variables) -> "TableGraph":
        """This graph with more tables."""
        found = self._copy()
        found._add(tables)
        return found

    def elimination(self) -> Iterator[tuple[int, int]]:
        """The variables in the order of their elimination, each with a mask of its remaining neighbours.

        The variable whose elimination adds fewest edges comes next, and among equals that with the smallest clique.
        """
        rest = self._copy()
        waiting = [rest._rank(variable) for variable in range(len(rest.sizes))]
        heapify(waiting)
        remaining = (1 << len(rest.sizes)) - 1
        while remaining:
            rank = heappop(waiting)
            variable = rank[-1]
            if remaining >> variable & 1 and rank == rest._rank(variable):
                remaining ^= 1 << variable
                yield variable, rest._adjacent[variable]
                for other in _members(rest._eliminate(variable)):
                    heappush(waiting, rest._rank(other))

    def cliques(self) -> list[Variables]:
        """The maximal cliques of the triangulated graph, in the order in which they are found."""
        found, inside = [], set[int]()
        for variable, neighbours in self.elimination():
            clique = neighbours | 1 << variable
            # A clique that lies in another one equals the neighbours of a variable that was eliminated before.
            if clique not in inside:
                found.append(_members(clique))
            inside.add(neighbours)
        return found

    @property
    def cells(self) -> int:
        """The number of cells in all cliques."""
        return sum(cells(self.sizes, clique) for clique in self.cliques())

    def _copy(self) -> "TableGraph":
        found = object.__new__(TableGraph)
        found.sizes, found._logarithms = self.sizes, self._logarithms
        found._adjacent, found._missing, found._weights = [*self._adjacent], [*self._missing], [*self._weights]
        return found

    def _add(self, tables: Iterable[Variables]) -> None:
        touched = 0
        for table in tables:
            mask = sum(1 << v for v in table)
            self._connect(mask)
            touched |= mask
        self._weigh(touched)

    def _rank(self, variable: int) -> tuple[int, float, int]:
        return self._missing[variable], self._weights[variable], variable

    def _weight(self, variable: int) -> float:
        return sum(map(self._logarithms.__getitem__, _members(self._adjacent[variable] | 1 << variable)))

    def _weigh(self, variables: int) -> None:
        for variable in _members(variables):
            self._weights[variable] = self._weight(variable)

    def _eliminate(self, variable: int) -> int:
        """Connect the neighbours of a variable and take it out. Return the variables whose rank has changed."""
        around, others = self._adjacent[variable], ~(1 << variable)
        for other in _members(around):
            self._adjacent[other] &= others
            self._missing[other] -= (self._adjacent[other] & ~around).bit_count()
        changed = self._connect(around) if self._missing[variable] else 0
        self._weigh(around)
        return changed | around

    def _connect(self, variables: int) -> int:
        """Connect each of these variables with each other. Return the variables with other numbers of missing edges."""
        adjacent, missing, changed = self._adjacent, self._missing, 0
        for one in _members(variables):
            for other in _members(variables & ~adjacent[one] & -(2 << one)):
                both = adjacent[one] & adjacent[other]
                for common in _members(both):
                    missing[common] -= 1
                missing[one] += (adjacent[one] & ~both).bit_count()
                missing[other] += (adjacent[other] & ~both).bit_count()
                adjacent[one] |= 1 << other
                adjacent[other] |= 1 << one
                changed |= both | 1 << one | 1 << other
        return changed


def grown_cliques(
    sizes: Sequence[int], tables: Sequence[Variables], fits: Callable[[list[Variables]], bool]
) -> list[Variables]:
    """Grow a graph table by table and return its cliques, leaving out tables with which the cliques would not fit.

    The first table always fits. Growth ends when as many consecutive tables did not fit as there are variables.
    """
    graph, refused = TableGraph(sizes, tables[:1]), 0
    found = graph.cliques()
    for table in tables[1:]:
        if any(set(table) <= set(clique) for clique in found):
            continue
        larger = graph.joined(table)
        cliques = larger.cliques()
        refused = 0 if fits(cliques) else refused + 1
        if not refused:
            graph, found = larger, cliques
        elif refused == len(sizes):
            break
    return found


def cells(sizes: Sequence[int], variables: Iterable[int]) -> int:
    return math.prod(sizes[v] for v in variables)


@lru_cache(maxsize=1 << 15)
def _members(mask: int) -> Variables:
    found = []
    while mask:
        lowest = mask & -mask
        found.append(lowest.bit_length() - 1)
        mask ^= lowest
    return tuple(found)
