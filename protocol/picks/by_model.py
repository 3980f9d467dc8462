"""Private choice guided by the model: a party picks a set that the model reproduces badly on the party's own rows.

It does not know which party is asked when, or how the budget was divided. The argument is in `scores.md` (score M).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from crypto.randomness import Stream
from crypto.sampling.choice import exponential_choice, permute_and_flip
from protocol.model.growth import grown_cells
from protocol.model.triangulation import TableGraph
from protocol.options import Choice
from protocol.picks.unlike_levels import distances, tolerance
from protocol.tables.any_rows import AnyRows
from protocol.tables.domain import Variables

Counts = NDArray[np.int64]

NOTHING: Variables = (0,)  # a variable alone: nothing is measured
REFERENCE_ROWS = 1 << 17
BUILT_ANEW = 1 << 14  # variables in all models that are built anew before one pick, which takes a tenth of a second
_STEPS_PER_ROW = 1024  # of the grid of scores
_WORTH = 0.5  # of the measured table's noise; a model keeps less noise than its tables hold (found on Adult)


def sensitivity(rows: int) -> int:
    """The most, in steps of the grid, by which one changed row of so many moves a score.

    The distance itself moves by one row. It is known to within a tolerance, and is rounded down to a step.
    """
    return math.ceil(_STEPS_PER_ROW * (1 + tolerance(rows) / 2)) + 1


def worth_offering(sizes: Sequence[int], among: Sequence[Variables], rows: int, noise: float) -> list[Variables]:
    """Those of the sets that could gain anything by public numbers: noise would misplace fewer rows than there are."""
    return [one for one in among if _price(math.prod(sizes[v] for v in one), noise) < rows * _STEPS_PER_ROW]


class Judge:
    """Judge of options on one party's rows. Each option is counted once, however often it is offered."""

    def __init__(
        self,
        rows: AnyRows,
        reference: AnyRows,
        noise: float,
        matters: Callable[[Variables], bool] = lambda _variables: True,
    ) -> None:
        """Compare `rows` with `reference`, whose codes are those of each variable's coarsest generalisation.

        `noise` is the mean absolute noise that a cell of the measured table would get, in rows of this party. The
        scores of sets that do not matter are halved, which moves none of them further than its sensitivity.
        """
        self._rows, self._reference, self._noise, self._matters = rows, reference, noise, matters
        self._scores: dict[Variables, int] = {}

    def pick(self, options: Sequence[Variables], epsilon: Fraction, mechanism: Choice, stream: Stream) -> Variables:
        """Pick one of the sets of variables, more likely a set that the model reproduces worse.

        Privacy: the pick is epsilon-private for these rows.
        """
        scores, rate = self.scores(options), epsilon / (2 * sensitivity(self._rows.count))
        if mechanism == "exponential":
            return options[exponential_choice(scores, rate, stream)]
        most = max(map(self._reference.domain.cells, options), default=1)
        return options[permute_and_flip(scores, rate, span(self._rows.count, most, self._noise), stream)]

    def scores(self, options: Sequence[Variables]) -> Counts:
        new = [option for option in options if option not in self._scores]
        found = gains(self._rows, self._reference, new, self._noise)
        found //= np.array([1 if self._matters(option) else 2 for option in new], dtype=np.int64)
        self._scores |= dict(zip(new, found.tolist(), strict=True))
        return np.array([self._scores[option] for option in options], dtype=np.int64)


def gains(rows: AnyRows, reference: AnyRows, options: Sequence[Variables], noise: float) -> Counts:
    """The rows that the reference misplaces in each set's table, minus the rows still misplaced after measuring it.

    The first is half the distance to the nearest reference with other levels, in steps of the grid. The second follows
    from public numbers: the noise of the measured table. A variable alone stands for measuring nothing, and its gain is
    0 whatever the rows are.
    """
    found = np.zeros(len(options), dtype=np.int64)
    places = [place for place, variables in enumerate(options) if len(variables) > 1]
    own = map(_as_pair, rows.tables([rows.domain.coarsest(options[place]) for place in places]))
    expected = [*map(_as_pair, reference.tables([options[place] for place in places]))]
    # Overflow safety: there are at most 2 * 10^9 rows, so both products and their difference stay below 2^51.
    apart = [
        (counts * REFERENCE_ROWS - other * rows.count) / REFERENCE_ROWS
        for counts, other in zip(own, expected, strict=True)
    ]
    blurs = [_chance(other, rows.count) for other in expected]
    found_apart = distances(apart, list(map(_levels, expected)), blurs, tolerance(rows.count))
    for place, distance, other in zip(places, found_apart.tolist(), expected, strict=True):
        found[place] = math.floor(distance / 2 * _STEPS_PER_ROW) - _price(other.size, noise)
    return found


def _price(cells: int, noise: float) -> int:
    """What the noise of a measured table takes off its gain, in steps of the grid."""
    return math.ceil(_WORTH * cells * noise / 2 * _STEPS_PER_ROW)


def _as_pair(table: Counts) -> Counts:
    """A table of three or more variables as one of two: the variable with the most categories, and all others."""
    if table.ndim < 3:
        return table
    return np.moveaxis(table, int(np.argmax(table.shape)), -1).reshape(-1, max(table.shape))


def tree_options(count: int, placed: Sequence[int]) -> list[Variables]:
    """List every variable that is not placed, alone and beside each placed variable."""
    outside = [variable for variable in range(count) if variable not in placed]
    return [(child, *parent) for child in outside for parent in [(), *((p,) for p in placed)]]


def admissible(
    sizes: Sequence[int], taken: Sequence[Variables], among: Sequence[Variables], numbers: int
) -> list[Variables]:
    """Those of the sets for which a model of the taken tables has room, and which are not taken yet.

    A set has room if the present model can grow by it, or if a model with the set, built anew, is small enough. Only
    the sets that need the least growth are built anew.
    """
    graph, held = TableGraph(sizes, taken), {tuple(sorted(one)) for one in taken}
    new = [one for one in among if one not in held]
    grown = _grown(graph, new)
    large = sorted((one for one in new if grown[one] > numbers), key=grown.__getitem__)
    most = BUILT_ANEW // len(sizes)
    refused = {*large[most:], *(one for one in large[:most] if graph.joined(one).cells > numbers)}
    return [one for one in new if one not in refused]


def _grown(graph: TableGraph, sets: Sequence[Variables]) -> Mapping[Variables, float]:
    """How large the model becomes by each set; for three variables and more, if every clique grows by all but one."""
    pairs, whole = grown_cells(graph), graph.cells
    return {
        one: pairs[one] if len(one) == 2 else whole * math.prod(sorted(graph.sizes[v] for v in one)[:-1])
        for one in sets
    }


def _chance(reference: Counts, rows: int) -> NDArray[np.float64]:
    """The mean size, in rows, of the difference that chance alone makes in each cell, on both sides."""
    times = rows / REFERENCE_ROWS
    variance = np.maximum(reference, 1) * (times * (1 + times))
    return np.asarray(np.sqrt(np.maximum(variance, 1.0) * (2 / math.pi)))


def _levels(reference: Counts) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The shares of both attributes' categories, each as if one more row had every category: none is 0."""
    both = (reference.sum(axis=1 - axis) + 1.0 for axis in (0, 1))
    first, second = (own / own.sum() for own in both)
    return first, second


def span(rows: int, cells: int, noise: float) -> int:
    """A bound on the largest minus the smallest score, over tables of at most so many cells."""
    return math.ceil(_STEPS_PER_ROW * (rows + tolerance(rows))) + _price(cells, noise) + 2
