"""Private picks under every score and both choices, between neighbours whose scores move as far as scores can.

It does not know tables that are released, or whole runs.

One row's change lifts the score of one candidate by nearly the whole sensitivity and lowers the scores of all others
by as much, so that the first candidate's chance changes by nearly e^epsilon. The exact laws are the mechanisms' own,
at the rate and from the integer scores that the program uses: they show whether sensitivities are understated. The
draws show whether the program follows the laws.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crypto.randomness import Stream
from protocol.options import Choice
from protocol.picks.by_model import REFERENCE_ROWS, Judge, sensitivity
from protocol.picks.by_score import choose, family_scores
from protocol.picks.scores import scoring
from protocol.privacy.mechanisms import DEFINITIONS
from protocol.tables.counting import Rows
from protocol.tables.domain import Domain
from tests.audit.laws import spent
from tests.audit.quantity import Quantity, charged

OTHERS = 16  # candidates whose scores move against the first one's
DELTA = Fraction(1, 100)
DRAWS = 500  # of a batch, on each table
NOISE = 0.2  # rows in a cell of the table that a pick by the model would have counted
BUDGETS = {"pure": Fraction(1), "zcdp": Fraction(1, 8)}

Laws = NDArray[np.float64]  # the chance of every candidate, for both tables
Cell = tuple[int, int]


@dataclass(frozen=True)
class Score:
    """A score, and a table of two variables which one row changes most: from the cell `low` to the cell `high`."""

    name: str
    others: tuple[tuple[int, ...], ...]  # the counts of all other rows
    low: Cell
    high: Cell

    @property
    def rows(self) -> int:
        return 1 + sum(map(sum, self.others))

    @property
    def domain(self) -> Domain:
        return Domain.of_sizes([len(self.others)] * 2 * (1 + OTHERS))

    @property
    def families(self) -> list[tuple[int, tuple[int, ...]]]:
        return [(2 * pair, (2 * pair + 1,)) for pair in range(1 + OTHERS)]

    def table(self, second: bool) -> Rows:
        """The first table has the row in the first pair's high cell and in the low cell of every other pair."""
        counts = np.array(self.others)
        cells = np.repeat(np.arange(counts.size), counts.ravel())
        row, column = np.unravel_index(cells, counts.shape)
        columns = []
        for pair in range(1 + OTHERS):
            moved = self.high if (pair == 0) != second else self.low
            for codes, code in ((row, moved[0]), (column, moved[1])):
                columns.append(np.concatenate([[code], codes]).astype(np.uint8))
        return Rows(self.domain, columns)

    @property
    def sensitivity(self) -> Fraction:
        return scoring(self.name, self.rows, self.domain).sensitivity

    def values(self, table: Rows) -> NDArray[np.int64]:
        return family_scores(table, self.families, scoring(self.name, self.rows, self.domain))

    def picker(self, table: Rows, epsilon: Fraction, mechanism: Choice) -> Callable[[Stream], int]:
        """A function that picks once, and returns the place of the candidate."""
        families = self.families
        return lambda stream: families.index(choose(table, families, self.name, epsilon, mechanism, stream))


class ModelScore(Score):
    """Score M, against a model in which all cells of a pair are equally frequent."""

    @property
    def options(self) -> list[tuple[int, ...]]:
        return [(child, *parents) for child, parents in self.families]

    @cached_property
    def reference(self) -> Rows:
        places = np.arange(REFERENCE_ROWS)
        return Rows(self.domain, [(places >> bit & 1).astype(np.uint8) for _ in self.families for bit in (0, 1)])

    @property
    def sensitivity(self) -> Fraction:
        return Fraction(sensitivity(self.rows))

    def values(self, table: Rows) -> NDArray[np.int64]:
        return Judge(table, self.reference, NOISE).scores(self.options)

    def picker(self, table: Rows, epsilon: Fraction, mechanism: Choice) -> Callable[[Stream], int]:
        judge, options = Judge(table, self.reference, NOISE), self.options
        return lambda stream: options.index(judge.pick(options, epsilon, mechanism, stream))


# A rare code of each variable, which meets the other's too seldom; another rare pair meets twice as often as by chance.
_RARE = ((0, 100, 9_899), (100, 200, 9_700), (9_899, 9_700, 960_401))
SCORES = {
    "I": Score("I", ((0, 0), (0, 99)), low=(1, 1), high=(0, 0)),
    "F": Score("F", ((2, 0), (0, 1)), low=(1, 0), high=(1, 1)),
    "R": Score("R", _RARE, low=(0, 0), high=(1, 1)),
    "M": ModelScore("M", ((1899, 100), (100, 1900)), low=(0, 1), high=(0, 0)),  # far beyond chance and any levels
}


def laws(scores: NDArray[np.int64], rate: float, mechanism: Choice) -> Laws:
    """The chance of every candidate, for every row of scores."""
    weights = np.exp(rate * (scores - scores.max(axis=1, keepdims=True)))
    if mechanism == "exponential":
        return weights / weights.sum(axis=1, keepdims=True)
    return np.stack([_first_head(weights, place) for place in range(weights.shape[1])], axis=1)


def _first_head(weights: Laws, place: int) -> Laws:
    """Permute-and-flip in continuous time: candidates come at uniform times, and no earlier coin may show heads.

    The integrand is a polynomial whose degree is the number of the others, which Gauss's rule integrates exactly.
    """
    nodes, shares = np.polynomial.legendre.leggauss(OTHERS // 2 + 1)
    others = np.delete(weights, place, axis=1)
    missed = np.prod(1 - others[:, :, np.newaxis] * (nodes + 1) / 2, axis=1)
    return weights[:, place] * (missed * shares / 2).sum(axis=1)


def pick(name: str, mechanism: Choice, privacy: str, understated: int = 1) -> Quantity:
    """A single pick; with its sensitivity understated by a factor, a broken variant of it."""
    score, definition = SCORES[name], DEFINITIONS[privacy]  # type: ignore[index]
    delta = DELTA if definition.needs_delta else Fraction(0)
    price, delta = charged(definition, BUDGETS[privacy], delta)
    epsilon = definition.choice_epsilon(BUDGETS[privacy], mechanism) * understated
    tables = [score.table(second) for second in (False, True)]
    values = np.array([score.values(table) for table in tables])
    first, second = laws(values, float(epsilon / (2 * score.sensitivity)), mechanism)
    loss = np.log(first) - np.log(second)

    def attack(second: bool) -> Any:
        stream, once = Stream.system(), score.picker(tables[second], epsilon, mechanism)
        return loss[[once(stream) for _ in range(DRAWS)]]

    exact = max(spent(loss, first, float(delta)), spent(-loss, second, float(delta)))
    return Quantity(price, delta, attack, exact, is_broken=understated > 1)
