"""Health of a party: checks of its ledger, disk, clock and curator.

It does not know HTTP or who asks.
"""

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic, time

from party.errors import LedgerError
from party.home.home import OpenHome
from protocol.errors import CURATOR
from protocol.services.clock_watch import ClockWatch

SMALLEST_FREE = 64 << 20  # bytes

Clock = Callable[[], int]  # milliseconds


def system_clock() -> int:
    return int(time() * 1000)


def steady_clock() -> int:
    """Milliseconds of a clock that nobody can set."""
    return int(monotonic() * 1000)


@dataclass
class Health:
    """The checks of one party; `trouble` returns what keeps the worker from working, or None."""

    opened: OpenHome
    trouble: Callable[[], str | None]
    clock: Clock = system_clock
    steady: Clock = steady_clock
    watch: ClockWatch = field(default_factory=ClockWatch)

    def heard(self, difference: int) -> None:
        """Note by how many milliseconds the curator's signed time is ahead of this machine's."""
        self.watch.heard(CURATOR, difference, self.steady())

    def checks(self) -> dict[str, str | None]:
        """Return what is wrong with each part, or None for a part that works."""
        return {"ledger": self._ledger(), "disk": self._disk(), "clock": self._clock(), "curator": self.trouble()}

    def free_bytes(self) -> int:
        return shutil.disk_usage(self.opened.home.path).free

    def _ledger(self) -> str | None:
        try:
            self.opened.ledger.requests("asked")
        except LedgerError as error:
            return str(error)
        return None

    def _disk(self) -> str | None:
        try:
            with tempfile.TemporaryFile(dir=self.opened.home.path) as file:
                file.write(b"ready?")
                file.flush()
            free = self.free_bytes()
        except OSError as error:
            return (
                f"{self.opened.home.path}: the service cannot write here ({error.strerror}): make room, or let it write"
            )
        if free < SMALLEST_FREE:
            return (
                f"{self.opened.home.path}: {free >> 20} MiB are free, {SMALLEST_FREE >> 20} MiB are needed: make room"
            )
        return None

    def _clock(self) -> str | None:
        self.watch.look(self.clock(), self.steady())
        return self.watch.trouble(self.steady())
