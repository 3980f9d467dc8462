"""The work that a degree causes, and the largest degree with a bearable amount of work, from public numbers alone.

It does not know budgets: the limits that it lowers already follow from theta-usefulness.
"""

from dataclasses import replace
from functools import lru_cache

from protocol.errors import PlanError
from protocol.network.limits import Limits
from protocol.network.parent_sets import candidates, count_candidates
from protocol.tables.domain import Domain

LARGEST_CHOICE = 1 << 23  # cells of all families that one private choice may compare
LARGEST_DEGREE_OF_F = 3  # for larger degrees score F takes a dynamic programme per family, not one step for thousands
LARGEST_PROGRAMME = 1 << 35  # cells of all families of one choice, times rows, of that programme: some five seconds
LARGEST_COMPARISON = 1 << 22  # cells that all of DP-CCBN's iterations may count


@lru_cache(maxsize=64)  # comparing plans asks about the same domain again and again
def affordable(domain: Domain, limits: Limits, score: str, comparing_all: bool, rows: int | None = None) -> Limits:
    """Lower the limits until the work is bearable.

    `comparing_all` says that every candidate is compared (DP-CCBN). `rows` is the largest number of rows over which
    score F may take its dynamic programme; without it, F may not.
    """
    rows = rows if score == "F" else None
    if score == "F" and not comparing_all and rows is None:
        limits = replace(
            limits, degree=min(LARGEST_DEGREE_OF_F, domain.count if limits.degree is None else limits.degree)
        )
    while not _is_bearable(domain, limits, comparing_all, _most_cells(limits, rows)):
        if limits.cells is not None and limits.cells > 1:
            limits = replace(limits, cells=limits.cells // 2)
        elif limits.degree != 0:
            limits = replace(limits, degree=(limits.degree or 1) - 1)
        else:
            raise PlanError(
                f"even without parents, {domain.count} variables make too many cells to compare: give numbers fewer "
                "bins, or choose method dp-subn"
            )
    return limits


def _most_cells(limits: Limits, rows: int | None) -> int:
    """The most cells of all families of one choice; with `rows`, score F works through its larger families by rows."""
    if rows is None or (limits.degree or 0) <= LARGEST_DEGREE_OF_F:
        return LARGEST_CHOICE
    return min(LARGEST_CHOICE, LARGEST_PROGRAMME // rows)


def bearable(domain: Domain, limits: Limits) -> Limits:
    """Lower the limits of a frontier until a table for every variable can be sent."""
    cells = LARGEST_COMPARISON // domain.count
    degree = cells.bit_length() - 2  # the most parents whose table has at most so many cells, if all are binary
    return Limits(
        None if limits.cells is None else min(limits.cells, cells),
        None if limits.degree is None else min(limits.degree, degree),
    )


def _is_bearable(domain: Domain, limits: Limits, comparing_all: bool, most: int) -> bool:
    largest_family = limits.cells or 2 ** (1 + (limits.degree or 0))
    families = -(-most // largest_family)  # so many are too many: stop counting here
    if largest_choice(domain, limits, families) >= families:
        return False
    return not comparing_all or compared_cells(domain, limits) <= LARGEST_COMPARISON


@lru_cache(maxsize=64)
def largest_choice(domain: Domain, limits: Limits, most: int = LARGEST_CHOICE) -> int:
    """Estimate the most candidates of one choice, as if variables were placed in the order of their sizes."""
    order = sorted(range(domain.count), key=lambda v: domain.sizes[v])
    placed = {domain.count // 2, 3 * domain.count // 4, domain.count - 1} - {0}
    return max(
        (count_candidates(domain, order[:many], order[many:], limits, most) for many in placed),
        default=1,
    )


def compared_cells(domain: Domain, limits: Limits) -> int:
    """Estimate the cells of all candidate tables of DP-CCBN; counting stops beyond the largest bearable number."""
    cells = 0
    for placed in range(1, domain.count):
        options = candidates(domain, range(placed), range(placed, domain.count), limits)
        cells += sum(domain.cells((child, *parents)) for child, parents in options)
        if cells > LARGEST_COMPARISON:
            break
    return cells
