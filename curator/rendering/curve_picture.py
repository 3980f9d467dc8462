"""A picture of predicted error over epsilon, on a logarithmic axis.

It does not know how errors are predicted (`protocol.forecast.curve`).
"""

from collections.abc import Mapping, Sequence
from math import log2
from typing import Any

from markupsafe import Markup

from curator.rendering.svg import picture, text, title

_LEFT, _TOP, _WIDTH, _HEIGHT = 56.0, 12.0, 420.0, 170.0
_LINES = 4  # across, for the eye


def error_curve(points: Sequence[Mapping[str, Any]], enough: float | None) -> Markup:
    """Draw the error, the range in which it lies, and the epsilon from which more helps little."""
    first, last = (log2(points[end]["epsilon"]) for end in (0, -1))
    most = float(max(point["high"] for point in points))

    def x(epsilon: float) -> float:
        return _LEFT + _WIDTH * (log2(epsilon) - first) / ((last - first) or 1)

    def y(error: float) -> float:
        return _TOP + _HEIGHT * (1 - error / most)

    across = [(most * number / _LINES, _TOP + _HEIGHT * (1 - number / _LINES)) for number in range(_LINES + 1)]
    parts = [f'<path class="grid-line" d="M{_LEFT} {at:.1f}H{_LEFT + _WIDTH}"/>' for _, at in across]
    parts += [text(_LEFT - 6, at + 4, f"{error:.1%}", "end") for error, at in across]
    upper = [f"{x(p['epsilon']):.1f} {y(p['high']):.1f}" for p in points]
    lower = [f"{x(p['epsilon']):.1f} {y(p['low']):.1f}" for p in reversed(points)]
    parts.append(f'<path class="range" d="M{"L".join([*upper, *lower])}Z"/>')
    if enough is not None:
        parts.append(f'<path class="enough" d="M{x(enough):.1f} {_TOP}V{_TOP + _HEIGHT}"/>')
    line = [f"{x(p['epsilon']):.1f} {y(p['error']):.1f}" for p in points]
    parts.append(f'<path class="curve" d="M{"L".join(line)}"/>')
    for point in points:
        at, said = x(point["epsilon"]), f"epsilon {point['epsilon']:g}: {point['error']:.2%}, {point['method']}"
        parts.append(f'<g>{title(said)}<circle class="spot" cx="{at:.1f}" cy="{y(point["error"]):.1f}" r="3.5"/></g>')
        parts.append(text(at, _TOP + _HEIGHT + 18, f"{point['epsilon']:g}", "middle"))
    parts.append(text(_LEFT + _WIDTH / 2, _TOP + _HEIGHT + 36, "epsilon", "middle"))
    return picture(_LEFT + _WIDTH + 16, _TOP + _HEIGHT + 44, "Predicted error by epsilon", parts)
