"""Pictures of the report, drawn as SVG on the server: bars with bands, a heat map of pairs, the network.

It does not know where the numbers come from. Colours are classes of the report's style; a picture holds no script.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from markupsafe import Markup, escape

from curator.rendering.svg import picture, shortened, text, turned

Json = Mapping[str, Any]
# Upper ends of the classes of errors, and their names.
CLASSES: tuple[tuple[float, str], ...] = (
    (0.01, "up to 1 %"),
    (0.02, "up to 2 %"),
    (0.05, "up to 5 %"),
    (0.1, "up to 10 %"),
    (0.2, "up to 20 %"),
    (0.5, "up to 50 %"),
    (1.0, "more than 50 %"),
)
_MOST_BARS = 16
_MOST_NAMED = 60  # attributes at most whose names fit beside the heat map
_MOST_TITLED = 40  # attributes at most whose pairs each have a title with their numbers
_PER_ROW = 6  # boxes of the network beside each other


# Marginals


def marginal(one: Json) -> Markup:
    """Draw the shares of an attribute: bars for the noisy tables, bands for the noise, dots for the published table."""
    label = f"Shares of {one['attribute']}"
    if len(one["categories"]) <= _MOST_BARS:
        return _bars(one, label)
    return _columns(one, label)


def _largest(one: Json) -> float:
    shares: Sequence[float] = one["estimate"] or one["table"]
    band: float = one["band"] or 0.0
    drawn: Sequence[float] = one["table"]
    return max(1e-9, max(shares) + band, max(drawn))


def _bars(one: Json, label: str) -> Markup:
    left, width, step = 118.0, 170.0, 22.0
    scale = width / _largest(one)
    parts = []
    for number, name in enumerate(one["categories"]):
        y = 4 + number * step
        title = f"<title>{escape(name)}: {_in_words(one, number)}</title>"
        parts.append(f"<g>{title}{text(left - 8, y + 14, shortened(name), 'end')}")
        if one["estimate"] is not None:
            share, band = one["estimate"][number], one["band"]
            low, high = max(0.0, share - band), max(0.0, share + band)
            parts.append(
                f'<rect class="bar" x="{left}" y="{y + 3}" width="{max(0.0, share) * scale:.1f}" height="14"/>'
            )
            parts.append(_whisker(left + low * scale, left + high * scale, y + 10))
        dot = left + one["table"][number] * scale
        parts.append(f'<circle class="dot" cx="{dot:.1f}" cy="{y + 10}" r="3.5"/>')
        parts.append(text(left + width + 12, y + 14, f"{(one['estimate'] or one['table'])[number]:.1%}") + "</g>")
    return picture(left + width + 58, 8 + step * len(one["categories"]), label, parts)


def _whisker(low: float, high: float, y: float) -> str:
    ends = "".join(f"M{x:.1f} {y - 4}v8" for x in (low, high))
    return f'<path class="band" d="M{low:.1f} {y}H{high:.1f}{ends}"/>'


def _columns(one: Json, label: str) -> Markup:
    """Draw many categories as columns, with names for the first and the last."""
    count, height = len(one["categories"]), 120.0
    step = max(3.0, min(14.0, 320 / count))
    scale = height / _largest(one)
    parts = []
    for number, name in enumerate(one["categories"]):
        x = 4 + number * step
        parts.append(f"<g><title>{escape(name)}: {_in_words(one, number)}</title>")
        if one["estimate"] is not None:
            share, band = max(0.0, one["estimate"][number]), one["band"]
            top = height + 4 - share * scale
            parts.append(
                f'<rect class="bar" x="{x:.1f}" y="{top:.1f}" width="{step * 0.8:.1f}" height="{share * scale:.1f}"/>'
            )
            low, high = (height + 4 - max(0.0, share + sign * band) * scale for sign in (-1, 1))
            parts.append(f'<path class="band" d="M{x + step * 0.4:.1f} {low:.1f}V{high:.1f}"/>')
        dot = height + 4 - one["table"][number] * scale
        parts.append(f'<circle class="dot" cx="{x + step * 0.4:.1f}" cy="{dot:.1f}" r="{min(3.0, step / 3):.1f}"/></g>')
    width = max(160.0, 8 + step * count)
    ends = [text(4, height + 20, shortened(one["categories"][0], 14)), text(width - 4, height + 20, shortened(
        one["categories"][-1], 14), "end")]  # fmt: skip
    return picture(width, height + 26, label, [*parts, *ends])


def _in_words(one: Json, number: int) -> str:
    table = f"{one['table'][number]:.2%} of the published table"
    if one["estimate"] is None:
        return table
    return f"{one['estimate'][number]:.2%} ± {one['band']:.2%} by the noisy tables, {table}"


# Pairs


def class_of(error: float | None) -> int | None:
    """Return the index in `CLASSES` of an error."""
    if error is None:
        return None
    return next(number for number, (end, _) in enumerate(CLASSES) if error <= end)


def heat_map(pairs: Json) -> Markup:
    """Draw a square for each pair of attributes, darker for a larger error, and with a ring if the pair is modelled."""
    names, errors = pairs["attributes"], pairs["errors"]
    count = len(names)
    named = count <= _MOST_NAMED
    step = max(3.0, min(26.0, 640 / count))
    left = 140.0 if named else 8.0
    titled = count <= _MOST_TITLED
    parts = list(_titled_squares(names, errors, step, left) if titled else _squares(errors, step, left))
    parts.append(_rings(pairs["modelled"], step, left))
    if named:
        parts += [text(left - 6, step * (row + 0.7), shortened(names[row]), "end") for row in range(1, count)]
        parts += [_column_name(names[column], left + step * (column + 0.7), step * count + 6) for column in
                  range(count - 1)]  # fmt: skip
    return picture(left + step * count + 8, step * count + (120 if named else 8), "Expected error of each pair", parts)


def _titled_squares(names: Sequence[str], errors: Sequence[Any], step: float, left: float) -> Iterator[str]:
    for row, line in enumerate(errors, start=1):
        for column, error in enumerate(line):
            said = "not measured together" if error is None else f"{error:.2%}"
            yield (
                f'<rect class="{_class(error)}" x="{left + column * step:.1f}" y="{row * step:.1f}" '
                f'width="{step - 1:.1f}" height="{step - 1:.1f}">'
                f"<title>{escape(names[row])}, {escape(names[column])}: {said}</title></rect>"
            )


def _squares(errors: Sequence[Any], step: float, left: float) -> Iterator[str]:
    """Draw one path for each class of errors, so that thousands of pairs stay small."""
    paths: dict[str, list[str]] = {}
    for row, line in enumerate(errors, start=1):
        for column, error in enumerate(line):
            square = f"M{left + column * step:.0f} {row * step:.0f}h{step:.0f}v{step:.0f}h-{step:.0f}z"
            paths.setdefault(_class(error), []).append(square)
    yield from (f'<path class="{kind}" d="{"".join(squares)}"/>' for kind, squares in paths.items())


def _class(error: float | None) -> str:
    number = class_of(error)
    return "e-none" if number is None else f"e-{number}"


def _rings(modelled: Sequence[Sequence[int]], step: float, left: float) -> str:
    radius = max(1.0, step * 0.28)
    found = []
    for column, row in modelled:
        x, y = left + (column + 0.48) * step - radius, (row + 0.48) * step
        found.append(f"M{x:.1f} {y:.1f}a{radius:.1f} {radius:.1f} 0 1 0 {2 * radius:.1f} 0"
                     f"a{radius:.1f} {radius:.1f} 0 1 0 -{2 * radius:.1f} 0")  # fmt: skip
    return f'<path class="ring" d="{"".join(found)}"/>' if found else ""


def _column_name(name: str, x: float, y: float) -> str:
    return turned(x, y, shortened(name), -60, "end")


# The network


def network(attributes: Sequence[str], edges: Sequence[Json]) -> Markup:
    """Draw boxes in layers, parents above their children. A thicker line means more mutual information."""
    rows = [row for layer in _layers(attributes, edges) for row in _wrapped(layer)]
    box, gap, height = 128.0, 14.0, 34.0
    width = max(len(row) for row in rows) * (box + gap) + gap
    places = {
        name: (gap + (width - 2 * gap - len(row) * (box + gap) + gap) / 2 + place * (box + gap), 8 + number * 84.0)
        for number, row in enumerate(rows)
        for place, name in enumerate(row)
    }
    strongest = max((edge["bits"] for edge in edges), default=0.0) or 1.0
    lines = [_line(edge, places, box, height, strongest) for edge in edges]
    boxes = [
        f'<g><title>{escape(name)}</title><rect class="box" x="{x:.1f}" y="{y:.1f}" width="{box}" height="{height}" '
        f'rx="7"/>{text(x + box / 2, y + 22, shortened(name, 15), "middle")}</g>'
        for name, (x, y) in places.items()
    ]
    return picture(width, 84 * len(rows) - 30, "The network", [*lines, *boxes])


def _line(edge: Json, places: Mapping[str, tuple[float, float]], box: float, height: float, strongest: float) -> str:
    (x1, y1), (x2, y2) = places[edge["parent"]], places[edge["child"]]
    if y2 <= y1:  # several networks together may form a cycle: such a line is turned round
        (x1, y1), (x2, y2) = (x2, y2), (x1, y1)
    x1, y1, x2, bend = x1 + box / 2, y1 + height, x2 + box / 2, max(24.0, (y2 - y1 - height) / 2)
    thick = 1 + 6 * edge["bits"] / strongest
    title = f"<title>{escape(edge['parent'])} to {escape(edge['child'])}: {edge['bits']:.3f} bits</title>"
    return (
        f'<path class="edge" stroke-width="{thick:.1f}" d="M{x1:.1f} {y1:.1f}C{x1:.1f} {y1 + bend:.1f} '
        f'{x2:.1f} {y2 - bend:.1f} {x2:.1f} {y2:.1f}">{title}</path>'
    )


def _layers(attributes: Sequence[str], edges: Sequence[Json]) -> list[list[str]]:
    """Put every attribute below its parents. If several networks together form a cycle, it is cut somewhere."""
    parents: dict[str, set[str]] = {name: set() for name in attributes}
    for edge in edges:
        parents[edge["child"]].add(edge["parent"])
    layers: list[list[str]] = []
    waiting = list(attributes)
    placed: set[str] = set()
    while waiting:
        layer = [name for name in waiting if parents[name] <= placed] or waiting[:1]
        layers.append(layer)
        placed.update(layer)
        waiting = [name for name in waiting if name not in placed]
    return _near_their_parents(layers, parents)


def _near_their_parents(layers: list[list[str]], parents: Mapping[str, set[str]]) -> list[list[str]]:
    """Sort each layer by the places of the parents, so that fewer lines cross."""
    for upper, lower in pairwise(layers):
        place = {name: number / len(upper) for number, name in enumerate(upper)}
        lower.sort(key=lambda name, place=place: _mean([place.get(parent, 0.5) for parent in parents[name]]))  # type: ignore[misc]
    return layers


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.5


def _wrapped(layer: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(layer), _PER_ROW):
        yield layer[start : start + _PER_ROW]
