"""Study of views that cover all pairs of attributes: NOCD, direct pairs, and PriView-style covering designs.

It does not know networks or parties: the views are counted on the pooled rows, with one share of noise.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crypto.randomness import Stream
from crypto.sampling.laplace import discrete_laplace
from protocol.privacy.mechanisms import SENSITIVITY
from protocol.tables.counting import Rows
from protocol.tables.domain import Domain
from protocol.tables.marginal import Table, project_to_simplex
from protocol.views.cover import Cover, cover, direct_pairs

Pair = tuple[int, int]
Views = list[tuple[int, ...]]

DESIGNS = ("nocd", "nocd-paper", "pairs", "priview")
_VIEW_SIZES = range(2, 9)


def pair_error(rows: Rows, domain: Domain, design: str, epsilon: Fraction, stream: Stream) -> float:
    """Return the mean total variation distance between the noisy and the true tables of all pairs."""
    found = design_of(domain.sizes[: domain.count], design)
    estimates: dict[Pair, list[Table]] = defaultdict(list)
    shares = zip(found.views, found.budgets(epsilon), found.variances(epsilon), strict=True)
    for view, budget, variance in shares:
        counts = rows.table(view)
        noise = discrete_laplace(budget / SENSITIVITY, counts.size, stream).reshape(counts.shape)
        for pair in combinations(view, 2):
            estimates[pair].append(Table(view, counts + noise, variance).project(pair, domain))
    return float(np.mean([_distance(rows.table(pair), seen) for pair, seen in estimates.items()]))


def design_of(sizes: Sequence[int], design: str) -> Cover:
    if design == "nocd":
        return cover(sizes, "expected-error", "cube-root")
    if design == "nocd-paper":
        return cover(sizes, "paper", "equal", primes_only=True)
    if design == "pairs":
        return direct_pairs(sizes, "equal")
    views = min((covering_design(len(sizes), k) for k in _VIEW_SIZES), key=lambda v: averaged_error(sizes, v))
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


def averaged_error(sizes: Sequence[int], views: Views) -> float:
    """Return the squared error over all pair tables, in units of one cell's variance at the whole budget."""
    precision: dict[Pair, float] = defaultdict(float)
    for view in views:
        for pair in combinations(view, 2):
            precision[pair] += 1 / math.prod(sizes[v] for v in view)
    return len(views) ** 2 * sum(1 / p for p in precision.values())


def _distance(true: NDArray[Any], seen: Sequence[Table]) -> float:
    """Return the distance of a pair's estimate, which is the average over its views, weighted by precision."""
    counts = np.average([table.counts for table in seen], axis=0, weights=[1 / table.variance for table in seen])
    total = int(true.sum())
    return float(np.abs(project_to_simplex(counts, total) - true).sum() / 2 / total)
