"""The base of numbers: their range, and its bins of equal width, on a scale, or between edges that the schema lists.

It does not know which numbers can occur (`protocol.tables.kinds.numbers`).

Numbers are exact. Bins of equal width split [min, max] (real) or the integers of [min, max + 1) (integer) at exact
rational edges. A bin holds its lower edge, and the last bin holds the largest value too.
"""

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PlainValidator, StrictInt

from protocol.tables.exact_json import (
    DECIMALS,
    are_numbers,
    decimal_text,
    fixed_point,
    is_number,
    number_of,
    short_text,
)
from protocol.tables.kinds.attribute import EMPTY, NO_NUMBER, POINT, Name, Reading, each_read, quoted
from protocol.tables.kinds.ranged import MOST_IN_BIN, Ranged, disorder
from protocol.tables.kinds.scales import MOST_BINS, Scale, inner_edges

_NO_NUMBER = "no number"
FEWEST_FOUND = 4  # bins: those of both empty ends, and two between them

_WRITTEN_TOGETHER = 8  # most decimals that are written for all rows together

Number = Annotated[Fraction, PlainValidator(number_of)]


class Numeric(Ranged):
    min: Number | None = None
    max: Number | None = None
    bins: Annotated[StrictInt, Field(ge=1)] | None = None
    edges: Annotated[tuple[Number, ...], Field(fail_fast=True)] | None = None
    scale: Scale | None = None
    step: Number | None = None
    find: Annotated[StrictInt, Field(ge=FEWEST_FOUND)] | None = None
    unit: Name = ""

    @property
    @abstractmethod
    def places(self) -> int:
        """Number of decimals of a written value."""

    @property
    @abstractmethod
    def spacing(self) -> Fraction:
        """The distance of neighbouring values that can be written; they are its multiples."""

    @property
    @abstractmethod
    def _end(self) -> Fraction:
        """The last edge of the bins."""

    @property
    @abstractmethod
    def _scale_step(self) -> Fraction | None:
        """The step to whose multiples the edges on a scale are rounded, if values have one."""

    @property
    def lowest(self) -> Fraction:
        found = self.edges[0] if self.edges else self.min
        assert found is not None
        return found

    @property
    def highest(self) -> Fraction:
        found = self.edges[-1] if self.edges else self.max
        assert found is not None
        return found

    @property
    def categories(self) -> int:
        if self.edges is not None or self.scale is not None:
            return len(self.cuts) - 1
        return self.bins or int(self._end - self.lowest)

    @cached_property
    def cuts(self) -> tuple[Fraction, ...]:
        low, end = self.lowest, self._end
        if self.edges is not None:
            return (*self.edges[:-1], end)
        if self.scale is not None:
            assert self.bins is not None
            return (low, *inner_edges(self.scale, low, self.highest, self.bins, self._scale_step), end)
        count = self.categories
        return (*(low + (end - low) * index / count for index in range(count)), end)

    def edges_at(self, starts: Sequence[int]) -> tuple[Fraction, ...]:
        """The edges of bins that begin with these bins of the attribute."""
        return (*(self.cuts[place] for place in starts), self.highest)

    @cached_property
    def beginnings(self) -> int:
        """How many of the bins joined ones can begin with: the highest value ends the last one, and begins none."""
        return sum(cut < self.highest for cut in self.cuts[:-1])

    @cached_property
    def grid(self) -> tuple[list[int], list[int]]:
        first = [math.ceil(cut / self.spacing) for cut in self.cuts[:-1]]
        ends = [*first[1:], math.floor(self.highest / self.spacing) + 1]
        return first, [end - start for start, end in zip(first, ends, strict=True)]

    @cached_property
    def _units(self) -> int:
        """The spacing in units of the last decimal."""
        return int(self.spacing * 10**self.places)

    def written_value(self, number: int) -> str:
        return fixed_point(number * self._units, self.places)

    def written_values(self, numbers: NDArray[Any]) -> list[str]:
        if self._units != 1:
            numbers = numbers.astype(object) * self._units
        if not self.places:
            return [*map(str, numbers.tolist())]
        if self.places > _WRITTEN_TOGETHER:
            return [fixed_point(number, self.places) for number in numbers.tolist()]
        behind, sizes, negative = self.places // 2, abs(numbers), numbers < 0
        fronts, ends = sizes // 10**behind, sizes % 10**behind
        wholes, starts = fronts // 10 ** (self.places - behind), fronts % 10 ** (self.places - behind)
        first, last = _decimals(self.places - behind), _decimals(behind)
        parts = zip(wholes.tolist(), starts.tolist(), ends.tolist(), strict=True)
        texts = [f"{whole}.{first[start]}{last[end]}" for whole, start, end in parts]
        for place in np.flatnonzero(negative).tolist():
            texts[place] = f"-{texts[place]}"
        return texts

    def label_of_bin(self, index: int) -> str:
        first, end = self.cuts[index], self.cuts[index + 1]
        if self.places:
            return f"{short_text(first)} to {short_text(end)}"
        is_last = index == self.categories - 1
        low, high = math.ceil(first), math.floor(self.highest) if is_last else math.ceil(end) - 1
        return str(low) if low == high else f"{low} to {high}"

    def reading(self, decimal: str = POINT) -> Reading:
        codes_of = self._number_reading()

        def read(texts: Sequence[str]) -> NDArray[np.int32]:
            if are_numbers(texts):
                return codes_of(texts)
            found = each_read(lambda text: NO_NUMBER if text else EMPTY, texts)
            numbers = [place for place, text in enumerate(texts) if is_number(text)]
            found[numbers] = codes_of([texts[place] for place in numbers])
            return found

        return read if decimal == POINT else lambda texts: read([with_point(text, decimal) for text in texts])

    @abstractmethod
    def _number_reading(self) -> Reading:
        """Make the function that finds the categories of numbers, written with a decimal point."""

    def contradictions(self) -> Iterator[str]:
        yield from super().contradictions()
        unusable = [*self._edge_problems()] if self.edges is not None else [*self._end_problems()]
        yield from unusable
        if self.step is not None and self.step <= 0:
            yield 'field "step": must be above 0'
        elif not unusable:
            yield from self._numbers_among_missing()
            yield from list(self._too_large()) or list(self._bin_problems()) or self._find_problems()

    def _edge_problems(self) -> Iterator[str]:
        assert self.edges is not None
        for field in ("min", "max", "bins", "scale"):
            if getattr(self, field) is not None:
                yield f'field "{field}": leave it out; the edges say where the range and its bins begin and end'
        if len(self.edges) < 2:
            yield 'field "edges": must hold at least two numbers, the smallest value and the largest'
        if (place := next(disorder(self.edges), None)) is not None:
            before, after = map(decimal_text, self.edges[place - 1 : place + 1])
            yield f'field "edges": {after} does not lie above {before} before it; write the edges in rising order'

    def _end_problems(self) -> Iterator[str]:
        for field in ("min", "max"):
            if getattr(self, field) is None:
                yield f'field "{field}": is missing; add it'
        if self.min is not None and self.max is not None and self.min > self.max:
            smaller, larger = decimal_text(self.max), decimal_text(self.min)
            yield f'field "min": {larger} is above max {smaller}; write the smaller one as min'
        if self.scale is None:
            return
        if self.min is not None and self.min < 0:
            yield f'field "scale": needs a min of 0 or more, not {decimal_text(self.min)}; write `edges` instead'
        if self.min is not None and self.min == self.max:
            yield f'field "max": {decimal_text(self.max)} is also min; a scale needs a range'
        if self.bins is None:
            yield 'field "scale": needs `bins`; say how many bins the scale is divided into'
        elif self.bins > MOST_BINS:
            yield f'field "bins": {self.bins} bins are too many for a scale; ask for at most {MOST_BINS}'

    def _numbers_among_missing(self) -> Iterator[str]:
        for token in self.missing:
            if is_number(token) and self.lowest <= Fraction(token) <= self.highest:
                yield (
                    f'field "missing": the token {quoted(token)} is also a number between min and max; '
                    "narrow the range or choose another token"
                )

    def _bin_problems(self) -> Iterator[str]:
        """Find bins without a value that can be written, and bins with too many."""
        if self.edges is None and self.scale is None:
            yield from self._width_problems()
            return
        for index, count in enumerate(self.grid[1]):
            if not 1 <= count <= MOST_IN_BIN:
                ends = " to ".join(short_text(cut) for cut in self.cuts[index : index + 2])
                held = "no number" if count < 1 else "too many numbers"
                yield f"its bin from {ends} holds {held} as numbers are written; change the bins, the step or decimals"
                return

    def _find_problems(self) -> Iterator[str]:
        """Look for bins to be found that are not fewer than those they join, and for edges that cannot be written."""
        if self.find is None:
            return
        if self.find >= self.categories:
            yield (
                f'field "find": {self.find} bins are not fewer than the {self.categories} that they are joined from; '
                "ask for more `bins`, or find fewer"
            )
        elif any((edge * 10**DECIMALS).denominator > 1 for edge in self.edges_at(range(self.categories))):
            yield (
                'field "find": some of its bins end at a number that has no end as a decimal; choose `bins` of a '
                "round width"
            )

    def _width_problems(self) -> Iterator[str]:
        """Compare the width of equal bins with the step of numbers, whatever the number of bins."""
        width = (self._end - self.lowest) / self.categories
        if width < self.spacing:
            yield (
                f"its bins are {short_text(width)} wide and numbers are written in steps of "
                f"{short_text(self.spacing)}; ask for fewer bins or more decimals"
            )
        elif width / self.spacing > MOST_IN_BIN:
            yield "its bins hold too many numbers as numbers are written; ask for more bins or fewer decimals"


@lru_cache
def _decimals(places: int) -> list[str]:
    """So many decimals, in every way."""
    return [f"{units:0{places}d}" for units in range(10**places)] if places else [""]


def with_point(text: str, decimal: str) -> str:
    """Write a number of a table with a decimal point. A text with a point would be read wrongly, so it is no number."""
    if decimal == POINT:
        return text
    return _NO_NUMBER if POINT in text else text.replace(decimal, POINT)
