"""Estimation: one model of all noisy tables that a run released, each trusted as far as its noise allows.

It does not know rows, budgets or who asked for which table.

Among all distributions of the rows that a junction tree can hold, it finds one that minimises the sum of squared
differences from the tables, each divided by the table's variance, by mirror descent with momentum (`estimation.md`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from protocol.junction import Array, JunctionTree, dropped
from protocol.marginal import Table

_LEAST_VARIANCE = 1e-6  # where a budget is so large that no noise is left
_STEPS = 200
_HALVINGS = 30
_SMALLEST_GAIN = 1e-7  # of the loss, with which it ends
_LONGER = 1.1  # how much longer a step may be after one that went well


@dataclass(frozen=True, eq=False)
class Model:
    """A distribution of rows: what every clique of the tree says of its variables, agreeing where they overlap."""

    tree: JunctionTree
    cliques: tuple[Array, ...]

    def shares(self, variables: tuple[int, ...]) -> Array:
        """The distribution of variables that lie in one clique, in rising order."""
        home = self.tree.home(variables)
        return np.asarray(self.cliques[home].sum(axis=dropped(self.tree.cliques[home], variables)))


@dataclass(frozen=True, eq=False)
class _Measurement:
    """A table as the tree sees it: where it lies, which shares were measured, and how much each is worth."""

    home: int
    variables: tuple[int, ...]
    axes: tuple[int, ...]  # of the clique, summed over to answer the table
    shares: Array
    weights: Array  # 1 / variance of each share


def fit(sizes: Sequence[int], tables: Sequence[Table], variances: Sequence[Array], total: float) -> Model:
    """The model of tables over rising variables, with a variance for every cell, of `total` rows."""
    tree = JunctionTree.of(sizes, [table.variables for table in tables])
    measured = [_measurement(tree, table, own, total) for table, own in zip(tables, variances, strict=True)]
    return Model(tree, tuple(_descend(tree, measured)))


def _measurement(tree: JunctionTree, table: Table, variance: Array, total: float) -> _Measurement:
    home = tree.home(table.variables)
    axes = dropped(tree.cliques[home], table.variables)
    return _Measurement(
        home, table.variables, axes, table.counts / total, total**2 / np.maximum(variance, _LEAST_VARIANCE)
    )


def _descend(tree: JunctionTree, measured: Sequence[_Measurement]) -> list[Array]:
    """Mirror descent on the cliques' potentials; momentum starts anew whenever the loss has risen (Nesterov)."""
    here = [np.zeros(tree.shape(clique)) for clique in tree.cliques]
    before, shares = here, tree.marginals(here)
    loss, _ = _loss(tree, measured, shares)
    length, momentum = 1 / max(float(m.weights.max()) for m in measured), 0
    for _ in range(_STEPS):
        ahead = momentum / (momentum + 3)
        start = [now + ahead * (now - then) for now, then in zip(here, before, strict=True)]
        length, following, found = _step(tree, measured, start, length)
        new_loss, _ = _loss(tree, measured, found)
        if new_loss > loss and momentum:
            before, momentum = here, 0
            continue
        before, here, shares, momentum = here, following, found, momentum + 1
        if loss - new_loss < _SMALLEST_GAIN * loss:
            break
        loss = new_loss
    return shares


def _step(
    tree: JunctionTree, measured: Sequence[_Measurement], start: Sequence[Array], length: float
) -> tuple[float, list[Array], list[Array]]:
    """One step down the gradient at `start`, as long as it brings at least half of what the gradient promises."""
    shares = tree.marginals(start)
    loss, slopes = _loss(tree, measured, shares)
    for _ in range(_HALVINGS):
        following = [potential - length * slope for potential, slope in zip(start, slopes, strict=True)]
        found = tree.marginals(following)
        promised = sum(float((s * (a - b)).sum()) for s, a, b in zip(slopes, shares, found, strict=True))
        if loss - _loss(tree, measured, found)[0] >= promised / 2:
            break
        length /= 2
    return length * _LONGER, following, found


def _loss(tree: JunctionTree, measured: Sequence[_Measurement], shares: Sequence[Array]) -> tuple[float, list[Array]]:
    """Half the weighted sum of squared differences, and its gradient in every clique's shares."""
    loss, slopes = 0.0, [np.zeros(own.shape) for own in shares]
    for one in measured:
        difference = shares[one.home].sum(axis=one.axes) - one.shares
        weighted = one.weights * difference
        loss += float((difference * weighted).sum()) / 2
        slopes[one.home] += tree.spread(weighted, one.variables, tree.cliques[one.home])
    return loss, slopes
