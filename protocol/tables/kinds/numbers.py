"""Whole numbers and decimals: which numbers can occur, and how they are read and written.

It does not know how the range is divided into bins (`protocol.tables.kinds.numeric`).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, StrictInt

from protocol.tables.exact_json import DECIMALS, decimal_text
from protocol.tables.kinds.attribute import ABOVE, BELOW, NO_INTEGER, Reading, each_read
from protocol.tables.kinds.numeric import Numeric

_VALUES_IN_EQUAL_BIN = 10**6
_VALUES_IN_OWN_BIN = 10**3


class Integer(Numeric):
    kind: Literal["integer"]

    @property
    def places(self) -> int:
        return 0

    @property
    def spacing(self) -> Fraction:
        return self.step or Fraction(1)

    @property
    def _end(self) -> Fraction:
        return self.highest + 1

    @property
    def _scale_step(self) -> Fraction | None:
        return self.spacing

    def edges_at(self, starts: Sequence[int]) -> tuple[Fraction, ...]:
        return tuple(Fraction(math.ceil(edge)) for edge in super().edges_at(starts))

    def _number_reading(self) -> Reading:
        starts = np.array([math.ceil(cut) for cut in self.cuts[:-1]])
        lowest, highest = int(self.lowest), int(self.highest)

        def code_of(text: str) -> int:
            value = Fraction(text)
            if value.denominator != 1:
                return NO_INTEGER
            if value > highest:
                return ABOVE
            return BELOW if value < lowest else int(np.searchsorted(starts, int(value), "right")) - 1

        def codes_of(texts: Sequence[str]) -> NDArray[np.int32]:
            try:
                values = np.fromiter(map(int, texts), np.int64, len(texts))
            except (ValueError, OverflowError):  # one has a point, an exponent or very many digits
                return each_read(code_of, texts)
            return _in_bins(starts, values, lowest, highest)

        return codes_of

    def contradictions(self) -> Iterator[str]:
        fractions = [
            f'field "{field}": must be a whole number; use the kind "real" for {decimal_text(value)}'
            for field, value in self._given()
            if value.denominator != 1
        ]
        yield from fractions or super().contradictions()

    def _given(self) -> list[tuple[str, Fraction]]:
        numbers = [("min", self.min), ("max", self.max), ("step", self.step)]
        numbers += [("edges", edge) for edge in self.edges or ()]
        return [(field, number) for field, number in numbers if number is not None]

    def _bin_problems(self) -> Iterator[str]:
        count = self._end - self.lowest
        if self.scale is None and self.bins is not None and self.bins > count:
            yield (
                f'field "bins": {self.bins} bins are more than the {count} integers from min to max; '
                "ask for fewer bins or leave `bins` out"
            )
        elif self.step is not None and self.bins is None and self.edges is None and self.step > 1:
            yield 'field "step": needs `bins` or `edges`; without them every integer is a category of its own'
        elif self.step is not None or self.edges is not None:
            yield from super()._bin_problems()


class Real(Numeric):
    kind: Literal["real"]
    decimals: Annotated[StrictInt, Field(ge=0, le=DECIMALS)] | None = None

    @cached_property
    def places(self) -> int:
        if self.decimals is not None:
            return self.decimals
        if self.step is not None:
            return _places_for(lambda unit: (self.step or 1) * unit % 1 == 0)
        if self.edges is None and self.scale is None:
            width, held = (self.highest - self.lowest) / self.categories, _VALUES_IN_EQUAL_BIN
        else:
            width = min(after - before for before, after in zip(self.cuts, self.cuts[1:], strict=False))
            held = _VALUES_IN_OWN_BIN
        return _places_for(lambda unit: width * unit >= held)

    @property
    def spacing(self) -> Fraction:
        return self.step or Fraction(1, 10**self.places)

    @property
    def _end(self) -> Fraction:
        return self.highest

    @property
    def _scale_step(self) -> Fraction | None:
        return self.step if self.decimals is None else Fraction(1, 10**self.decimals)

    def _number_reading(self) -> Reading:
        edges = np.array([float(cut) for cut in self.cuts])

        def codes_of(texts: Sequence[str]) -> NDArray[np.int32]:
            near = np.fromiter(map(float, texts), np.float64, len(texts))
            # Rounding preserves order: numbers whose nearest floats differ have the order of these floats.
            found = _in_bins(edges, near, edges[0], edges[-1])
            for place in np.flatnonzero(np.isin(near, edges)).tolist():
                found[place] = self._exact_code(Fraction(texts[place]))
            return found

        return codes_of

    def _exact_code(self, value: Fraction) -> int:
        if value > self.highest:
            return ABOVE
        return BELOW if value < self.lowest else self.bin(value)

    def contradictions(self) -> Iterator[str]:
        if self.decimals is not None and self.step is not None:
            yield 'field "step": leave it out, or leave `decimals` out; each of them says how numbers are written'
        yield from super().contradictions()

    def _end_problems(self) -> Iterator[str]:
        if self.scale is None and self.min is not None and self.min == self.max:
            yield f'field "max": {decimal_text(self.min)} is also min; a real attribute needs a range'
        if self.scale is None and self.bins is None:
            yield 'field "bins": is missing; add it'
        yield from super()._end_problems()


def _in_bins(starts: NDArray[Any], values: NDArray[Any], lowest: Any, highest: Any) -> NDArray[np.int32]:
    found = (np.searchsorted(starts, values, "right") - 1).astype(np.int32)
    found[values < lowest] = BELOW
    found[values > highest] = ABOVE
    return found


def _places_for(is_enough: Callable[[int], bool]) -> int:
    places = 0
    while not is_enough(10**places):
        places += 1
    return places
