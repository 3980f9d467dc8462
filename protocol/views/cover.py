"""Covers: few views (marginals over several variables) in which every pair of variables lies exactly once (NOCD).

It does not know records or noise samples. A cover and its error follow from the domain sizes alone.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import combinations
from typing import Literal

import gmpy2

from protocol.errors import PlanError
from protocol.privacy.mechanisms import PURE, PrivacyDefinition
from protocol.tables.domain import Variables
from protocol.views.galois import lines
from protocol.views.search import (
    ONE_VIEW,
    PAIRS,
    ROOT_SCALE,
    Design,
    Search,
    Sizes,
    cell_summand,
    cube_root_summand,
    error_summand,
    least_product,
    least_total,
    product,
    square_root_summand,
    total,
    usable_columns,
)

Objective = Literal["expected-error", "paper"]
Budgets = Literal["equal", "cube-root", "square-root"]

SMALLEST_SHARE = 4  # a divisor: no table's share is smaller than an equal share divided by this number
LARGEST_VIEW = 2**20  # cells
MOST_SEARCHED = 400  # variables for which a search takes up to a quarter of a minute, and some hundred MB
MOST_PAIRED = 1000  # variables for which a quick search does, and a pass over all views can be asked for
_BOTH_ORDERS_UP_TO = 100  # variables
_ROOTS: dict[Budgets, int] = {"cube-root": 3, "square-root": 2}  # best for Laplace and Gaussian noise (covering.md)


@dataclass(frozen=True)
class Cover:
    domain_sizes: Sizes
    views: tuple[Variables, ...]
    weights: tuple[int, ...]  # view v is counted with the share weights[v] / sum(weights) of the budget

    @cached_property
    def view_cells(self) -> tuple[int, ...]:
        return tuple(math.prod(self.domain_sizes[v] for v in view) for view in self.views)

    @property
    def cells(self) -> int:
        return sum(self.view_cells)

    @cached_property
    def summands(self) -> tuple[int, ...]:
        """The noisy cells behind all pair tables of each view: every pair's table adds up all cells of its view."""
        return tuple(math.comb(len(view), 2) * cells for view, cells in zip(self.views, self.view_cells, strict=True))

    @property
    def error_factor(self) -> float:
        """Expected squared error of all pair tables, in units of one cell's variance at the whole budget.

        The factor is exact where the variance falls with the square of the budget, as for continuous Laplace noise.
        """
        terms = (c / w**2 for c, w in zip(self.summands, self.weights, strict=True))
        return sum(self.weights) ** 2 * math.fsum(terms)

    def budgets(self, budget: Fraction) -> tuple[Fraction, ...]:
        """Each view's share of the budget. The shares add up to the budget exactly."""
        whole = sum(self.weights)
        return tuple(budget * weight / whole for weight in self.weights)

    def variances(self, budget: Fraction, definition: PrivacyDefinition = PURE) -> tuple[float, ...]:
        """The variance of the noise in one cell of each view, for one share of noise."""
        variance = {share: definition.variance(definition.rate(share)) for share in set(self.budgets(budget))}
        return tuple(variance[share] for share in self.budgets(budget))

    def expected_squared_error(self, budget: Fraction, definition: PrivacyDefinition = PURE) -> float:
        """The expected squared error over all cells of all pair tables, summed from views with one share of noise."""
        return math.fsum(c * v for c, v in zip(self.summands, self.variances(budget, definition), strict=True))


def cover(
    domain_sizes: Sequence[int],
    objective: Objective,
    budgets: Budgets,
    primes_only: bool = False,
    largest_view: int = LARGEST_VIEW,
) -> Cover:
    """The best cover of these variables among all covers built of rows and columns (docs/protocol.md, section 5.1)."""
    return _cover(tuple(domain_sizes), objective, budgets, primes_only, largest_view)


@lru_cache(maxsize=16)  # a search may take seconds, and plans over the same variables are compared again and again
def _cover(sizes: Sizes, objective: Objective, budgets: Budgets, primes_only: bool, largest_view: int) -> Cover:
    _check_pairs(sizes, largest_view)
    search, least, rank = _search(len(sizes), objective, budgets, primes_only, largest_view)
    found = [(least(search, tuple(sizes[v] for v in order)), order) for order in _orders(sizes)]
    design, order = min(found, key=lambda design_and_order: rank(design_and_order[0]))
    views = tuple(sorted(tuple(sorted(order[p] for p in view)) for view in build_views(design)))
    return _with_weights(sizes, views, budgets)


def most_in_views(sizes: Sequence[int], objective: Objective, budgets: Budgets) -> int:
    """The most variables of such sizes for which a cover is found soon."""
    is_quick = objective == "paper" or (budgets != "equal" and len(set(sizes)) == 1)
    return MOST_PAIRED if is_quick else MOST_SEARCHED


def direct_pairs(domain_sizes: Sequence[int], budgets: Budgets) -> Cover:
    """Count every pair as a view of its own; covers are compared with this."""
    return _with_weights(tuple(domain_sizes), tuple(combinations(range(len(domain_sizes)), 2)), budgets)


def single_views(domain_sizes: Sequence[int], budgets: Budgets) -> Cover:
    """Count every variable alone. Unless budgets are equal, tables with more cells get larger shares."""
    views = tuple((variable,) for variable in range(len(domain_sizes)))
    weights = (1,) * len(views) if budgets == "equal" else table_weights(domain_sizes)
    return Cover(tuple(domain_sizes), views, weights)


def table_weights(cells: Sequence[int]) -> tuple[int, ...]:
    """Weights for tables with these numbers of cells that give the least noise in total: square roots of the cells.

    A table's noise is its number of cells over its share; the sum of c / w for a fixed sum of w is least where
    w ~ sqrt(c). No weight is below a third of the mean root, so that no share is below a quarter of an equal share.
    Without this limit a share could be too small for its noise to be drawn.
    """
    roots = [int(gmpy2.isqrt(gmpy2.mpz(count) << 32)) for count in cells]
    least = -(-sum(roots) // ((SMALLEST_SHARE - 1) * max(1, len(roots))))
    return tuple(max(root, least) for root in roots)


def build_views(design: Design, start: int = 0) -> Iterator[Variables]:
    """Build the views of a design over positions start, start + 1, ...; views of one variable are left out."""
    run = range(start, start + design.count)
    if design.columns == PAIRS:
        yield from combinations(run, 2)
    elif design.columns == ONE_VIEW:
        if design.count > 1:
            yield tuple(run)
    else:
        yield from _crossing_views(run, design.columns, len(design.rows))
        for index, row in enumerate(design.rows):
            yield from build_views(row, start + index * design.columns)


def _crossing_views(run: range, columns: int, rows: int) -> Iterator[Variables]:
    """Build the views that cross the rows: V_{m,j} takes column j + i m of row i, if row i has that column."""
    for line in lines(columns, rows).reshape(rows, -1).T.tolist():
        view = tuple(
            run[row * columns + column] for row, column in enumerate(line) if row * columns + column < len(run)
        )
        if len(view) > 1:
            yield view


def _search(
    count: int, objective: Objective, budgets: Budgets, primes_only: bool, largest_view: int
) -> tuple[Search, Callable[[Search, Sizes], Design], Callable[[Design], int]]:
    """Set up the search: its space, its method, and the quantity by which its results are compared."""
    if objective == "paper":  # Algorithm 2 minimises cells, whatever the number of views that share the budget
        return Search(cell_summand, usable_columns(count, True), False, largest_view), least_total, total
    columns = usable_columns(count, primes_only)
    if budgets != "equal":
        summand = cube_root_summand if budgets == "cube-root" else square_root_summand
        return Search(summand, columns, True, largest_view), least_total, total
    return Search(error_summand, columns, True, largest_view), least_product, product


def _orders(sizes: Sizes) -> list[list[int]]:
    """Order variables by size, so that a row holds variables of similar size and a crossing view takes one per row.

    The last row may be short. The better end of the order for it depends on the sizes and changes the error by up to
    10 %. Both ends are tried, unless there are so many variables that a second search would take seconds.
    """
    falling = sorted(range(len(sizes)), key=lambda variable: (-sizes[variable], variable))
    both = len(set(sizes)) > 1 and len(sizes) <= _BOTH_ORDERS_UP_TO
    return [falling, falling[::-1]] if both else [falling]


def _with_weights(sizes: Sizes, views: tuple[Variables, ...], budgets: Budgets) -> Cover:
    equal = Cover(sizes, views, (1,) * len(views))
    if budgets == "equal":
        return equal
    return Cover(sizes, views, tuple(_root(summand, _ROOTS[budgets]) for summand in equal.summands))


def _root(summand: int, degree: int) -> int:
    """Compute floor(2^16 * summand^(1/degree)) with integers, so that parties agree on the root to the last bit."""
    root, _ = gmpy2.iroot(summand * ROOT_SCALE**degree, degree)
    return int(root)


def _check_pairs(sizes: Sizes, largest_view: int) -> None:
    if len(sizes) < 2:
        raise PlanError(f"the schema gives {len(sizes)} variable(s), and correlations need at least two")
    second, first = sorted(sizes)[-2:]
    if first * second > largest_view:
        raise PlanError(
            f"two variables with {first} and {second} values make a table of {first * second} cells, but a view may "
            f"have at most {largest_view}: give one of the variables fewer bins"
        )
