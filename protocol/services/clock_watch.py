"""Whether a clock can be trusted: it must not jump, and must agree with those whose signed times arrive.

It does not know clocks: every reading is an argument. `wall` is milliseconds since 1970, `steady` milliseconds of a
clock that nobody sets.
"""

from dataclasses import dataclass, field

LARGEST_JUMP_MS = 10_000
LARGEST_DIFFERENCE_MS = 60_000  # a fifth of what ends the conversation (`protocol.messages.signatures`)
SHOWN_MS = 60_000  # how long a jump is told
HEARD_MS = 600_000  # how long a peer's time counts


@dataclass
class ClockWatch:
    """`fewest` says how many peers must contradict a clock before it is doubted: more than half of those heard."""

    fewest: int = 1
    jumps: int = 0
    _last: tuple[int, int] | None = None
    _jump: tuple[int, int] | None = None  # by how much, and when by the steady clock
    _heard: dict[str, tuple[int, int]] = field(default_factory=dict)

    def look(self, wall: int, steady: int) -> None:
        """Compare both clocks with the last look."""
        last, self._last = self._last, (wall, steady)
        by = 0 if last is None else (wall - last[0]) - (steady - last[1])
        if abs(by) > LARGEST_JUMP_MS:
            self.jumps += 1
            self._jump = by, steady

    def heard(self, peer: str, difference: int, steady: int) -> None:
        """A peer's signed time, less this clock's."""
        self._heard[peer] = difference, steady

    def differences(self, steady: int) -> dict[str, int]:
        """By peer, of those heard of lately."""
        return {peer: by for peer, (by, at) in list(self._heard.items()) if steady - at <= HEARD_MS}

    def trouble(self, steady: int) -> str | None:
        """What speaks against this clock, if anything does."""
        if self._jump is not None and steady - self._jump[1] <= SHOWN_MS:
            return f"this machine's clock jumped by {_seconds(self._jump[0])}: see to its time synchronisation"
        found = self.differences(steady)
        against = [by for by in found.values() if abs(by) > LARGEST_DIFFERENCE_MS]
        if len(against) >= self.fewest and 2 * len(against) > len(found):
            middle = sorted(against)[len(against) // 2]
            way = "behind" if middle > 0 else "ahead of"
            return (
                f"this machine's clock is {_seconds(abs(middle))} {way} the signed time of {len(against)} of "
                f"{len(found)} peers: see to its time synchronisation"
            )
        return None


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:.0f} s"
