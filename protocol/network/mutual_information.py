"""Correlations from a cover: the table of every pair of variables, and their mutual information.

It does not know how the views were counted, and of their noise it knows only each table's variance.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protocol.tables.domain import Domain
from protocol.tables.marginal import Table, project_to_simplex
from protocol.views.cover import Cover

Pair = tuple[int, int]


def pair_tables(cover: Cover, tables: Sequence[Table], domain: Domain) -> dict[Pair, Table]:
    """Sum the table of every pair (i, j), i < j, from `tables`, which are in the order of the cover's views."""
    return {
        pair: table.project(pair, domain)
        for view, table in zip(cover.views, tables, strict=True)
        for pair in combinations(view, 2)
    }


def mutual_information(counts: NDArray[Any]) -> float:
    """The mutual information, in bits, of a table of two variables without negative cells; 0 for an empty table."""
    return float(_mutual_informations(counts[np.newaxis])[0])


def mutual_information_matrix(pairs: Mapping[Pair, Table], domain: Domain, total: int) -> NDArray[np.float64]:
    """The mutual information of all pairs, in bits: a symmetric matrix with 0 on the diagonal.

    `total` is the public number of rows. Noisy tables are projected onto the simplex first, because negative cells have
    no logarithm.
    """
    same_shape: dict[tuple[int, ...], list[Pair]] = defaultdict(list)
    for pair, table in pairs.items():
        same_shape[table.counts.shape].append(pair)
    matrix = np.zeros((domain.count, domain.count))
    for group in same_shape.values():
        values = _mutual_informations(np.stack([project_to_simplex(pairs[pair].counts, total) for pair in group]))
        rows, columns = np.transpose(group)
        matrix[rows, columns] = matrix[columns, rows] = values
    return matrix


def _mutual_informations(tables: NDArray[Any]) -> NDArray[np.float64]:
    """The mutual information H(X) + H(Y) - H(X, Y) of each table along the first axis."""
    totals = tables.sum(axis=(1, 2), keepdims=True)
    shares = tables / np.where(totals > 0, totals, 1)
    marginals = _entropy(shares.sum(axis=2)) + _entropy(shares.sum(axis=1))
    information = marginals - _entropy(shares.reshape(len(tables), -1))
    return np.maximum(information, 0.0)  # rounding may take the value for independent variables below 0


def _entropy(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    terms = shares * np.log2(np.where(shares > 0, shares, 1.0))
    return np.asarray(-terms.sum(axis=-1))
