"""Choice guided by the model: a party picks the pair that all released tables together answer worst on its own rows.

It does not know who is asked when, or how the budget was divided. The argument is in `scores.md` (score M).
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
from protocol.privacy.mechanisms import Choice
from protocol.tables.counting import Rows
from protocol.tables.domain import Variables

Counts = NDArray[np.int64]

REFERENCE_ROWS = 1 << 17
_GRID = 1 << 8  # units of a score, one row being 2 * REFERENCE_ROWS units before
SENSITIVITY = 2 * REFERENCE_ROWS // _GRID  # of a score in steps of the grid: exact, as the grid divides it


class Judge:
    """Options as one party scores them: each is counted once, however often it may be picked."""

    def __init__(self, rows: Rows, reference: Rows, noise: float) -> None:
        """The reference's codes are those of the coarsest generalisation that the rows' domain has of each variable.

        `noise` is the mean size of the noise that a cell of the measured table would get, in rows of this party.
        """
        self._rows, self._reference, self._noise = rows, reference, noise
        self._scores: dict[Variables, int] = {}

    def pick(self, options: Sequence[Variables], epsilon: Fraction, mechanism: Choice, stream: Stream) -> Variables:
        """One of the sets of variables, the worse answered the likelier. Privacy: epsilon for these rows."""
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
    """By how many rows the reference misjudges each pair, minus what would still be wrong after measuring it.

    A variable alone stands for measuring nothing: it gains nothing, whatever the rows are.

    Half the L1 distance in steps of the grid. What is taken off follows from public numbers: the noise of the
    measured table, and the distance at which so few rows lie from any reference by chance.
    """
    found = np.zeros(len(options), dtype=np.int64)
    places = [place for place, variables in enumerate(options) if len(variables) > 1]
    own = rows.tables([rows.domain.coarsest(options[place]) for place in places])
    expected = reference.tables([options[place] for place in places])
    for place, counts, other in zip(places, own, expected, strict=True):
        # Overflow safety: rows are at most 2 * 10^9, so that both products and their sum stay below 2^51.
        distance = np.abs(counts * REFERENCE_ROWS - other * rows.count).sum() // _GRID
        found[place] = int(distance) - math.ceil(_penalty(other, rows.count, noise) * SENSITIVITY)
    return found


def tree_options(count: int, placed: Sequence[int]) -> list[Variables]:
    """Every variable that is not placed, alone or beside one that is."""
    outside = [variable for variable in range(count) if variable not in placed]
    return [(child, *parent) for child in outside for parent in [(), *((p,) for p in placed)]]


def admissible_pairs(sizes: Sequence[int], taken: Sequence[Variables]) -> list[Variables]:
    """The pairs that a model of the taken tables has room for, and does not hold yet."""
    count, now = len(sizes), model_cells(sizes, taken)
    held = {tuple(sorted(pair)) for pair in taken}
    pairs = ((a, b) for a in range(count) for b in range(a + 1, count))
    # One variable of the pair in every clique makes a model that holds it: often that is room enough.
    return [
        pair
        for pair in pairs
        if pair not in held
        and (now * min(sizes[v] for v in pair) <= LARGEST_MODEL or model_cells(sizes, [*taken, pair]) <= LARGEST_MODEL)
    ]


def _penalty(reference: Counts, rows: int, noise: float) -> float:
    """In rows: half the expected L1 size of the noise, and of the chance in which rows fall into which cell."""
    chance = float(np.sqrt(reference * (rows / REFERENCE_ROWS) * (2 / math.pi)).sum())
    return (reference.size * noise + chance) / 2


def span(rows: int, cells: int, noise: float) -> int:
    return (rows + 2) * SENSITIVITY + math.ceil((cells * noise + math.sqrt(cells * rows)) * SENSITIVITY)
