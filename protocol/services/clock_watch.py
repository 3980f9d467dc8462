"""Tests of this machine's clock: it must not jump, and it must agree with the signed times of its peers.

It does not know clocks: every reading is an argument. `wall` is milliseconds since 1970, `steady` milliseconds of a
monotonic clock.
"""

from dataclasses import dataclass, field

LARGEST_JUMP_MS = 10_000
LARGEST_DIFFERENCE_MS = 60_000  # a fifth of the largest difference that `protocol.messages.signatures` allows
SHOWN_MS = 60_000  # how long a jump is reported
HEARD_MS = 600_000  # how long a peer's time counts


@dataclass
class ClockWatch:
    """A clock is doubted when at least `fewest` peers contradict it, and more than half of those heard recently."""

    fewest: int = 1
    jumps: int = 0
    _last: tuple[int, int] | None = None
    _jump: tuple[int, int] | None = None  # by how much, and when by the steady clock
    _heard: dict[str, tuple[int, int]] = field(default_factory=dict)

    def look(self, wall: int, steady: int) -> None:
        """Compare how far both clocks have moved since the last look."""
        last, self._last = self._last, (wall, steady)
        by = 0 if last is None else (wall - last[0]) - (steady - last[1])
        if abs(by) > LARGEST_JUMP_MS:
            self.jumps += 1
            self._jump = by, steady

    def heard(self, peer: str, difference: int, steady: int) -> None:
        """Record a peer's signed time minus this clock's, in milliseconds."""
        self._heard[peer] = difference, steady

    def differences(self, steady: int) -> dict[str, int]:
        """Differences by peer, for the peers heard in the last `HEARD_MS`."""
        return {peer: by for peer, (by, at) in list(self._heard.items()) if steady - at <= HEARD_MS}

    def trouble(self, steady: int) -> str | None:
        """A sentence that says what is wrong with this clock, or None."""
        if self._jump is not None and steady - self._jump[1] <= SHOWN_MS:
            return f"this machine's clock jumped by {_seconds(self._jump[0])}: check its time synchronisation"
        found = self.differences(steady)
        against = [by for by in found.values() if abs(by) > LARGEST_DIFFERENCE_MS]
        if len(against) >= self.fewest and 2 * len(against) > len(found):
            middle = sorted(against)[len(against) // 2]
            way = "behind" if middle > 0 else "ahead of"
            return (
                f"this machine's clock is {_seconds(abs(middle))} {way} the signed time of {len(against)} of "
                f"{len(found)} peers: check its time synchronisation"
            )
        return None


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:.0f} s"
