"""Growth: how large a model becomes by one more pair, estimated for all pairs at once without building a model.

It does not know which pairs are wanted, or how large a model may be.
"""

import numpy as np
from numpy.typing import NDArray

from protocol.model.junction_tree import Array, JunctionTree
from protocol.model.triangulation import TableGraph, cells


def grown_cells(graph: TableGraph) -> Array:
    """The cells of a model that holds the graph's tables and one pair, by the pair's variables.

    The model's cliques grow by one of the two variables on the way through the tree to the other one. A model that is
    built anew may be smaller.
    """
    tree = JunctionTree.of_graph(graph)
    sizes = np.array(graph.sizes, dtype=np.float64)
    weights = np.array([cells(graph.sizes, clique) for clique in tree.cliques], dtype=np.float64)
    inside = np.zeros((len(sizes), len(weights)), dtype=bool)
    for place, clique in enumerate(tree.cliques):
        inside[list(clique), place] = True
    ways = _least_over(inside, _ways(tree, weights))
    across = _least_over(inside, ways.T).T
    apart = np.isinf(across)
    across[apart] = 0
    grown = np.minimum((sizes[:, None] - 1) * across, (sizes - 1) * across.T)
    # Variables that are not connected meet in a clique of their own.
    return np.asarray(weights.sum() + np.where(apart, np.outer(sizes, sizes), grown))


def _ways(tree: JunctionTree, weights: Array) -> Array:
    """The cells of all cliques on the way from one clique to another, without the first; infinite without a way."""
    found = np.full((len(weights), len(weights)), np.inf)
    for place, (parent, separator) in enumerate(zip(tree.parents, tree.separators, strict=True)):
        if separator:
            found[:place, place] = found[:place, parent] + weights[place]
            found[place, :place] = found[parent, :place] + weights[parent]
        found[place, place] = 0.0
    return found


def _least_over(inside: NDArray[np.bool_], costs: Array) -> Array:
    """For every variable, the least costs among the cliques that hold it, which are the rows of `costs`."""
    return np.array([costs[own].min(axis=0) for own in inside])
