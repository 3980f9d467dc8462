"""Layout of one pass in public numbers, and the encoding of vectors as bytes.

It does not know what the cells count.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import groupby
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.int64]
WORD_BYTES = 8
Word = TypeVar("Word", np.int64, np.uint64)


@dataclass(frozen=True)
class Layout:
    """One pass in public numbers: the cells and the noise of each table, and the largest possible total."""

    cells: tuple[int, ...]
    rates: tuple[Fraction, ...]  # the rate of each table's noise, in the terms of the plan's privacy definition
    bound: int  # the number of rows that are counted, which no cell's total exceeds

    @property
    def size(self) -> int:
        return sum(self.cells)

    @cached_property
    def runs(self) -> tuple[tuple[Fraction, int], ...]:
        """Runs of neighbouring tables with equal noise, which is drawn together: (rate, cells)."""
        tables = zip(self.rates, self.cells, strict=True)
        return tuple((rate, sum(cells for _, cells in run)) for rate, run in groupby(tables, key=lambda t: t[0]))

    def split(self, vector: NDArray[Word]) -> list[NDArray[Word]]:
        """Split a vector into one part for each table."""
        return split_vector(vector, self.cells)


def split_vector(vector: NDArray[Word], cells: Sequence[int]) -> list[NDArray[Word]]:
    return np.split(vector, np.cumsum(cells)[:-1]) if cells else []


def joined(parts: Sequence[Vector]) -> Vector:
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts])


def words_to_bytes(vector: NDArray[np.uint64]) -> bytes:
    return vector.astype("<u8").tobytes()


def words_from_bytes(blob: bytes) -> NDArray[np.uint64]:
    return np.frombuffer(blob, dtype="<u8")
