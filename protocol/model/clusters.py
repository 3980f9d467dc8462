"""Clusters: cliques of a model that are counted together, so that their tables hold least noise in all.

It does not know counts, or how the cliques were found.
"""

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from heapq import heappop, heappush

from protocol.tables.domain import Variables

Cluster = tuple[Variables, int]  # its variables, and the number of cliques that are derived from it
Clusters = tuple[Cluster, ...]

MOST_EXACT = 8  # cliques, of which all divisions into clusters are compared: 4,140 at most


@lru_cache(maxsize=64)  # a pass asks for its tables again and again
def clusters(
    sizes: tuple[int, ...], cliques: tuple[Variables, ...], grows_by_root: bool, most_cells: tuple[int, ...]
) -> tuple[Variables, ...]:
    """The variables of each cluster, in the division of the cliques whose derived tables hold the least noise.

    `most_cells[m - 1]` is the most cells of a cluster where there are m.
    """
    start = tuple((clique, 1) for clique in cliques)
    is_small = len(cliques) <= MOST_EXACT
    divisions = _all_divisions(start) if is_small else _greedy_divisions(sizes, start, max(most_cells))
    admitted = [start, *(one for one in divisions if _is_admitted(sizes, one, most_cells))]
    best = min(admitted, key=lambda one: (total_noise(sizes, one, grows_by_root), len(one)))
    return tuple(variables for variables, _ in best)


def total_noise(sizes: Sequence[int], division: Clusters, grows_by_root: bool) -> int:
    """The noise variance of all cliques' tables together, up to a factor that does not depend on the division.

    Tables share a budget evenly: the variance of a cell grows with the square of their number, or with the number where
    noise grows only by the root.
    """
    tables = len(division) if grows_by_root else len(division) ** 2
    return tables * sum(_summand(sizes, cluster) for cluster in division)


def _is_admitted(sizes: Sequence[int], division: Clusters, most_cells: Sequence[int]) -> bool:
    largest = max(math.prod(sizes[v] for v in variables) for variables, _ in division)
    return largest <= most_cells[len(division) - 1]


def _all_divisions(cliques: Clusters) -> Iterator[Clusters]:
    """Every division of the cliques into clusters."""
    if not cliques:
        yield ()
        return
    first, *rest = cliques
    for division in _all_divisions(tuple(rest)):
        yield (first, *division)
        for place, other in enumerate(division):
            yield (*division[:place], _joined(first, other), *division[place + 1 :])


def _greedy_divisions(sizes: Sequence[int], cliques: Clusters, most_cells: int) -> Iterator[Clusters]:
    """Divisions into ever fewer clusters: of all pairs, those two are joined whose joint tables grow least."""
    left, waiting = dict[int, Cluster](), list[tuple[int, int, int]]()

    def offer(new: int, cluster: Cluster) -> None:
        for other, own in left.items():
            joined = _joined(own, cluster)
            if math.prod(sizes[v] for v in joined[0]) <= most_cells:
                growth = _summand(sizes, joined) - _summand(sizes, own) - _summand(sizes, cluster)
                heappush(waiting, (growth, other, new))
        left[new] = cluster

    for place, clique in enumerate(cliques):
        offer(place, clique)
    while waiting:
        _, one, other = heappop(waiting)
        if one in left and other in left:
            offer(max(left) + 1, _joined(left.pop(one), left.pop(other)))
            yield tuple(left.values())


def _joined(one: Cluster, other: Cluster) -> Cluster:
    return tuple(sorted({*one[0], *other[0]})), one[1] + other[1]


def _summand(sizes: Sequence[int], cluster: Cluster) -> int:
    return cluster[1] * math.prod(sizes[v] for v in cluster[0])
