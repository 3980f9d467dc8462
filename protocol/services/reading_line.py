"""A progress line with the rows of a table that have been read, shown once reading takes over a second.

It does not know clocks or terminals: the shells hand it both.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from protocol.tables.batches import Batch
from protocol.text import printable

_SECONDS = 1.0  # before the line appears, and between two of its states
_WIDTH = 70  # characters, so that a shorter text covers a longer one

Part = Callable[[], float | None]  # how much of the source has been read; None where nobody knows


def unknown() -> None:
    """Return None: nobody knows how much of the source has been read."""


@dataclass(frozen=True)
class ReadingLine:
    write: Callable[[str], object]
    now: Callable[[], float]  # in seconds

    def watched(self, source: str, batches: Iterable[Batch], part: Part = unknown) -> Iterator[Batch]:
        """Yield the batches, and keep the line up to date until they end."""
        told, rows, shown = self.now(), 0, False
        try:
            for batch in batches:
                rows += batch.rows
                if self.now() - told >= _SECONDS:
                    told, shown = self.now(), True
                    self.write("\r" + printable(f"{source}: {_words(rows, part())}")[-_WIDTH:].ljust(_WIDTH))
                yield batch
        finally:
            if shown:
                self.write("\r" + " " * _WIDTH + "\r")


def _words(rows: int, part: float | None) -> str:
    return f"{rows:,} rows read" + ("" if part is None else f", {part:.0%}")
