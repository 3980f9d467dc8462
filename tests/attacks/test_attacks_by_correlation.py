"""What no epsilon bounds: rows that depend on one fact tell it, though each of them alone stays hidden."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from crypto.randomness import Stream
from crypto.sampling.laplace import discrete_laplace

EPSILON = Fraction(1, 10)
ALPHA = EPSILON / 2  # one row moves two cells
ROWS = 1000


def log_odds(seen: NDArray[np.int64], one: NDArray[np.int64], other: NDArray[np.int64]) -> float:
    """By how much the published table moves the odds of one table against another, as a power of e."""
    return float(ALPHA * int(np.abs(seen - other).sum() - np.abs(seen - one).sum()))


def test_rows_that_depend_on_one_fact_tell_it_whatever_one_row_may_hide() -> None:
    everybody, nobody = np.array([ROWS, 0]), np.array([0, ROWS])  # has what the whole town has, or not
    without_one = np.array([ROWS - 1, 1])
    seen = everybody + discrete_laplace(ALPHA, 2, Stream.keyed(b"correlation"))
    assert abs(log_odds(seen, everybody, without_one)) <= EPSILON  # one row's values: as promised
    assert log_odds(seen, everybody, nobody) > 90  # the fact, and with it every person's row: about e^100
