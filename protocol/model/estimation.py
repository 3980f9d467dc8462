"""Estimation: one model of all noisy tables that a run released, each trusted as far as its noise allows.

It does not know rows, budgets or who asked for which table.

Among all distributions of the rows that a junction tree can hold, it finds the one that the tables and a prior make
likeliest, by mirror descent with momentum, and the weight of the prior with it (`estimation.md`).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from protocol.model.clique_answers import Reader, reader
from protocol.model.junction_tree import Array, JunctionTree, cells, places
from protocol.tables.domain import Variables

_STEPS = 200
_HALVINGS = 30
_SMALLEST_GAIN = 1e-3  # with which it ends; the logarithm of how much likelier the tables become
_ROUNDING = 1e-12  # of the loss: smaller gains are none
_LONGER = 1.1  # how much longer a step may be after one that went well
_SMALLEST_SHARE = 1e-9  # of a code in the prior
_FIRST_ROWS = 30.0  # where the search for the prior's weight starts
_ROUNDS = 6  # of that search
_SETTLED = 1.1  # a factor between two weights of the prior that makes no difference


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
class Weighted:
    """A table over rising variables, and for every cell 1 / variance.

    The weight is negative where other tables over more variables say the same again.
    """

    variables: Variables
    counts: Array
    weights: Array


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
class _Problem:
    tree: JunctionTree
    measured: Sequence[_Measurement]
    prior: Sequence[Array]  # the potentials of independent variables
    rows: float  # as if so many rows of the prior had been seen


@dataclass(frozen=True, eq=False)
class _Point:
    """Potentials, the distributions that they make, and how well these answer."""

    potentials: Sequence[Array]
    shares: Sequence[Array]
    answers: Sequence[Array]  # by measurement
    divergence: float  # from the prior
    loss: float


def fit(
    sizes: Sequence[int],
    cliques: Sequence[Variables],
    tables: Sequence[Weighted],
    total: float,
    shares: Sequence[Array],
) -> Model:
    """The model of `total` rows over these cliques that tables inside them make likeliest.

    The prior is that the variables are independent, each with its shares; how much that weighs, the tables decide.
    """
    merged = _merged(tables)
    tree = JunctionTree.of(sizes, [*cliques, *merged])
    measured, prior = _measurements(tree, merged, total), _prior(tree, shares)
    spread = _interactions(merged, shares, total)
    rows = _FIRST_ROWS
    here: Sequence[Array] = prior
    for _ in range(_ROUNDS):
        found = _descend(_Problem(tree, measured, prior, rows), here)
        likelier = min(total, _likeliest_rows(spread, rows, found.divergence))
        if 1 / _SETTLED < likelier / rows < _SETTLED:
            break
        rows, here = likelier, found.potentials
    return Model(tree, tuple(found.shares))


def _merged(tables: Sequence[Weighted]) -> dict[Variables, tuple[Array, Array]]:
    """By variables: the sum of all weights, and of all weighted counts."""
    found: dict[Variables, tuple[Array, Array]] = {}
    for table in tables:
        weight, weighted = found.get(table.variables, (0.0, 0.0))
        found[table.variables] = weight + table.weights, weighted + table.weights * table.counts
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
        asked = reader(tree.sizes, tree.cliques[home], own)
        found.append(_Measurement(home, asked, weights * total**2, weighted * total))
    return found


def _prior(tree: JunctionTree, shares: Sequence[Array]) -> list[Array]:
    found = [np.zeros(tree.shape(clique)) for clique in tree.cliques]
    for variable, own in enumerate(shares):
        home = tree.home((variable,))
        positive = np.maximum(own, _SMALLEST_SHARE)
        axes = [tree.sizes[v] if v == variable else 1 for v in tree.cliques[home]]
        found[home] = found[home] + np.log(positive / positive.sum()).reshape(axes)
    return found


def _interactions(
    merged: Mapping[Variables, tuple[Array, Array]], shares: Sequence[Array], total: float
) -> list[tuple[float, Array]]:
    """Of every table: which part of its cells' freedom is not its single variables', and as how many rows it weighs."""
    found = []
    for variables, (weights, _) in merged.items():
        if len(variables) > 1:
            free = math.prod(1 - 1 / size for size in weights.shape)
            expected = math.prod(np.ix_(*(shares[v] for v in variables)))
            found.append((free, weights * total**2 * expected))
    return found


def _likeliest_rows(interactions: Sequence[tuple[float, Array]], rows: float, divergence: float) -> float:
    """The weight of the prior under which the model lies from it as far as so many free parameters make it lie."""
    decided = sum(free * float((own / (own + rows)).sum()) for free, own in interactions)
    return decided / (2 * divergence) if decided > 0 and divergence > 0 else rows


def _descend(problem: _Problem, potentials: Sequence[Array]) -> _Point:
    """Mirror descent on the cliques' potentials; momentum starts anew whenever the loss has risen (Nesterov)."""
    here = before = _point(problem, potentials)
    length, momentum = 1 / (problem.rows + max(float(m.weights.max()) for m in problem.measured)), 0
    for _ in range(_STEPS):
        start = _ahead(problem, here, before, momentum / (momentum + 3)) if momentum else here
        length, following = _step(problem, start, length)
        if following.loss > here.loss and momentum:
            before, momentum = here, 0
            continue
        gain = here.loss - following.loss
        before, here, momentum = here, following, momentum + 1
        if gain < _SMALLEST_GAIN + _ROUNDING * abs(following.loss):
            break
    return here


def _ahead(problem: _Problem, here: _Point, before: _Point, share: float) -> _Point:
    """Further in the direction of the last step."""
    pairs = zip(here.potentials, before.potentials, strict=True)
    return _point(problem, [now + share * (now - then) for now, then in pairs])


def _step(problem: _Problem, start: _Point, length: float) -> tuple[float, _Point]:
    """One step down the gradient at `start`, as long as it brings at least half of what the gradient promises."""
    slopes = _slopes(problem, start)
    for _ in range(_HALVINGS):
        moved = [potential - length * slope for potential, slope in zip(start.potentials, slopes, strict=True)]
        following = _point(problem, moved)
        ways = zip(slopes, start.shares, following.shares, strict=True)
        promised = sum(_product(slope, own - other) for slope, own, other in ways)
        if start.loss - following.loss >= promised / 2:
            break
        length /= 2
    return length * _LONGER, following


def _point(problem: _Problem, potentials: Sequence[Array]) -> _Point:
    shares, logarithm = problem.tree.marginals(potentials)
    answers = [one.reader.answers(shares[one.home]) for one in problem.measured]
    loss = sum(m.loss(own) for m, own in zip(problem.measured, answers, strict=True))
    ways = zip(shares, potentials, problem.prior, strict=True)
    divergence = sum(_product(own, now - prior) for own, now, prior in ways) - logarithm
    return _Point(potentials, shares, answers, divergence, loss + problem.rows * divergence)


def _slopes(problem: _Problem, point: _Point) -> list[Array]:
    """The gradient of the loss in every clique's shares."""
    found = [problem.rows * (now - prior) for now, prior in zip(point.potentials, problem.prior, strict=True)]
    for one, answers in zip(problem.measured, point.answers, strict=True):
        found[one.home] += one.reader.spread(one.slopes(answers)).reshape(found[one.home].shape)
    return found


def _product(one: Array, other: Array) -> float:
    return float(one.ravel() @ other.ravel())
