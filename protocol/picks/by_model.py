"""Private choice guided by the model: a party picks a pair that the model reproduces badly on the party's own rows.

It does not know which party is asked when, or how the budget was divided. The argument is in `scores.md` (score M).
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from crypto.randomness import Stream
from crypto.sampling.choice import exponential_choice, permute_and_flip
from protocol.model.evidence import LARGEST_MODEL
from protocol.model.junction_tree import model_cells
from protocol.options import Choice
from protocol.tables.counting import Rows
from protocol.tables.domain import Variables

Counts = NDArray[np.int64]

REFERENCE_ROWS = 1 << 17
_GRID = 1 << 8  # units to a step of the grid; a changed row moves a score by at most 2 * REFERENCE_ROWS units
SENSITIVITY = 2 * REFERENCE_ROWS // _GRID  # sensitivity of a score in steps of the grid; the division is exact


class Judge:
    """Judge of options on one party's rows. Each option is counted once, however often it is offered."""

    def __init__(self, rows: Rows, reference: Rows, noise: float) -> None:
        """Compare `rows` with `reference`, whose codes are those of each variable's coarsest generalisation.

        `noise` is the mean absolute noise that a cell of the measured table would get, in rows of this party.
        """
        self._rows, self._reference, self._noise = rows, reference, noise
        self._scores: dict[Variables, int] = {}

    def pick(self, options: Sequence[Variables], epsilon: Fraction, mechanism: Choice, stream: Stream) -> Variables:
        """Pick one of the sets of variables, more likely a set that the model reproduces worse.

        Privacy: the pick is epsilon-private for these rows.
        """
        scores, rate = self.scores(options), epsilon / (2 * SENSITIVITY)
        if mechanism == "exponential":
            return options[exponential_choice(scores, rate, stream)]
        most = max(map(self._reference.domain.cells, options), default=1)
        return options[permute_and_flip(scores, rate, span(self._rows.count, most, self._noise), stream)]

    def scores(self, options: Sequence[Variables]) -> Counts:
        new = [option for option in options if option not in self._scores]
        found = gains(self._rows, self._reference, new, self._noise)
        self._scores |= dict(zip(new, found.tolist(), strict=True))
        return np.array([self._scores[option] for option in options], dtype=np.int64)


def gains(rows: Rows, reference: Rows, options: Sequence[Variables], noise: float) -> Counts:
    """The rows that the reference misplaces in each pair's table, minus the rows still misplaced after measuring it.

    The gain is half the L1 distance in steps of the grid, minus a penalty. The penalty follows from public numbers and
    the reference: the noise of the measured table, and the distance from any reference that chance causes for so few
    rows. A variable alone stands for measuring nothing, and its gain is 0 whatever the rows are.
    """
    found = np.zeros(len(options), dtype=np.int64)
    places = [place for place, variables in enumerate(options) if len(variables) > 1]
    own = rows.tables([rows.domain.coarsest(options[place]) for place in places])
    expected = reference.tables([options[place] for place in places])
    for place, counts, other in zip(places, own, expected, strict=True):
        # Overflow safety: there are at most 2 * 10^9 rows, so both products and their sum stay below 2^51.
        distance = np.abs(counts * REFERENCE_ROWS - other * rows.count).sum() // _GRID
        found[place] = int(distance) - math.ceil(_penalty(other, rows.count, noise) * SENSITIVITY)
    return found


def tree_options(count: int, placed: Sequence[int]) -> list[Variables]:
    """List every variable that is not placed, alone and beside each placed variable."""
    outside = [variable for variable in range(count) if variable not in placed]
    return [(child, *parent) for child in outside for parent in [(), *((p,) for p in placed)]]


def admissible_pairs(sizes: Sequence[int], taken: Sequence[Variables]) -> list[Variables]:
    """The pairs for which a model of the taken tables has room, and which are not taken yet."""
    count, now = len(sizes), model_cells(sizes, taken)
    held = {tuple(sorted(pair)) for pair in taken}
    pairs = ((a, b) for a in range(count) for b in range(a + 1, count))
    # Adding one variable of the pair to every clique gives a model that holds the pair. Often there is room for that.
    return [
        pair
        for pair in pairs
        if pair not in held
        and (now * min(sizes[v] for v in pair) <= LARGEST_MODEL or model_cells(sizes, [*taken, pair]) <= LARGEST_MODEL)
    ]


def _penalty(reference: Counts, rows: int, noise: float) -> float:
    """Half the expected L1 size, in rows, of the noise and of the random variation of rows over cells."""
    chance = float(np.sqrt(reference * (rows / REFERENCE_ROWS) * (2 / math.pi)).sum())
    return (reference.size * noise + chance) / 2


def span(rows: int, cells: int, noise: float) -> int:
    return (rows + 2) * SENSITIVITY + math.ceil((cells * noise + math.sqrt(cells * rows)) * SENSITIVITY)
