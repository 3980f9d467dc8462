"""The shape that benchmarks share: seconds of a processor of this package's way, beside those of another way.

Both are measured in one process, one after the other, so that their ratio holds on any machine.
"""

from collections.abc import Callable
from dataclasses import dataclass
from time import process_time

REPEATS = 3


@dataclass(frozen=True)
class Ratio:
    """How many seconds our way and another way took to do `name`; `beside` says what the other way is."""

    name: str
    beside: str
    ours: float
    other: float

    @property
    def ratio(self) -> float:
        return self.ours / self.other


def seconds(act: Callable[[], object], repeats: int = REPEATS) -> float:
    """Return the processor's seconds of the quickest of some repeats, over all threads."""
    return min(_once(act) for _ in range(repeats))


def _once(act: Callable[[], object]) -> float:
    begun = process_time()
    act()
    return process_time() - begun
