"""Edges of bins that are equally wide on a logarithmic or square-root scale.

It does not know attributes.

Everybody has to agree on the edges, so no float takes part. Logarithms and roots are worked out by decimal arithmetic
with 40 digits, whose operations are correctly rounded and therefore the same on every machine. The result is rounded
to the values that can occur, or to 6 digits where the values have no step. Edges that fall together are one edge: where
values are sparser than bins, there are fewer bins than asked for.
"""

from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import Literal

Scale = Literal["log", "sqrt"]
MOST_BINS = 1000

_EXACT = Context(prec=40, rounding=ROUND_HALF_EVEN)
_ROUND = Context(prec=6, rounding=ROUND_HALF_EVEN)


def inner_edges(scale: Scale, low: Fraction, high: Fraction, bins: int, step: Fraction | None) -> list[Fraction]:
    """Return the edges between `low` and `high`, in rising order. `low` is 0 or more, and 0 is scaled as log(1 + x)."""
    shift = 1 if scale == "log" and not low else 0
    there, back = _directions(scale)
    first, last = (there(_decimal(end + shift)) for end in (low, high))
    width = _EXACT.divide(_EXACT.subtract(last, first), Decimal(bins))
    scaled = (_EXACT.add(first, _EXACT.multiply(width, Decimal(index))) for index in range(1, bins))
    edges = sorted({_rounded(_EXACT.subtract(back(place), Decimal(shift)), step) for place in scaled})
    return [edge for edge in edges if low < edge < high]


def _directions(scale: Scale) -> tuple[Callable[[Decimal], Decimal], Callable[[Decimal], Decimal]]:
    """Return the way to the scale, and the way back."""
    if scale == "log":
        return _EXACT.ln, _EXACT.exp
    return _EXACT.sqrt, lambda root: _EXACT.multiply(root, root)


def _decimal(number: Fraction) -> Decimal:
    return _EXACT.divide(Decimal(number.numerator), Decimal(number.denominator))


def _rounded(edge: Decimal, step: Fraction | None) -> Fraction:
    """Return the nearest multiple of the step; a tie goes up."""
    if step is None:
        return Fraction(_ROUND.plus(edge))
    return (Fraction(edge) / step + Fraction(1, 2)).__floor__() * step
