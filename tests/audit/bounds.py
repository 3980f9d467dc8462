"""Lower bounds on epsilon from outcomes alone: Clopper-Pearson limits for every event tried, shared by Bonferroni.

It does not know what was released, or by which law.

A mechanism is (epsilon, delta)-private only if P(E | one table) <= e^epsilon P(E | its neighbour) + delta for every
event E. So a lower limit of the first probability and an upper limit of the second bound epsilon from below. The events
are "the attacker's score is at least t" and "at most -t", for thresholds that are fixed before any outcome is seen.
"""

from dataclasses import dataclass, field
from math import log

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Scores = NDArray[np.float64]

THRESHOLDS = 25
_ROUNDING = 1e-9  # scores that differ by less are the same number, computed in another order


@dataclass
class Tally:
    """How often each event was seen on each of two neighbouring tables.

    The attacker's score is positive where the outcome speaks for the first table. Any score gives a valid bound; the
    logarithm of the likelihood ratio gives the largest.
    """

    reach: float  # the largest threshold
    trials: int = 0
    most: float = 0.0  # the largest score, for either table
    hits: NDArray[np.int64] = field(default_factory=lambda: np.zeros((2, 2, THRESHOLDS), dtype=np.int64))

    @property
    def thresholds(self) -> Scores:
        return np.linspace(0, self.reach, THRESHOLDS)

    def add(self, first: Scores, second: Scores) -> None:
        """Count the scores of equally many trials on the first table and on the second."""
        assert first.size == second.size, "both tables need equally many trials"
        self.trials += first.size
        self.most = max(self.most, float(np.abs(first).max()), float(np.abs(second).max()))
        for table, scores in enumerate((first, second)):
            for event, signed in enumerate((scores, -scores)):  # "speaks for the first table", "for the second"
                ordered = np.sort(signed)
                self.hits[event, table] += ordered.size - np.searchsorted(ordered, self.thresholds - _ROUNDING)

    def bound(self, delta: float, doubt: float) -> float:
        """An epsilon below which the mechanism is not (epsilon, delta)-private, wrong with a chance below `doubt`."""
        each = doubt / (2 * self.hits[:, 0].size)  # two limits for every event
        found = 0.0
        for event in (0, 1):
            likely, unlikely = self.hits[event, event], self.hits[event, 1 - event]
            low, high = lower_limit(likely, self.trials, each) - delta, upper_limit(unlikely, self.trials, each)
            found = max([found, *(log(a / b) for a, b in zip(low, high, strict=True) if a > 0)])
        return found


def lower_limit(hits: NDArray[np.int64], trials: int, doubt: float) -> Scores:
    """Clopper and Pearson's lower limit of a probability."""
    return np.where(hits > 0, stats.beta.ppf(doubt, np.maximum(hits, 1), trials - hits + 1), 0.0)


def upper_limit(hits: NDArray[np.int64], trials: int, doubt: float) -> Scores:
    """Clopper and Pearson's upper limit of a probability."""
    return np.where(hits < trials, stats.beta.isf(doubt, hits + 1, np.maximum(trials - hits, 1)), 1.0)
