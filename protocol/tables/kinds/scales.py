"""Edges of bins that are equally wide on a logarithmic or square-root scale.

It does not know attributes.

Everybody has to agree on the edges, so no float takes part. Logarithms and roots are worked out by decimal arithmetic
with 40 digits, whose operations are correctly rounded and therefore the same on every machine. The result is rounded
to the values that can occur, or to 6 digits where the values have no step. Edges that fall together are one edge: where
values are sparser than bins, there are fewer bins than asked for.
"""

from collections.abc import Iterator
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import Literal

Scale = Literal["log", "sqrt"]
MOST_BINS = 256

_EXACT = Context(prec=40, rounding=ROUND_HALF_EVEN)
_ROUND = Context(prec=6, rounding=ROUND_HALF_EVEN)


def inner_edges(scale: Scale, low: Fraction, high: Fraction, bins: int, step: Fraction | None) -> list[Fraction]:
    """Return the edges between `low` and `high`, in rising order. `low` is 0 or more, and 0 is scaled as log(1 + x)."""
    places = _on_log(low, high, bins) if scale == "log" else _on_sqrt(low, high, bins)
    edges = sorted({_rounded(place, step) for place in places})
    return [edge for edge in edges if low < edge < high]


def _on_log(low: Fraction, high: Fraction, bins: int) -> Iterator[Decimal]:
    """Yield places whose ratios are equal. Multiplying so often leaves all but the last few of 40 digits."""
    shift = Decimal(0 if low else 1)
    first, last = (_EXACT.add(_decimal(end), shift) for end in (low, high))
    ratio = _EXACT.exp(_EXACT.divide(_EXACT.ln(_EXACT.divide(last, first)), Decimal(bins)))
    place = first
    for _ in range(1, bins):
        place = _EXACT.multiply(place, ratio)
        yield _EXACT.subtract(place, shift)


def _on_sqrt(low: Fraction, high: Fraction, bins: int) -> Iterator[Decimal]:
    """Yield places whose roots are equally far apart."""
    first, last = (_EXACT.sqrt(_decimal(end)) for end in (low, high))
    width = _EXACT.divide(_EXACT.subtract(last, first), Decimal(bins))
    for index in range(1, bins):
        root = _EXACT.add(first, _EXACT.multiply(width, Decimal(index)))
        yield _EXACT.multiply(root, root)


def _decimal(number: Fraction) -> Decimal:
    return _EXACT.divide(Decimal(number.numerator), Decimal(number.denominator))


def _rounded(edge: Decimal, step: Fraction | None) -> Fraction:
    """Return the nearest multiple of the step; a tie goes up."""
    if step is None:
        return Fraction(_ROUND.plus(edge))
    return (Fraction(edge) / step + Fraction(1, 2)).__floor__() * step
