"""All maximal parent sets of a variable (PrivBayes Algorithms 5 and 6), from public numbers alone.

It does not know rows, scores or how a parent set is picked.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, islice
from math import comb, prod
from operator import neg

from protocol.network.limits import Limits
from protocol.tables.domain import Domain, Variables

Levels = tuple[tuple[int, int], ...]  # the variants of a base variable from coarse to fine, as (variant, size)

Candidate = tuple[int, Variables]  # child, parents


def parent_sets(domain: Domain, child: int, placed: Sequence[int], limits: Limits) -> list[Variables]:
    """Admitted sets of variants of the placed base variables that can neither grow nor become finer."""
    return sorted(maximal_sets(*search_space(domain, child, placed, limits)))


def count_parent_sets(domain: Domain, child: int, placed: Sequence[int], limits: Limits, most: int) -> int:
    """The number of `parent_sets`; counting stops at `most`."""
    levels, room, degree = search_space(domain, child, placed, limits)
    size = _uniform_size(levels, room, degree)
    if size is not None:
        return min(most, comb(len(levels), size))
    if room is not None and all(len(variants) == 1 for variants in levels):
        return min(most, _count_by_sizes(Counter(variants[0][1] for variants in levels), room, degree))
    return sum(1 for _ in islice(maximal_sets(levels, room, degree), most))


def search_space(
    domain: Domain, child: int, placed: Sequence[int], limits: Limits
) -> tuple[list[Levels], int | None, int]:
    """The variants that may be chosen, and the largest numbers of cells and of parents."""
    levels = [tuple((v, domain.sizes[v]) for v in reversed(domain.variants[base])) for base in sorted(placed)]
    room = None if limits.cells is None else limits.cells // domain.sizes[child]
    degree = len(levels) if limits.degree is None else min(limits.degree, len(levels))
    return levels, room, degree


def _uniform_size(levels: Sequence[Levels], room: int | None, degree: int) -> int | None:
    """The size of all maximal sets, if these are exactly the sets of one size and levels play no part; else None."""
    if any(len(variants) > 1 for variants in levels):
        return None
    sizes = sorted(variants[0][1] for variants in levels)
    if room is None:
        return degree
    for size in range(degree, -1, -1):
        largest_fits = prod(sizes[len(sizes) - size :]) <= room
        none_can_grow = size == degree or prod(sizes[: size + 1]) > room
        if not none_can_grow:
            return None
        if largest_fits:
            return size
    return 0  # not even the child alone is admitted, but it has to be modelled


def _count_by_sizes(sizes: Counter[int], room: int, degree: int) -> int:
    """Count maximal sets by the number of variables that they take of each size, without listing the sets."""
    ways: Counter[tuple[int, int, int]] = Counter({(1, 0, room + 1): 1})  # cells, variables, smallest size left out
    for size, many in sorted(sizes.items(), reverse=True):
        longer: Counter[tuple[int, int, int]] = Counter()
        for (cells, taken, left), count in ways.items():
            for more in range(min(many, degree - taken) + 1):
                if cells * size**more > room:
                    break
                longer[cells * size**more, taken + more, size if more < many else left] += count * comb(many, more)
        ways = longer
    return sum(count for (cells, taken, left), count in ways.items() if taken == degree or cells * left > room)


def maximal_sets(levels: Sequence[Levels], room: int | None, degree: int) -> Iterator[Variables]:
    size = _uniform_size(levels, room, degree)
    if size is not None:
        yield from combinations([variants[0][0] for variants in levels], size)
    elif room is None:  # without a limit on cells only the finest variants are maximal
        yield from combinations([variants[-1][0] for variants in levels], degree)
    else:
        yield from _search(levels, room, degree)


def _search(levels: Sequence[Levels], room: int, degree: int) -> Iterator[Variables]:
    """Decide on one variable after another, large variables first: leave the variable out, or take one of its levels.

    A finished set is maximal if it passes two tests. It must have at least `needed` cells; with fewer, a variable that
    was taken at a coarse level would fit at a finer level. Unless the set is full, it must also have at least `wanted`
    cells; with fewer, a variable that was left out would still fit. Branches that cannot reach these numbers are cut.
    With one level per variable and no limit on the degree, no remaining branch is in vain: variables that come later
    are no larger than the variables left out, and can fill the room.
    """
    order = sorted(levels, key=lambda variants: -variants[0][1])
    smallest = [variants[0][1] for variants in order]
    reachable = _reachable_cells(order, room)
    waiting: list[tuple[int, Variables, int, int, int]] = [(0, (), 1, 0, 0)]
    while waiting:
        place, chosen, cells, needed, wanted = waiting.pop()
        place = bisect_left(smallest, -(room // cells), lo=place, key=neg)  # skips variables that no longer fit
        full = len(chosen) == degree
        may_get_full = degree - len(chosen) <= len(order) - place
        least = needed if may_get_full else max(needed, wanted)
        if full or place == len(order):
            if cells >= least:
                yield tuple(sorted(chosen))
        elif cells * reachable[place] >= least:
            left_out = max(wanted, room // smallest[place] + 1)
            waiting.append((place + 1, chosen, cells, needed, left_out))
            for variant, size, finer in _with_finer(order[place]):
                if cells * size <= room:
                    refined = max(needed, room * size // finer + 1) if finer else needed
                    waiting.append((place + 1, (*chosen, variant), cells * size, refined, wanted))


def _reachable_cells(order: Sequence[Levels], room: int) -> list[int]:
    """The cells of all variables from each place on at their finest levels, capped at `room` + 1."""
    cells = [1]
    for variants in reversed(order):
        cells.append(min(cells[-1] * variants[-1][1], room + 1))
    return cells[::-1]


def _with_finer(variants: Levels) -> Iterator[tuple[int, int, int | None]]:
    """Every variant with its size and the size of the next finer one."""
    finer = [size for _, size in variants[1:]]
    for (variant, size), next_size in zip(variants, [*finer, None], strict=True):
        yield variant, size, next_size


def candidates(domain: Domain, placed: Sequence[int], unplaced: Sequence[int], limits: Limits) -> list[Candidate]:
    """Every unplaced variable with each of its maximal parent sets among the placed ones."""
    by_size: dict[int, list[Variables]] = {}  # a child's maximal sets depend on its size alone
    for child in unplaced:
        size = domain.sizes[child]
        if size not in by_size:
            by_size[size] = parent_sets(domain, child, placed, limits)
    return [(child, parents) for child in unplaced for parents in by_size[domain.sizes[child]]]


def count_candidates(domain: Domain, placed: Sequence[int], unplaced: Sequence[int], limits: Limits, most: int) -> int:
    """The number of `candidates`, from public numbers alone; counting stops at `most`."""
    by_size: dict[int, int] = {}
    for child in unplaced:
        size = domain.sizes[child]
        if size not in by_size:
            by_size[size] = count_parent_sets(domain, child, placed, limits, most)
    return min(most, sum(by_size[domain.sizes[child]] for child in unplaced))
