"""Correlations from a cover: the table of every pair of variables, and their mutual information.

It does not know how the views were counted or which noise is in them beyond each table's variance.
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
    """The table of every pair (i, j), i < j, from `tables` in the order of the cover's views."""
    return {
        pair: table.project(pair, domain)
        for view, table in zip(cover.views, tables, strict=True)
        for pair in combinations(view, 2)
    }


def mutual_information(counts: NDArray[Any]) -> float:
    """In bits, of a table of two variables without negative cells; 0 of an empty one."""
    return float(_mutual_informations(counts[np.newaxis])[0])


def mutual_information_matrix(pairs: Mapping[Pair, Table], domain: Domain, total: int) -> NDArray[np.float64]:
    """In bits, of all pairs: symmetric, 0 on the diagonal; `total` is the public number of rows.

    Noisy tables are projected onto the simplex first: negative cells have no logarithm.
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
    """Of each table along the first axis: H(X) + H(Y) - H(X, Y)."""
    totals = tables.sum(axis=(1, 2), keepdims=True)
    shares = tables / np.where(totals > 0, totals, 1)
    marginals = _entropy(shares.sum(axis=2)) + _entropy(shares.sum(axis=1))
    information = marginals - _entropy(shares.reshape(len(tables), -1))
    return np.maximum(information, 0.0)  # of independent variables it may come out below 0 by a rounding


def _entropy(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    terms = shares * np.log2(np.where(shares > 0, shares, 1.0))
    return np.asarray(-terms.sum(axis=-1))
