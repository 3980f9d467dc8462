"""Fields of one column: text becomes a code or a class of bad value, and a code becomes text again.

It does not know rows, sources or the rules for bad values (`protocol.tables.coding`).
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crypto.randomness import Stream
from protocol.tables.attributes import Attribute, Integer, Listed, Real
from protocol.tables.exact_json import fixed_point, is_number

ABOVE, BELOW, NO_NUMBER, NO_INTEGER, UNLISTED, EMPTY = range(-1, -7, -1)
WHAT = {
    ABOVE: "a number above the largest",
    BELOW: "a number below the smallest",
    NO_NUMBER: "text where a number is expected",
    NO_INTEGER: "a fraction where a whole number is expected",
    UNLISTED: "a category that the schema does not list",
    EMPTY: "an empty field, which the schema does not list as missing",
}
_REMEMBERED = 1 << 15  # distinct texts per column


class FieldReader:
    """Coder of the texts of one column; a negative code is a class of bad value."""

    def __init__(self, attribute: Attribute) -> None:
        known = dict.fromkeys(attribute.missing, attribute.categories)
        if isinstance(attribute, Listed):
            known |= {value: code for code, value in enumerate(attribute.values)}
            self._codes = _Remembered(known, lambda text: UNLISTED if text else EMPTY)
        else:
            self._codes = _Remembered(known, _number_reader(attribute))

    def codes(self, texts: Sequence[str]) -> NDArray[np.int32]:
        return np.fromiter(map(self._codes.__getitem__, texts), dtype=np.int32, count=len(texts))


class _Remembered(dict[str, int]):
    """Cache of the codes of texts, because columns repeat their values."""

    def __init__(self, known: Mapping[str, int], read: Callable[[str], int]) -> None:
        super().__init__(known)
        self._read = read

    def __missing__(self, text: str) -> int:
        code = self._read(text)
        if len(self) < _REMEMBERED:
            self[text] = code
        return code


def _number_reader(attribute: Integer | Real) -> Callable[[str], int]:
    code_of = _integer_reader(attribute) if isinstance(attribute, Integer) else _real_reader(attribute)

    def read(text: str) -> int:
        if is_number(text):
            return code_of(text)
        return NO_NUMBER if text else EMPTY

    return read


def _integer_reader(attribute: Integer) -> Callable[[str], int]:
    first, _ = attribute.grid()

    def code_of(text: str) -> int:
        value = int(text) if text.isdigit() else Fraction(text)
        if value.denominator != 1:
            return NO_INTEGER
        if value > attribute.max:
            return ABOVE
        return BELOW if value < attribute.min else bisect_right(first, value) - 1

    return code_of


def _real_reader(attribute: Real) -> Callable[[str], int]:
    edges = [float(attribute.edge(index)) for index in range(attribute.categories + 1)]
    ties = frozenset(edges)

    def code_of(text: str) -> int:
        near = float(text)
        if near in ties:
            return _exact_code(attribute, Fraction(text))
        # Rounding preserves order: numbers whose nearest floats differ have the order of these floats.
        if near > edges[-1]:
            return ABOVE
        return BELOW if near < edges[0] else bisect_right(edges, near) - 1

    return code_of


def _exact_code(attribute: Real, value: Fraction) -> int:
    if value > attribute.max:
        return ABOVE
    return BELOW if value < attribute.min else attribute.bin(value)


# Codes to text


def labels(attribute: Attribute, codes: NDArray[Any], stream: Stream) -> list[str]:
    """The text of every code; a number is drawn uniformly from its bin."""
    if isinstance(attribute, Listed):
        names = np.array([*attribute.values, *attribute.missing[:1]], dtype=object)
        return list(names[codes])
    first, counts = attribute.grid()
    if attribute.missing:
        first, counts = [*first, 0], [*counts, 1]
    offsets = uniform_below(np.array(counts, dtype=np.uint64)[codes], stream)
    decimals, nothing = attribute.decimals, attribute.categories
    return [
        attribute.missing[0] if code == nothing else fixed_point(first[code] + offset, decimals)
        for code, offset in zip(codes.tolist(), offsets.tolist(), strict=True)
    ]


def uniform_below(bounds: NDArray[np.uint64], stream: Stream) -> NDArray[np.uint64]:
    """Draw uniform integers, each below its own bound, without modulo bias."""
    words = stream.words64(bounds.size).copy()
    surplus = (np.uint64(0) - bounds) % bounds  # 2^64 modulo the bound
    while (refused := words > ~surplus).any():
        words[refused] = stream.words64(int(refused.sum()))
    return words % bounds
