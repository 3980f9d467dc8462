"""Chart of what a data set has spent over time: its points, and their places in the picture.

It does not know HTML. The numbers are the ledger's; only their places in the picture are rounded.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction

from party.books.ledger import Entry

WIDTH, HEIGHT = 960, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 8, 8, 18, 24
_TALLEST = Fraction(21, 20)  # room above the total


@dataclass(frozen=True)
class Spending:
    """One run's part of the account."""

    run: str
    at: str  # of its last answer that cost something
    charge: Fraction
    spent: Fraction  # by all runs until then


@dataclass(frozen=True)
class Picture:
    """A chart in units of the drawing."""

    line: str  # SVG path of what was spent
    area: str
    total: float  # height of the limit
    reserved: float  # height of what is spent and set aside
    spent: float
    marks: tuple[tuple[float, float], ...]
    first: str
    last: str
    width: int = WIDTH
    height: int = HEIGHT
    floor: int = HEIGHT - _BOTTOM
    left: int = _LEFT
    right: int = WIDTH - _RIGHT


def spendings(entries: Sequence[Entry]) -> list[Spending]:
    """The spending of each run, in the order of the last charges."""
    charged = [entry for entry in entries if entry.charge]
    last = {entry.run: entry.at for entry in charged}
    found, spent = [], Fraction(0)
    for run in sorted(last, key=lambda name: last[name]):
        charge = sum((entry.charge for entry in charged if entry.run == run), Fraction(0))
        spent += charge
        found.append(Spending(run, last[run], charge, spent))
    return found


def picture(
    entries: Sequence[Entry], total: Fraction, reserved: Fraction, now: str, before: Fraction = Fraction(0)
) -> Picture | None:
    """Draw the chart, which begins with what was spent `before`; None if nothing is in the ledger."""
    charged = sorted((entry for entry in entries if entry.charge), key=lambda entry: entry.at)
    if not charged:
        return None
    spent = sum((entry.charge for entry in charged), before)
    scale = _Scale(charged[0].at, max(now, charged[-1].at), max(total, spent + reserved))
    running, points = before, []
    for entry in charged:
        running += entry.charge
        points.append((scale.x(entry.at), scale.y(running)))
    start, floor, end = f"M{_LEFT} {scale.y(before)}", scale.y(Fraction(0)), WIDTH - _RIGHT
    line = start + "".join(f"H{x}V{y}" for x, y in points) + f"H{end}"
    return Picture(
        line=line,
        area=f"{line}V{floor}H{_LEFT}Z",
        total=scale.y(total),
        reserved=scale.y(spent + reserved),
        spent=scale.y(spent),
        marks=tuple(points),
        first=_called(charged[0].at, now),
        last=_called(max(now, charged[-1].at), charged[0].at),
    )


def _called(at: str, other: str) -> str:
    """The label of an end: its date, or its time if both ends are on one day."""
    return f"{at[11:16]} UTC" if at[:10] == other[:10] else at[:10]


class _Scale:
    def __init__(self, first: str, last: str, most: Fraction) -> None:
        self._first, self._most = _seconds(first), most * _TALLEST
        self._span = max(1.0, _seconds(last) - self._first)

    def x(self, at: str) -> float:
        """Place a moment; the first charge is a little inside, so that its step can be seen."""
        inner = WIDTH - _LEFT - _RIGHT
        return round(_LEFT + inner * (0.04 + 0.92 * (_seconds(at) - self._first) / self._span), 1)

    def y(self, amount: Fraction) -> float:
        inner = HEIGHT - _TOP - _BOTTOM
        return round(HEIGHT - _BOTTOM - inner * float(amount / self._most), 1)


def _seconds(at: str) -> float:
    moment = datetime.fromisoformat(at)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
