"""Findings of the doctor commands: one line for each check, with a verdict and a remedy.

It does not know the checks, except the few that both shells share.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from protocol.errors import SubnError

Verdict = Literal["ok", "warn", "bad"]
BAD_CODE = 1
MEGABYTE = 1 << 20
LEAST_DISK, LITTLE_DISK = 100 * MEGABYTE, 1024 * MEGABYTE
SOON_DAYS, CA_SOON_DAYS = 14, 365
MUCH_CLOCK, SOME_CLOCK = 300.0, 30.0  # seconds; requests whose time is further off than the first are refused


@dataclass(frozen=True)
class Finding:
    what: str
    verdict: Verdict
    found: str
    mend: str = ""

    @property
    def line(self) -> str:
        return f"{self.verdict:5} {self.what:14} {self.found}{f' - {self.mend}' if self.mend else ''}"


Look = Callable[[], Iterable[Finding]]


def examine(looks: Sequence[tuple[str, Look]]) -> list[Finding]:
    """Run every check, even after one that failed."""
    return [finding for what, look in looks for finding in _examined(what, look)]


def _examined(what: str, look: Look) -> Iterator[Finding]:
    try:
        yield from look()
    except SubnError as error:  # its sentence says what to do
        yield Finding(what, "bad", str(error))
    except OSError as error:
        yield Finding(what, "bad", f"{error.filename or 'a file'}: {error.strerror or error}", "make it accessible")


def code_of(findings: Sequence[Finding]) -> int:
    return BAD_CODE if any(one.verdict == "bad" for one in findings) else 0


def data_of(findings: Sequence[Finding]) -> dict[str, Any]:
    counts = {verdict: sum(one.verdict == verdict for one in findings) for verdict in ("ok", "warn", "bad")}
    return counts | {"findings": [vars(one) for one in findings]}


# Checks that both shells share


def disk(free: int, where: str) -> Finding:
    found = f"{free // MEGABYTE:,} MB free at {where}"
    mend = "free some space: on a full disk nothing can be stored, and runs wait"
    verdict: Verdict = "bad" if free < LEAST_DISK else "warn" if free < LITTLE_DISK else "ok"
    return Finding("disk", verdict, found, "" if verdict == "ok" else mend)


def modes(open_to_others: Sequence[str]) -> Finding:
    """A finding about secret files; `open_to_others` names those that other users may read."""
    if not open_to_others:
        return Finding("file modes", "ok", "only their owner can read the secrets")
    names = " ".join(open_to_others)
    return Finding("file modes", "bad", f"others may read {', '.join(open_to_others)}", f"chmod go= {names}")


def lasting(what: str, days: int, soon: int, mend: str) -> Finding:
    """A finding about how many days a certificate is still valid."""
    if days < 0:
        return Finding(what, "bad", f"ended {-days} days ago", mend)
    return Finding(what, "warn" if days < soon else "ok", f"{days} days left", mend if days < soon else "")


def clock(ahead: float, whose: str) -> Finding:
    """A finding about this machine's clock, which is `ahead` seconds ahead of the other's."""
    off = abs(ahead)
    found = f"{off:.0f} seconds {'ahead of' if ahead > 0 else 'behind'} {whose}"
    if off <= SOME_CLOCK:
        return Finding("clock", "ok", f"within {SOME_CLOCK:.0f} seconds of {whose}")
    mend = f"set the wrong clock, by NTP; beyond {MUCH_CLOCK:.0f} seconds every request is refused"
    return Finding("clock", "bad" if off >= MUCH_CLOCK else "warn", found, mend)
