"""Study of views: NOCD, direct pairs and PriView's covering designs, and the marginals that they answer.

It does not know networks or parties: the views are counted on the pooled rows, with one share of noise. Marginals are
worked out as PriView does (Qardaji et al. 2014): the noisy views are made to agree and to be non-negative, and each
marginal is the table of maximum entropy among those that agree with the views.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crypto.randomness import Stream
from crypto.sampling.laplace import discrete_laplace
from protocol.privacy.mechanisms import SENSITIVITY
from protocol.tables.counting import Rows
from protocol.tables.distance import attribute_sets
from protocol.tables.domain import Domain, Variables
from protocol.tables.marginal import Table, project_to_simplex
from protocol.views.cover import Cover, cover, direct_pairs

Views = list[Variables]

DESIGNS = ("nocd", "nocd-paper", "pairs", "priview", "priview-triples")
MOST_PAIRS, MOST_SETS = 2_000, 200  # of more marginals, a sample is measured; PriView measures 200
_VIEW_SIZES = range(2, 9)
_SMALLEST_VARIANCE = 1e-9  # at large budgets, no noise at all may be left
_ROUNDS = 100  # of proportional fitting
_SETTLED = 1e-4  # share of the rows; smaller changes end the fitting


def marginal_errors(
    rows: Rows, domain: Domain, design: str, epsilon: Fraction, ways: Sequence[int], stream: Stream
) -> dict[str, float]:
    """Return, for each number of ways, the mean total variation distance between answered and true marginals."""
    sizes = domain.sizes[: domain.count]
    found = design_of(sizes, design)
    views = []
    for view, budget, variance in zip(found.views, found.budgets(epsilon), found.variances(epsilon), strict=True):
        counts = rows.table(view)
        noise = discrete_laplace(budget / SENSITIVITY, counts.size, stream).reshape(counts.shape)
        views.append(Table(view, (counts + noise).astype(np.float64), max(variance, _SMALLEST_VARIANCE)))
    views = reconciled(views, domain, rows.count)
    errors = {}
    for many in ways:
        most = MOST_PAIRS if many <= 2 else MOST_SETS
        chosen = attribute_sets(domain.count, many, most, Stream.keyed(b"subn sweep", "marginals"))
        distances = [_distance(rows.table(one), marginal(views, one, domain, rows.count)) for one in chosen]
        errors[f"{many}-way"] = float(np.mean(distances))
    return errors


def design_of(sizes: Sequence[int], design: str) -> Cover:
    if design == "nocd":
        return cover(sizes, "expected-error", "cube-root")
    if design == "nocd-paper":
        return cover(sizes, "paper", "equal", primes_only=True)
    if design == "pairs":
        return direct_pairs(sizes, "equal")
    make, ways = (covering_design, 2) if design == "priview" else (covering_triples, 3)
    designs = (make(len(sizes), k) for k in _VIEW_SIZES if k >= ways)
    views = min(designs, key=lambda found: averaged_error(sizes, found, ways))
    return Cover(tuple(sizes), tuple(views), (1,) * len(views))


def covering_design(count: int, k: int) -> Views:
    """Return a covering design C(count, k, 2). Each view starts with an uncovered pair and grows greedily."""
    missing = ~np.eye(count, dtype=bool)
    views = []
    while missing.any():
        first = int(missing.sum(axis=1).argmax())
        view = [first, int((missing[first] * (1 + missing.sum(axis=1))).argmax())]
        while len(view) < min(k, count):
            gain = missing[view].sum(axis=0) * count + missing.sum(axis=0)
            gain[view] = -1
            view.append(int(gain.argmax()))
        missing[np.ix_(view, view)] = False
        views.append(tuple(sorted(view)))
    return views


def covering_triples(count: int, k: int) -> Views:
    """Return a covering design C(count, k, 3), which grows like that of pairs."""
    place = np.arange(count)
    missing = (place[:, None, None] < place[:, None]) & (place[:, None] < place)
    missing = np.logical_or.reduce([missing.transpose(order) for order in permutations(range(3))])
    views = []
    while missing.any():
        view = [int(v) for v in np.unravel_index(int(missing.argmax()), missing.shape)]
        while len(view) < min(k, count):
            pairs = missing[view].sum(axis=0)
            gain = pairs[view].sum(axis=0) * count**2 + pairs.sum(axis=0)
            gain[view] = -1
            view.append(int(gain.argmax()))
        missing[np.ix_(view, view, view)] = False
        views.append(tuple(sorted(view)))
    return views


def averaged_error(sizes: Sequence[int], views: Views, ways: int = 2) -> float:
    """Return the squared error over all tables of so many ways, in units of one cell's variance at the whole budget."""
    precision: dict[Variables, float] = defaultdict(float)
    for view in views:
        for part in combinations(view, ways):
            precision[part] += 1 / math.prod(sizes[v] for v in view)
    return len(views) ** 2 * sum(1 / p for p in precision.values())


def reconciled(views: Sequence[Table], domain: Domain, total: int) -> list[Table]:
    """Make views agree on what they share, then non-negative, then agree again.

    PriView removes negative cells by its Ripple step, which needs two-valued attributes. The projection onto
    non-negative counts with the same total takes its place.
    """
    positive = [replace(one, counts=project_to_simplex(one.counts, total)) for one in agreeing(views, domain, total)]
    return agreeing(positive, domain, total)


def agreeing(views: Sequence[Table], domain: Domain, total: int) -> list[Table]:
    """Give every set of variables that several views share its mean over these views, weighted by precision.

    Sets come before sets that hold them: a change of a view's table over a set keeps its tables over parts of the set.
    """
    found = [replace(one, counts=one.counts + (total - one.counts.sum()) / one.counts.size) for one in views]
    held = [frozenset(one.variables) for one in views]
    for shared in sorted(_intersections(held), key=lambda one: (len(one), sorted(one))):
        holders = [place for place, own in enumerate(held) if shared <= own]
        tables = [found[place].project(tuple(sorted(shared)), domain) for place in holders]
        mean = np.average([one.counts for one in tables], axis=0, weights=[1 / one.variance for one in tables])
        for place, own in zip(holders, tables, strict=True):
            view = found[place]
            change = (mean - own.counts) * own.counts.size / view.counts.size
            axes = [domain.sizes[v] if v in shared else 1 for v in view.variables]
            found[place] = replace(view, counts=view.counts + change.reshape(axes))
    return found


def _intersections(views: Sequence[frozenset[int]]) -> set[frozenset[int]]:
    """Return every set of variables that is the intersection of two or more views."""
    found = new = {one & other for one, other in combinations(views, 2)} - {frozenset()}
    while new:
        new = {one & other for one in new for other in views} - found - {frozenset()}
        found = found | new
    return found


def marginal(views: Sequence[Table], wanted: Variables, domain: Domain, total: int) -> NDArray[np.float64]:
    """Return the table of maximum entropy that agrees with all that views say, by iterative proportional fitting."""
    said: dict[Variables, Table] = {}
    for view in views:
        shared = tuple(v for v in wanted if v in view.variables)
        if shared and shared not in said:
            said[shared] = view.project(shared, domain)
    largest = [one for one in said if not any(set(one) < set(other) for other in said)]
    goals = [(_axes_without(wanted, one), np.maximum(said[one].counts, 0.0)) for one in largest]
    shape = tuple(domain.sizes[v] for v in wanted)
    counts = np.full(shape, total / math.prod(shape))
    for _ in range(_ROUNDS if len(goals) > 1 else 1):
        before = counts
        for axes, goal in goals:
            now = counts.sum(axis=axes, keepdims=True)
            wished = goal.reshape(now.shape)
            counts = counts * np.divide(wished, now, out=np.zeros_like(now), where=now > 0)
        if float(np.abs(counts - before).sum()) < _SETTLED * total:
            break
    return counts


def _axes_without(wanted: Variables, kept: Variables) -> tuple[int, ...]:
    return tuple(axis for axis, variable in enumerate(wanted) if variable not in kept)


def _distance(true: NDArray[Any], seen: NDArray[np.float64]) -> float:
    total = int(true.sum())
    return float(np.abs(project_to_simplex(seen, total) - true).sum() / 2 / total)
