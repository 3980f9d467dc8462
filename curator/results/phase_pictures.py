"""Pictures of a run's phases: the views and their attributes, and the network as a step left it.

It does not know where the numbers come from (`curator.results.phases`).
"""

from collections.abc import Iterator, Mapping, Sequence
from math import cos, pi, sin
from typing import Any

from markupsafe import Markup

from curator.rendering.svg import picture, shortened, text, title, turned

Json = Mapping[str, Any]
MOST_VIEWS = 80  # that are drawn
_MOST_NAMED = 80  # attributes whose names fit around a circle
_MOST_CIRCLES = 12  # networks that are drawn for one run
_STEP = 15.0
_NAME = 108.0

_BEGINNINGS = ("initial", "growth", "candidates")  # stages that place one column after another


def views(attributes: Sequence[str], found: Json) -> Markup:
    """Draw a line for each view, with a dot in the column of each of its attributes.

    Every pair of attributes has both dots in exactly one line.
    """
    held = found["attributes"][:MOST_VIEWS]
    left, top = 70.0, _NAME
    parts = [turned(left + _STEP * (n + 0.6), top - 4, shortened(name, 14), -60) for n, name in enumerate(attributes)]
    place = {name: left + _STEP * (number + 0.5) for number, name in enumerate(attributes)}
    for number, view in enumerate(held):
        parts += _view(number, [place[name] for name in view], view, found["cells"][number], top)
    return picture(left + _STEP * len(attributes) + 60, top + _STEP * len(held) + 6, "Views and their columns", parts)


def _view(number: int, places: Sequence[float], names: Sequence[str], cells: int, top: float) -> Iterator[str]:
    y, said = top + _STEP * (number + 0.6), ", ".join(names)
    yield f"<g>{title(f'View {number + 1}: {said}; {cells:,} cells')}"
    yield text(60, y + 4, f"{number + 1}", "end")
    yield f'<path class="held" d="M{min(places):.1f} {y:.1f}H{max(places):.1f}"/>'
    yield "".join(f'<circle class="spot" cx="{x:.1f}" cy="{y:.1f}" r="4"/>' for x in places) + "</g>"


def drawn_networks(found: Sequence[Json]) -> list[Json]:
    """Return the networks that are worth a picture: the last of the first phase, and every later one.

    Where there are too many of these, the last of each phase.
    """
    last = {one["stage"]: one["step"] for one in found}
    later = [one for one in found if one["stage"] not in _BEGINNINGS or one["step"] == last[one["stage"]]]
    return later if len(later) <= _MOST_CIRCLES else [one for one in later if one["step"] == last[one["stage"]]]


def network(attributes: Sequence[str], one: Json) -> Markup:
    """Draw the columns on a circle, with a line for each pair: new pairs strong, dropped ones of the frontier thin."""
    count = len(attributes)
    is_named = count <= _MOST_NAMED
    radius, edge = max(90.0, count * 14 / (2 * pi)), _NAME if is_named else 12.0
    middle = radius + edge
    angle = {name: 2 * pi * number / count - pi / 2 for number, name in enumerate(attributes)}
    ends = {name: (middle + radius * cos(turn), middle + radius * sin(turn)) for name, turn in angle.items()}
    new = set(map(tuple, one["new"]))
    parts = [_lines("dropped", one["dropped"], ends)]
    parts.append(_lines("kept", [pair for pair in one["pairs"] if tuple(pair) not in new], ends))
    parts += [_titled_line(pair, ends) for pair in one["new"]]
    for name, (x, y) in ends.items():
        parts.append(f'<g>{title(name)}<circle class="spot" cx="{x:.1f}" cy="{y:.1f}" r="3"/></g>')
        if is_named:
            parts.append(_outside(name, angle[name], middle, radius + 8))
    return picture(2 * middle, 2 * middle, f"The network after {one['step']}", parts)


def _lines(kind: str, pairs: Sequence[Sequence[str]], ends: Mapping[str, tuple[float, float]]) -> str:
    """Draw one path for all pairs of a kind, so that many stay small."""
    steps = [f"M{ends[a][0]:.1f} {ends[a][1]:.1f}L{ends[b][0]:.1f} {ends[b][1]:.1f}" for a, b in pairs]
    return f'<path class="{kind}" d="{"".join(steps)}"/>' if steps else ""


def _titled_line(pair: Sequence[str], ends: Mapping[str, tuple[float, float]]) -> str:
    return f"<g>{title(f'{pair[0]} and {pair[1]}')}{_lines('new', [pair], ends)}</g>"


def _outside(name: str, turn: float, middle: float, distance: float) -> str:
    """Write a name outside the circle, so that nobody has to read it upside down."""
    x, y = middle + distance * cos(turn), middle + distance * sin(turn) + 3
    degrees = turn * 180 / pi
    is_left = cos(turn) < -1e-9
    return turned(x, y, shortened(name, 14), degrees - 180 if is_left else degrees, "end" if is_left else "")
