"""Batches of a table's rows, by column: the texts of a column, each once where that is known, and who has which.

It does not know what the texts mean (`protocol.tables.coding`), or where rows come from.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

BATCH = 1 << 16  # rows at most
_CELLS = 1 << 20  # of a batch at most, so that the memory of wide tables is bounded too

Row = Sequence[str]
_Kind = TypeVar("_Kind", bound=np.generic)
_Rows = TypeVar("_Rows")


@dataclass(frozen=True)
class Column:
    texts: Sequence[str]
    places: NDArray[Any] | None = None  # of each row's text among the texts; None: every row has a text of its own

    def spread(self, found: NDArray[_Kind]) -> NDArray[_Kind]:
        """Return for every row what was found for its text."""
        return found if self.places is None else found[self.places]

    def text(self, row: int) -> str:
        return self.texts[row if self.places is None else self.places[row]]

    def counted(self) -> Iterator[tuple[str, int]]:
        """Yield the texts that rows have, and how many rows have each; a text may come several times."""
        if self.places is None:
            yield from ((text, 1) for text in self.texts)
            return
        counts = np.bincount(self.places, minlength=len(self.texts)).tolist()
        yield from ((text, count) for text, count in zip(self.texts, counts, strict=True) if count)

    def by_row(self) -> Sequence[str]:
        return self.texts if self.places is None else [self.texts[place] for place in self.places.tolist()]


@dataclass(frozen=True)
class Batch:
    rows: int
    columns: Mapping[int, Column]  # by place in the header; they hold the rows that are as wide as the header
    misfits: Mapping[int, Row] = field(default_factory=dict)  # all other rows, by place in the batch

    @classmethod
    def of(cls, rows: Sequence[Row], width: int) -> "Batch":
        misfits = {place: row for place, row in enumerate(rows) if len(row) != width}
        fitting = [row for place, row in enumerate(rows) if place not in misfits] if misfits else rows
        columns = map(Column, zip(*fitting, strict=True)) if fitting else [Column(())] * width
        return cls(len(rows), dict(enumerate(columns)), misfits)

    @cached_property
    def fitting(self) -> NDArray[np.intp]:
        """The places of the rows that the columns hold."""
        return np.delete(np.arange(self.rows), [*self.misfits])

    def in_rows(self) -> Iterator[Row]:
        """Yield every row with the fields of all columns of the batch."""
        fitting = zip(*(column.by_row() for column in self.columns.values()), strict=True)
        for place in range(self.rows):
            yield self.misfits[place] if place in self.misfits else next(fitting)


def batched(rows: Iterable[Row], width: int) -> Iterator[Batch]:
    """Divide the rows of a table whose header has `width` fields."""
    return (Batch.of(found, width) for found in divided(rows, width))


def divided(rows: Iterable[_Rows], width: int) -> Iterator[list[_Rows]]:
    """Yield as many rows of `width` values at a time as should be held in memory."""
    remaining, most = iter(rows), max(1, min(BATCH, _CELLS // max(width, 1)))
    while found := list(islice(remaining, most)):
        yield found
