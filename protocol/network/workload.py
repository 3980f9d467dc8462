"""How much work a degree means, and the largest degree that keeps it bearable: from public numbers alone.

It does not know budgets: theta-usefulness has had its say before.
"""

from dataclasses import replace
from functools import lru_cache

from protocol.errors import PlanError
from protocol.network.limits import Limits
from protocol.network.parent_sets import candidates, count_candidates
from protocol.tables.domain import Domain

LARGEST_CHOICE = 1 << 23  # cells of all families that one private choice may compare
LARGEST_DEGREE_OF_F = 3  # score F beyond it takes a dynamic programme per family instead of one for thousands
LARGEST_COMPARISON = 1 << 22  # cells that all of DP-CCBN's iterations may count


@lru_cache(maxsize=64)  # whoever weighs plans asks about the same domain again and again
def affordable(domain: Domain, limits: Limits, score: str, comparing_all: bool) -> Limits:
    """The given limits, lowered until the work is bearable; `comparing_all` is DP-CCBN's way."""
    if score == "F" and not comparing_all:
        limits = replace(
            limits, degree=min(LARGEST_DEGREE_OF_F, domain.count if limits.degree is None else limits.degree)
        )
    while not _is_bearable(domain, limits, comparing_all):
        if limits.cells is not None and limits.cells > 1:
            limits = replace(limits, cells=limits.cells // 2)
        elif limits.degree != 0:
            limits = replace(limits, degree=(limits.degree or 1) - 1)
        else:
            raise PlanError(
                f"even without parents {domain.count} variables mean too many cells to compare: give numbers fewer "
                "bins, or choose method dp-subn"
            )
    return limits


def bearable(domain: Domain, limits: Limits) -> Limits:
    """The given limits of a frontier, lowered until a table of every variable can be sent."""
    cells = LARGEST_COMPARISON // domain.count
    degree = cells.bit_length() - 2  # so many parents of two codes each
    return Limits(
        None if limits.cells is None else min(limits.cells, cells),
        None if limits.degree is None else min(limits.degree, degree),
    )


def _is_bearable(domain: Domain, limits: Limits, comparing_all: bool) -> bool:
    largest_family = limits.cells or 2 ** (1 + (limits.degree or 0))
    families = -(-LARGEST_CHOICE // largest_family)  # so many are too many: nobody counts on
    if largest_choice(domain, limits, families) >= families:
        return False
    return not comparing_all or compared_cells(domain, limits) <= LARGEST_COMPARISON


@lru_cache(maxsize=64)
def largest_choice(domain: Domain, limits: Limits, most: int = LARGEST_CHOICE) -> int:
    """About the most candidates of one choice: as if variables were placed in the order of their sizes."""
    order = sorted(range(domain.count), key=lambda v: domain.sizes[v])
    stages = {domain.count // 2, 3 * domain.count // 4, domain.count - 1} - {0}
    return max(
        (count_candidates(domain, order[:stage], order[stage:], limits, most) for stage in stages),
        default=1,
    )


def compared_cells(domain: Domain, limits: Limits) -> int:
    """About the cells of all candidate tables of DP-CCBN; it stops counting beyond the largest bearable number."""
    cells = 0
    for stage in range(1, domain.count):
        options = candidates(domain, range(stage), range(stage, domain.count), limits)
        cells += sum(domain.cells((child, *parents)) for child, parents in options)
        if cells > LARGEST_COMPARISON:
            break
    return cells
