"""Triangulation as its definition says: every rank, clique and way is worked out from scratch, and never kept.

It does not know how `protocol.model` keeps what a change leaves alone.
"""

import math
from itertools import combinations


def elimination(sizes, tables):
    """Pairs of a variable and its remaining neighbours, in the order of elimination."""
    around = {v: {w for t in tables if v in t for w in t} - {v} for v in range(len(sizes))}

    def rank(variable):
        missing = sum(other not in around[one] for one, other in combinations(around[variable], 2))
        return missing, sum(math.log(max(2, sizes[v])) for v in sorted({variable} | around[variable])), variable

    while around:
        variable = min(around, key=rank)
        neighbours = around.pop(variable)
        yield variable, neighbours
        for other in neighbours:
            around[other] = (around[other] | neighbours) - {variable, other}


def cliques(sizes, tables):
    found = []
    for variable, neighbours in elimination(sizes, tables):
        if not any({variable} | neighbours <= clique for clique in found):
            found.append({variable} | neighbours)
    return [tuple(sorted(clique)) for clique in found]


def spanning_tree(cliques):
    """The cliques' order, and the places of their parents in it (Prim)."""
    order, parents, outside = [0], [0], set(range(1, len(cliques)))
    while outside:
        _, _, place, clique = max(
            (len(set(cliques[inner]) & set(cliques[outer])), -outer, place, outer)
            for outer in outside
            for place, inner in enumerate(order)
        )
        order.append(clique)
        parents.append(place)
        outside.remove(clique)
    return order, parents


def grown_cells(tree, one, other):
    """The cells of the tree's cliques after one of two variables was carried on the shortest way to the other."""
    whole = sum(math.prod(tree.shape(clique)) for clique in tree.cliques)
    grown = [
        whole + sum((tree.sizes[carried] - 1) * math.prod(tree.shape(clique)) for clique in way)
        for carried, wanted in ((one, other), (other, one))
        for way in _ways(tree, carried, wanted)
    ]
    return min(grown, default=whole + tree.sizes[one] * tree.sizes[other])


def _ways(tree, carried, wanted):
    """The cliques to which the first variable has to be added, on every way from its cliques to the second's."""
    edges = {frozenset((i, p)) for i, p in enumerate(tree.parents) if set(tree.cliques[i]) & set(tree.cliques[p])}
    ways = [[i] for i, clique in enumerate(tree.cliques) if carried in clique]
    while ways:
        way = ways.pop()
        if wanted in tree.cliques[way[-1]]:
            yield [tree.cliques[i] for i in way[1:]]
        ways += [[*way, i] for i in range(len(tree.cliques)) if frozenset((way[-1], i)) in edges and i not in way]
