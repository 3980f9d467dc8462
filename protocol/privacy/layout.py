"""The layout of one pass in public numbers, and how vectors travel as bytes.

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
    """One pass in public numbers: how many cells each table has, how much noise, and what a total can be."""

    cells: tuple[int, ...]
    rates: tuple[Fraction, ...]  # of each table's noise, as the plan's privacy definition has it
    bound: int  # no cell's total exceeds it: the number of rows that are counted

    @property
    def size(self) -> int:
        return sum(self.cells)

    @cached_property
    def runs(self) -> tuple[tuple[Fraction, int], ...]:
        """Neighbouring tables of equal noise, drawn together: (rate, cells)."""
        tables = zip(self.rates, self.cells, strict=True)
        return tuple((rate, sum(cells for _, cells in run)) for rate, run in groupby(tables, key=lambda t: t[0]))

    def split(self, vector: NDArray[Word]) -> list[NDArray[Word]]:
        """The vector's part of each table."""
        return split_vector(vector, self.cells)


def split_vector(vector: NDArray[Word], cells: Sequence[int]) -> list[NDArray[Word]]:
    return np.split(vector, np.cumsum(cells)[:-1]) if cells else []


def joined(parts: Sequence[Vector]) -> Vector:
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts])


def words_to_bytes(vector: NDArray[np.uint64]) -> bytes:
    return vector.astype("<u8").tobytes()


def words_from_bytes(blob: bytes) -> NDArray[np.uint64]:
    return np.frombuffer(blob, dtype="<u8")
