"""Kinds with a range that is divided into bins: the bin of a value, and values drawn from a bin.

It does not know what the values are: numbers (`protocol.tables.kinds.numbers`), or moments as numbers of days or
seconds (`protocol.tables.kinds.moments`).

Values are exact, so that every machine puts a value into the same bin. A bin holds its lower edge.
"""

from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crypto.randomness import Stream
from protocol.tables.kinds.attribute import MISSING_LABEL, AttributeBase
from protocol.tables.kinds.slopes import offsets_in_bins, slopes
from protocol.tables.text_column import TextColumn

MOST_IN_BIN = 1 << 63
_MOST_WHOLE = 1 << 62
MOST_KEPT = 1 << 17  # texts of an attribute; of more, each row's is written anew


class Ranged(AttributeBase):
    @property
    @abstractmethod
    def cuts(self) -> tuple[Any, ...]:
        """The edges of the bins, from the first to the last: one more than there are bins."""

    @cached_property
    @abstractmethod
    def grid(self) -> tuple[list[int], list[int]]:
        """The values that can be written, by number: the first of each bin, and how many there are in each bin."""

    @abstractmethod
    def written_value(self, number: int) -> str:
        """Write the value with this number in the grid."""

    def written_values(self, numbers: NDArray[Any]) -> list[str]:
        return [*map(self.written_value, numbers.tolist())]

    @abstractmethod
    def label_of_bin(self, index: int) -> str:
        """Name a bin for people."""

    @property
    def is_ordered(self) -> bool:
        return True

    def bin(self, value: Fraction | int) -> int:
        """The bin of a value between the first and the last edge."""
        return min(bisect_right(self.cuts, value) - 1, self.categories - 1)

    def texts(self, codes: NDArray[Any], stream: Stream) -> TextColumn:
        first, held = self.grid
        rises = slopes(np.bincount(codes, minlength=self.categories)[: self.categories], np.array(held, np.float64))
        if self.missing:
            first, held, rises = [*first, 0], [*held, 1], np.append(rises, 0.0)
        offsets = offsets_in_bins(codes, np.array(held, dtype=np.uint64), rises, stream)
        if sum(held) <= MOST_KEPT:
            before = np.cumsum([0, *held[:-1]], dtype=np.int32)
            return TextColumn(self._written, before[codes] + offsets.astype(np.int32))
        texts = self.written_values(np.array(first, self._whole)[codes] + offsets.astype(self._whole))
        rows = np.arange(len(texts))
        return TextColumn([*texts, *self.missing[:1]], np.where(codes == self.categories, len(texts), rows))

    @cached_property
    def _written(self) -> list[str]:
        """Every value that can be written, bin after bin, and how a missing value is written."""
        values = [first + offset for first, held in zip(*self.grid, strict=True) for offset in range(held)]
        return [*self.written_values(np.array(values, self._whole)), *self.missing[:1]]

    @property
    def _whole(self) -> type:
        """The type of the values' numbers: Python's integers, if they may leave 64 bits."""
        first, held = self.grid
        return np.int64 if max(-first[0], first[-1] + held[-1]) < _MOST_WHOLE else object

    def labels_of_categories(self) -> list[str]:
        return [*map(self.label_of_bin, range(self.categories)), *[MISSING_LABEL] * bool(self.missing)]


def disorder(edges: Sequence[Any]) -> Iterator[int]:
    """Find the places of edges that do not lie above the edge before."""
    return (place for place in range(1, len(edges)) if edges[place] <= edges[place - 1])
