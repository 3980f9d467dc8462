"""Bins joined from neighbours of a fine grid, where noisy counts say that rows lie.

It does not know attributes, or where the counts come from. `protocol/stages/edges.md` has the argument.
"""

from collections.abc import Sequence

import gmpy2
import numpy as np

from protocol.model.ordered_counts import middle, possible_counts
from protocol.tables.domain import Variable
from protocol.tables.marginal import Table

_ROOT_BITS = 10  # binary places of the roots


def bin_starts(grid: Table, variable: Variable, bins: int, rows: int, beginnings: int) -> tuple[int, ...]:
    """The codes of the grid with which the bins begin, all below `beginnings`.

    The counts are estimated first, so that no noise makes edges.
    """
    estimate = middle(possible_counts(grid, variable, rows), variable.ordered)[: variable.ordered]
    joined = np.append(estimate[: beginnings - 1], estimate[beginnings - 1 :].sum())
    return divided(np.rint(joined).astype(np.int64).tolist(), bins)


def divided(counts: Sequence[int], bins: int) -> tuple[int, ...]:
    """Divide counts into `bins` runs: the empty ends are runs, and between them runs have even sums of cube roots."""
    first, end = _occupied(counts, bins)
    below, above = int(first > 0), int(end < len(counts))
    roots = [int(gmpy2.iroot(gmpy2.mpz(count) << 3 * _ROOT_BITS, 3)[0]) for count in counts[first:end]]
    inner = [first + start for start in even_runs(roots, bins - below - above)]
    return (*[0] * below, *inner, *[end] * above)


def _occupied(counts: Sequence[int], bins: int) -> tuple[int, int]:
    """The range outside which nothing is counted, wide enough for the runs that lie in it."""
    held = [place for place, count in enumerate(counts) if count]
    first, end = (held[0], held[-1] + 1) if held else (0, len(counts))
    while end - first < bins - (first > 0) - (end < len(counts)):
        first, end = (first, end + 1) if end < len(counts) else (first - 1, end)
    return first, end


def even_runs(sizes: Sequence[int], runs: int) -> list[int]:
    """The places where so many runs begin, none of them empty, with sums as even as whole sizes allow.

    A run takes the next size while the middle of that size lies within an even share of what is left. A size above
    its share is a run of its own, and the other runs share the rest.
    """
    starts, taken, left = [0], sizes[0], sum(sizes)
    for place in range(1, len(sizes)):
        still = runs - len(starts) + 1  # runs to come, with the present one
        if still == 1:
            break
        is_within = still * (2 * taken + sizes[place]) <= 2 * left
        if not is_within or len(sizes) - place < still:
            starts.append(place)
            left, taken = left - taken, 0
        taken += sizes[place]
    return starts
