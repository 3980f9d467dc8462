"""Estimation: one model of all noisy tables that a run released, each trusted as far as its noise allows.

It does not know rows, budgets or who asked for which table.

Among all distributions of the rows that a junction tree can hold, it finds one that minimises the sum of squared
differences from the tables, each divided by the table's variance, by mirror descent with momentum (`estimation.md`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from protocol.answering import Reader, reader
from protocol.domain import Variables
from protocol.junction import Array, JunctionTree, cells, places
from protocol.marginal import Table

_STEPS = 200
_HALVINGS = 30
_SMALLEST_GAIN = 1e-3  # with which it ends; the logarithm of how much likelier the tables become
_ROUNDING = 1e-12  # of the loss: smaller gains are none
_LONGER = 1.1  # how much longer a step may be after one that went well


@dataclass(frozen=True, eq=False)
class Model:
    """A distribution of rows: what every clique of the tree says of its variables, agreeing where they overlap."""

    tree: JunctionTree
    cliques: tuple[Array, ...]

    def shares(self, variables: Variables) -> Array:
        """The distribution of variables that lie in one clique."""
        home = self.tree.home(variables)
        index = places(self.tree.sizes, self.tree.cliques[home], variables)
        counted = np.bincount(index, self.cliques[home].ravel(), cells(self.tree.sizes, variables))
        return np.asarray(counted.reshape(self.tree.shape(variables)), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class _Measurement:
    """All tables that one clique answers, cell after cell: weights w, and w times what was measured.

    Never divided by w: where negative weights leave nothing of a table, rounding would be all that it says.
    """

    home: int
    reader: Reader
    weights: Array
    weighted: Array

    def slopes(self, answers: Array) -> Array:
        return self.weights * answers - self.weighted

    def loss(self, answers: Array) -> float:
        """Half the weighted sum of squares, less what no model changes."""
        return float((self.weights * answers / 2 - self.weighted) @ answers)


@dataclass(frozen=True, eq=False)
class _Point:
    """Potentials, the distributions that they make, and how well these answer."""

    potentials: Sequence[Array]
    shares: Sequence[Array]
    answers: Sequence[Array]  # by measurement
    loss: float  # half the weighted sum of squared differences, less a constant


def fit(sizes: Sequence[int], tables: Sequence[Table], weights: Sequence[Array], total: float) -> Model:
    """The model of `total` rows that answers tables over rising variables best, each cell with its weight.

    A weight is 1 / variance; it may be negative where other tables over more variables say the same again.
    """
    merged = _merged(tables, weights)
    tree = JunctionTree.of(sizes, merged)
    return Model(tree, tuple(_descend(tree, _measurements(tree, merged, total)).shares))


def _merged(tables: Sequence[Table], weights: Sequence[Array]) -> dict[Variables, tuple[Array, Array]]:
    """By variables: the sum of all weights, and of all weighted counts."""
    found: dict[Variables, tuple[Array, Array]] = {}
    for table, own in zip(tables, weights, strict=True):
        weight, weighted = found.get(table.variables, (0.0, 0.0))
        found[table.variables] = weight + own, weighted + own * table.counts
    return found


def _measurements(
    tree: JunctionTree, merged: Mapping[Variables, tuple[Array, Array]], total: float
) -> list[_Measurement]:
    by_home: dict[int, list[Variables]] = {}
    for variables in merged:
        by_home.setdefault(tree.home(variables), []).append(variables)
    found = []
    for home, own in by_home.items():
        weights, weighted = (np.concatenate([merged[v][part].ravel() for v in own]) for part in (0, 1))
        found.append(
            _Measurement(home, reader(tree.sizes, tree.cliques[home], own), weights * total**2, weighted * total)
        )
    return found


def _descend(tree: JunctionTree, measured: Sequence[_Measurement]) -> _Point:
    """Mirror descent on the cliques' potentials; momentum starts anew whenever the loss has risen (Nesterov)."""
    here = _point(tree, measured, [np.zeros(tree.shape(clique)) for clique in tree.cliques])
    before = here
    length, momentum = 1 / max(float(m.weights.max()) for m in measured), 0
    for _ in range(_STEPS):
        start = _ahead(tree, measured, here, before, momentum / (momentum + 3)) if momentum else here
        length, following = _step(tree, measured, start, length)
        if following.loss > here.loss and momentum:
            before, momentum = here, 0
            continue
        gain = here.loss - following.loss
        before, here, momentum = here, following, momentum + 1
        if gain < _SMALLEST_GAIN + _ROUNDING * abs(following.loss):
            break
    return here


def _ahead(tree: JunctionTree, measured: Sequence[_Measurement], here: _Point, before: _Point, share: float) -> _Point:
    """Further in the direction of the last step."""
    pairs = zip(here.potentials, before.potentials, strict=True)
    return _point(tree, measured, [now + share * (now - then) for now, then in pairs])


def _step(tree: JunctionTree, measured: Sequence[_Measurement], start: _Point, length: float) -> tuple[float, _Point]:
    """One step down the gradient at `start`, as long as it brings at least half of what the gradient promises."""
    slopes = _slopes(measured, start)
    for _ in range(_HALVINGS):
        moved = [potential - length * slope for potential, slope in zip(start.potentials, slopes, strict=True)]
        following = _point(tree, measured, moved)
        if start.loss - following.loss >= _promised(measured, start, following) / 2:
            break
        length /= 2
    return length * _LONGER, following


def _promised(measured: Sequence[_Measurement], start: _Point, following: _Point) -> float:
    """The gradient times the way: what the loss would fall by if it were a plane."""
    both = zip(measured, start.answers, following.answers, strict=True)
    return sum(float(m.slopes(before) @ (before - after)) for m, before, after in both)


def _point(tree: JunctionTree, measured: Sequence[_Measurement], potentials: Sequence[Array]) -> _Point:
    shares = tree.marginals(potentials)
    answers = [one.reader.answers(shares[one.home]) for one in measured]
    return _Point(potentials, shares, answers, sum(m.loss(own) for m, own in zip(measured, answers, strict=True)))


def _slopes(measured: Sequence[_Measurement], point: _Point) -> list[Array]:
    """The gradient of the loss in every clique's shares."""
    found = [np.zeros(own.shape) for own in point.shares]
    for one, answers in zip(measured, point.answers, strict=True):
        found[one.home] = one.reader.spread(one.slopes(answers)).reshape(found[one.home].shape)
    return found
