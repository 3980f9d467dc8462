"""Health of the curator: real checks of its store, its disk and its clock.

It does not know HTTP.
"""

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from time import monotonic

from curator.clock import Clock
from curator.errors import StoreUnavailable
from curator.store.store import Store
from protocol.services.clock_watch import ClockWatch

SMALLEST_FREE = 64 << 20  # bytes
_FRESH_MS = 1000  # anybody may ask, so frequent requests must cost nothing


def steady_clock() -> int:
    """Return the milliseconds of a monotonic clock, which nobody can set."""
    return int(monotonic() * 1000)


@dataclass
class Health:
    """The health checks. `checks` returns the problem of each check by its name, or None."""

    store: Store
    home: Path
    clock: Clock
    steady: Clock = steady_clock
    watch: ClockWatch = field(default_factory=lambda: ClockWatch(fewest=2))
    _lock: Lock = field(default_factory=Lock, repr=False)
    _found: tuple[int, dict[str, str | None]] | None = None

    def heard(self, party: str, its_time: int) -> None:
        """Note the time in a request that a party has just signed."""
        self.watch.heard(party, its_time - self.clock(), self.steady())

    def checks(self) -> dict[str, str | None]:
        with self._lock:
            now = self.steady()
            if self._found is None or now - self._found[0] > _FRESH_MS:
                self._found = now, {"store": self._store(), "disk": self._disk(), "clock": self._clock()}
            return self._found[1]

    def free_bytes(self) -> int:
        return shutil.disk_usage(self.home).free

    def _store(self) -> str | None:
        return _said(self.store.check, StoreUnavailable)

    def _disk(self) -> str | None:
        return _said(self._write_something, OSError)

    def _write_something(self) -> None:
        with tempfile.TemporaryFile(dir=self.home) as file:
            file.write(b"ready?")
            file.flush()
        free = self.free_bytes()
        if free < SMALLEST_FREE:
            raise OSError(0, f"{free >> 20} MiB are free, at least {SMALLEST_FREE >> 20} are needed: make room")

    def _clock(self) -> str | None:
        self.watch.look(self.clock(), self.steady())
        return self.watch.trouble(self.steady())


def _said(check: Callable[[], None], trouble: type[Exception]) -> str | None:
    try:
        check()
    except trouble as error:
        return (error.strerror if isinstance(error, OSError) else None) or str(error)
    return None
