"""An opened source of rows, the same for every kind of source.

It does not know files or databases.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from protocol.services.delimited import Decimal
from protocol.services.reading_line import Part, unknown
from protocol.tables.batches import Batch, Row


def by_number(number: int) -> str:
    """Name a row of a source that has no places of its own."""
    return f"row {number}"


@dataclass
class Done:
    """How much of a source has been read, in bytes or rows."""

    whole: int
    done: int = 0

    def part(self) -> float | None:
        return min(1.0, self.done / self.whole) if self.whole else None


@dataclass(frozen=True)
class Table:
    header: Row
    batches: Iterator[Batch]
    decimal: Decimal = "."
    how: str = ""  # the way in which a file is read, in words; empty where there is no choice
    place: Callable[[int], str] = by_number  # the place of a row in the source; the first row below the header is 1
    part: Part = unknown  # how much of the source has been read
