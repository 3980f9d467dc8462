"""Scores of (X, parents) on one party's rows alone, as exact integers with their sensitivities.

It does not know which families are compared or how a family is picked. The argument is in `scores.md`.
"""

from abc import ABC, abstractmethod
from fractions import Fraction
from math import ceil, inf
from typing import ClassVar

import gmpy2
import numpy as np
from numpy.typing import NDArray

from protocol.errors import OperatorError
from protocol.picks.maximum_joint import surplus
from protocol.tables.domain import Domain

LARGEST_ROWS = 2 * 10**9
LARGEST_TABLE = 1 << 24  # cells of one family
_STEPS_PER_SENSITIVITY = 1024
_CELLS_AT_ONCE = 1 << 15  # cells that are scored together, so few that they stay in the cache

Counts = NDArray[np.int64]


class Scoring(ABC):
    """A score of tables over `rows` rows, counted in steps of `unit`."""

    name: ClassVar[str]
    needs_bits: ClassVar[bool] = False  # whether all variables must be binary
    moved_rows: ClassVar[float]  # a changed row moves the distance that is scored by so many rows; inf: no distance
    rows: int
    unit: Fraction
    sensitivity: Fraction  # in units: the most by which one changed row moves a score, rounding included

    @abstractmethod
    def __init__(self, rows: int, is_binary: bool) -> None: ...

    def scores(self, counts: Counts) -> NDArray[np.int64]:
        """Score tables of shape (m, codes of the child, cells of the parents), in units."""
        if counts[0].size > LARGEST_TABLE:
            raise OperatorError(f"a family of {counts[0].size} cells is too large to be scored; lower the limit")
        step = max(1, self._cells_at_once // counts[0].size)
        return np.concatenate([self._score(counts[i : i + step]) for i in range(0, len(counts), step)])

    @abstractmethod
    def span(self, child_size: int) -> int:
        """A bound, in units, on the largest minus the smallest score of children of at most `child_size` codes."""

    @abstractmethod
    def _score(self, counts: Counts) -> NDArray[np.int64]: ...

    @property
    def _cells_at_once(self) -> int:
        return _CELLS_AT_ONCE


class MutualInformation(Scoring):
    """Score I: the mutual information I(X, parents) in bits (PrivBayes Lemma 4.1), the papers' score."""

    name = "I"
    moved_rows = inf  # below epsilon 1 it chooses nearly at random

    def __init__(self, rows: int, is_binary: bool) -> None:
        self.rows = rows
        # Overflow safety: n log2 n * scale < 2^60, and a score adds and subtracts at most four such numbers.
        self._scale = 1 << (60 - (rows * rows.bit_length()).bit_length())
        # Each c log2 c is off by at most 2^-49 of itself (log2 is accurate to 4 ulp) and half a step of rounding to an
        # integer. The four sums of a score are below 2^60 each, and roundings add at most min(n, 2^24 + 2) steps.
        self._error = (1 << 13) + min(rows, LARGEST_TABLE + 2)
        moved = ceil(mutual_information_sensitivity(rows, is_binary) * rows * self._scale) + 2 * self._error
        self._grid = _power_of_two_below(moved // _STEPS_PER_SENSITIVITY)
        self.unit = Fraction(1 << self._grid, rows * self._scale)
        self.sensitivity = Fraction(_steps(moved, self._grid))

    def span(self, child_size: int) -> int:
        most_bits = (child_size - 1).bit_length()
        return _steps(most_bits * self.rows * self._scale + 2 * self._error, self._grid)

    def _score(self, counts: Counts) -> NDArray[np.int64]:
        joint = self._c_log_c(counts).sum(axis=(1, 2))
        child = self._c_log_c(counts.sum(axis=2)).sum(axis=1)
        parents = self._c_log_c(counts.sum(axis=1)).sum(axis=1)
        scores: NDArray[np.int64] = (self._c_log_c(np.array(self.rows)) + joint - child - parents) >> self._grid
        return scores

    def _c_log_c(self, counts: Counts) -> NDArray[np.int64]:
        return np.rint(counts * np.log2(np.maximum(counts, 1)) * self._scale).astype(np.int64)


class DistanceToIndependence(Scoring):
    """Score R: half the L1 distance to the product of the marginals (PrivBayes Theorem 5.3)."""

    name = "R"
    moved_rows = 3

    def __init__(self, rows: int, _is_binary: bool) -> None:
        self.rows = rows
        moved = 6 * rows + 4  # 3 / n + 2 / n^2, times 2 n^2
        self._grid = _power_of_two_below(moved // _STEPS_PER_SENSITIVITY)
        self.unit = Fraction(1 << self._grid, 2 * rows * rows)
        self.sensitivity = Fraction(_steps(moved, self._grid))

    def span(self, child_size: int) -> int:
        # R <= 1 - sum of P(x)^2 <= 1 - 1 / size, since a cell exceeds its product by at most P(x, p) (1 - P(x)).
        return _steps(2 * self.rows * self.rows * (child_size - 1) // child_size, self._grid)

    def _score(self, counts: Counts) -> NDArray[np.int64]:
        child, parents = counts.sum(axis=2, keepdims=True), counts.sum(axis=1, keepdims=True)
        # Overflow safety: every term is at most n^2 and their sum 2 n^2 R < 2 n^2 <= 8 * 10^18 < 2^63.
        scores: NDArray[np.int64] = np.abs(self.rows * counts - child * parents).sum(axis=(1, 2)) >> self._grid
        return scores


class DistanceToMaximum(Scoring):
    """Score F: minus half the L1 distance to a joint distribution of maximal information (PrivBayes Theorem 4.5)."""

    name = "F"
    needs_bits = True
    moved_rows = 1

    def __init__(self, rows: int, _is_binary: bool) -> None:
        self.rows = rows
        self.unit = Fraction(1, 2 * rows)
        self.sensitivity = Fraction(2)

    def span(self, child_size: int) -> int:  # noqa: ARG002
        return self.rows

    def _score(self, counts: Counts) -> NDArray[np.int64]:
        return surplus(counts, self.rows) - 2 * self.rows

    @property
    def _cells_at_once(self) -> int:
        return 1 << 17  # enumeration works on few numbers per table at a time


SCORES: dict[str, type[Scoring]] = {
    score.name: score for score in (MutualInformation, DistanceToMaximum, DistanceToIndependence)
}


def scoring(name: str, rows: int, domain: Domain) -> Scoring:
    """Find the score with this name for a party's rows; the number of rows is public."""
    if not 1 <= rows <= LARGEST_ROWS:
        raise OperatorError(f"a party has {rows} rows; scores need 1 to {LARGEST_ROWS}")
    found = SCORES.get(name)
    if found is None or (found.needs_bits and not domain.is_binary):
        raise OperatorError(f"score {name} does not fit these variables; use I or R, or F if all variables are binary")
    return found(rows, domain.is_binary)


def mutual_information_sensitivity(rows: int, binary: bool) -> Fraction:
    """An upper bound on S(I) (Lemma 4.1).

    `binary` says that in every family X is binary or the parents have two cells.
    """
    if rows == 1:
        return Fraction(0)
    n = gmpy2.mpz(rows)
    with gmpy2.context(precision=128, round=gmpy2.RoundUp):  # every term is positive: rounding up stays above
        most = gmpy2.log2(n) + (n - 1) * gmpy2.log2(gmpy2.mpfr(n) / (n - 1))
        if not binary:
            most = max(most, 2 * gmpy2.log2(gmpy2.mpfr(n + 1) / 2) + (n - 1) * gmpy2.log2(gmpy2.mpfr(n + 1) / (n - 1)))
        numerator, denominator = most.as_integer_ratio()
    return Fraction(int(numerator), int(denominator) * rows)


def _power_of_two_below(number: int) -> int:
    """The exponent of the largest power of two that is at most `number`, or 0."""
    return max(number, 1).bit_length() - 1


def _steps(distance: int, grid: int) -> int:
    """The most steps of 2^grid between two integers that are `distance` apart, once both are rounded down."""
    return -(-distance >> grid)
