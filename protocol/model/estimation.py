"""Estimation of one model from all noisy tables that a run released, each weighted by the inverse of its variance.

It does not know rows, budgets or which stage asked for a table.

Among all distributions of the rows that a junction tree can hold, it finds the likeliest distribution given the tables
and a prior, by mirror descent with momentum. It also finds the weight of the prior (`estimation.md`).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from protocol.model.clique_answers import CliqueAnswers, clique_answers
from protocol.model.junction_tree import Array, JunctionTree, places
from protocol.model.triangulation import cells
from protocol.tables.domain import Variables

_STEPS = 400
_LOOK = 25  # steps after which the weight of the prior is looked at again
_CHANGES = 5  # of this weight: where columns are independent, it would grow without end
_HALVINGS = 30
_SMALLEST_GAIN = 1e-3  # gain of the tables' log-likelihood at which the descent ends
_ROUNDING = 1e-12  # share of the loss; smaller gains may be rounding errors
_LONGER = 1.1  # factor by which a step may be longer after a successful step
_SMALLEST_SHARE = 1e-9  # least share of a code in the prior
_FIRST_ROWS = 30.0  # the prior's weight, in rows, at which the search for this weight starts
_SETTLED = 1.1  # a ratio of two weights of the prior that is close enough to 1 to keep the former


@dataclass(frozen=True, eq=False)
class GraphicalModel:
    """A distribution of rows: the distribution of each clique of the tree; cliques agree where they overlap."""

    tree: JunctionTree
    cliques: tuple[Array, ...]

    def shares(self, variables: Variables) -> Array:
        """The distribution of variables that lie together in a clique."""
        home = self.tree.home(variables)
        index = places(self.tree.sizes, self.tree.cliques[home], variables)
        counted = np.bincount(index, self.cliques[home].ravel(), cells(self.tree.sizes, variables))
        return np.asarray(counted.reshape(self.tree.shape(variables)), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Weighted:
    """A table over rising variables, with a weight of 1 / variance for every cell.

    The weight is negative where other tables over more variables repeat the same information.
    """

    variables: Variables
    counts: Array
    weights: Array


@dataclass(frozen=True, eq=False)
class _Measurement:
    """All tables that one clique answers, cell after cell: the weights w, and w times the measured counts.

    The measured counts are never recovered by dividing by w. Where negative weights cancel a table, the quotient would
    be nothing but rounding errors.
    """

    home: int
    clique: CliqueAnswers
    weights: Array
    weighted: Array

    def slopes(self, answers: Array) -> Array:
        return self.weights * answers - self.weighted

    def loss(self, answers: Array) -> float:
        """Half the weighted sum of squared differences, up to a constant that does not depend on the model."""
        return float((self.weights * answers / 2 - self.weighted) @ answers)


@dataclass(frozen=True, eq=False)
class _Problem:
    tree: JunctionTree
    measured: Sequence[_Measurement]
    prior: Sequence[Array]  # the potentials of independent variables
    rows: float  # weight of the prior, as if so many rows of it had been seen


@dataclass(frozen=True, eq=False)
class _Point:
    """Potentials, the distributions that follow from them, and the loss of these distributions."""

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
) -> GraphicalModel:
    """Fit the likeliest model of `total` rows over these cliques, given tables that lie inside them.

    Under the prior, the variables are independent, each with its shares. The tables decide how much the prior weighs.
    """
    merged = _merged(tables)
    tree = JunctionTree.of(sizes, [*cliques, *merged])
    spread = _interactions(merged, shares, total)

    def likeliest(rows: float, divergence: float) -> float:
        return min(total, _likeliest_rows(spread, rows, divergence))

    problem = _Problem(tree, _measurements(tree, merged, total), _prior(tree, shares), _FIRST_ROWS)
    return GraphicalModel(tree, tuple(_descend(problem, likeliest).shares))


def _merged(tables: Sequence[Weighted]) -> dict[Variables, tuple[Array, Array]]:
    """Sum the weights and the weighted counts of tables over the same variables."""
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
        asked = clique_answers(tree.sizes, tree.cliques[home], own)
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
    """For each table: its share of interaction degrees of freedom, and the weights of its cells in equivalent rows."""
    found = []
    for variables, (weights, _) in merged.items():
        if len(variables) > 1:
            free = 1 - (1 + sum(size - 1 for size in weights.shape)) / weights.size
            expected = math.prod(np.ix_(*(shares[v] for v in variables)))
            found.append((free, weights * total**2 * expected))
    return found


def _likeliest_rows(interactions: Sequence[tuple[float, Array]], rows: float, divergence: float) -> float:
    """The prior weight at which the model's divergence is what its effective number of parameters explains."""
    decided = sum(free * float((own / (own + rows)).sum()) for free, own in interactions)
    return decided / (2 * divergence) if decided > 0 and divergence > 0 else rows


def _descend(problem: _Problem, likeliest: Callable[[float, float], float]) -> _Point:
    """Minimise the loss by mirror descent on the cliques' potentials, with Nesterov's momentum.

    Momentum restarts whenever the loss has risen. `likeliest` tells a better weight of the prior, given the present one
    and the divergence; the descent goes on under it.
    """
    here = before = _point(problem, problem.prior)
    length = 1 / (problem.rows + max(float(m.weights.max()) for m in problem.measured))
    momentum = changes = looked = 0
    for number in range(1, _STEPS + 1):
        start = _ahead(problem, here, before, momentum / (momentum + 3)) if momentum else here
        length, following = _step(problem, start, length)
        if following.loss > here.loss and momentum:
            before, momentum = here, 0
            continue
        gain = here.loss - following.loss
        before, here, momentum = here, following, momentum + 1
        is_low = gain < _SMALLEST_GAIN + _ROUNDING * abs(following.loss)
        if is_low or number - looked >= _LOOK:
            looked, rows = number, likeliest(problem.rows, here.divergence)
            if changes < _CHANGES and not 1 / _SETTLED < rows / problem.rows < _SETTLED:
                problem, here = _reweighed(problem, here, rows)
                changes += 1
            elif is_low:
                break
    return here


def _reweighed(problem: _Problem, here: _Point, rows: float) -> tuple[_Problem, _Point]:
    """The problem with another weight of the prior, and the same point in it."""
    return replace(problem, rows=rows), replace(here, loss=here.loss + (rows - problem.rows) * here.divergence)


def _ahead(problem: _Problem, here: _Point, before: _Point, share: float) -> _Point:
    """The point beyond `here` in the direction of the last step."""
    pairs = zip(here.potentials, before.potentials, strict=True)
    return _point(problem, [now + share * (now - then) for now, then in pairs])


def _step(problem: _Problem, start: _Point, length: float) -> tuple[float, _Point]:
    """Take one step down the gradient at `start`, halved until it gains at least half of what the gradient predicts.

    Returns the length for the next step, and the point reached.
    """
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
    answers = [one.clique.answers(shares[one.home]) for one in problem.measured]
    loss = sum(m.loss(own) for m, own in zip(problem.measured, answers, strict=True))
    ways = zip(shares, potentials, problem.prior, strict=True)
    divergence = sum(_product(own, now - prior) for own, now, prior in ways) - logarithm
    return _Point(potentials, shares, answers, divergence, loss + problem.rows * divergence)


def _slopes(problem: _Problem, point: _Point) -> list[Array]:
    """The gradient of the loss with respect to each clique's shares."""
    found = [problem.rows * (now - prior) for now, prior in zip(point.potentials, problem.prior, strict=True)]
    for one, answers in zip(problem.measured, point.answers, strict=True):
        found[one.home] += one.clique.spread(one.slopes(answers)).reshape(found[one.home].shape)
    return found


def _product(one: Array, other: Array) -> float:
    return float(one.ravel() @ other.ravel())
