"""Dates, and dates with a time of day: in years, months, weeks, days or hours, or between edges of the schema's own.

It does not know time zones, or how the calendar is counted (`protocol.tables.kinds.calendar`).

A moment is a number of ticks since 1970: days of a date, seconds of a datetime. Category and tick follow from integers
alone, so that every machine puts a moment into the same category. The schema writes moments as in ISO 8601, whatever
the format of the table: 2019 as the end of a range means its last day.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field, StrictStr

from protocol.tables.kinds.attribute import EARLY, EMPTY, LATE, NO_DATE, POINT, Reading, quoted
from protocol.tables.kinds.calendar import DAY, Resolution, starts_between, units_between
from protocol.tables.kinds.formats import (
    ISO_DATE,
    ISO_DATETIME,
    NO_MOMENT,
    PARTS,
    Format,
    format_of,
    iso_span,
    seconds_of,
)
from protocol.tables.kinds.ranged import Ranged, disorder

_Edges = Annotated[tuple[StrictStr, ...], Field(fail_fast=True)]
_AS_FORMAT = {"year": "year", "month": "month", "week": "day", "day": "day", "hour": "hour"}


def _spelled(iso: Format, end: bool, text: str) -> str:
    """Write the beginning or the end of what an ISO text means in full."""
    return iso.write(iso_span(text)[end])


def _all_spelled(iso: Format, texts: Sequence[str]) -> tuple[str, ...]:
    """Write edges in full: where each begins and, for the last, where it ends."""
    found = []
    for place, text in enumerate(texts, start=1):
        try:
            found.append(_spelled(iso, place == len(texts), text))
        except ValueError as error:
            raise ValueError(f"entry {place} {error}") from None
    return tuple(found)


def _first(iso: Format) -> Callable[[str], str]:
    return partial(_spelled, iso, False)


def _last(iso: Format) -> Callable[[str], str]:
    return partial(_spelled, iso, True)


class Moment(Ranged):
    """A date or a datetime. `min`, `max` and `edges` hold ISO texts in full."""

    min: str | None = None
    max: str | None = None
    resolution: Resolution | None = None
    edges: tuple[str, ...] | None = None
    format: StrictStr

    with_time: ClassVar[bool]
    tick: ClassVar[int]  # seconds

    @cached_property
    def moments(self) -> Format:
        """The checked format of the table."""
        return format_of(self.format, self.with_time)

    @cached_property
    def span(self) -> tuple[int, int]:
        """The first second of the range, and its last."""
        low, high = (self.edges[0], self.edges[-1]) if self.edges else (self.min, self.max)
        assert low is not None
        assert high is not None
        return iso_span(low)[0], iso_span(high)[1]

    @property
    def categories(self) -> int:
        if self.edges is not None:
            return len(self.edges) - 1
        assert self.resolution is not None
        return units_between(self.resolution, *self.span)

    @cached_property
    def cuts(self) -> tuple[int, ...]:
        return tuple(second // self.tick for second in self._cut_seconds())

    def _cut_seconds(self) -> Iterator[int]:
        first, last = self.span
        yield first
        if self.edges is not None:
            yield from (iso_span(edge)[0] for edge in self.edges[1:-1])
        elif self.resolution is not None:
            yield from starts_between(self.resolution, first, last)
        yield last + 1

    @cached_property
    def grid(self) -> tuple[list[int], list[int]]:
        return list(self.cuts[:-1]), [end - start for start, end in zip(self.cuts, self.cuts[1:], strict=False)]

    def written_value(self, number: int) -> str:
        return self.moments.write(number * self.tick)

    def text_of(self, year: int, month: int, day: int, hour: int = 0, minute: int = 0, second: int = 0) -> str:
        """Write a moment of a typed source in the format of the table."""
        seconds = seconds_of(year, month, day, hour, minute, second)
        return "" if seconds is None else self.moments.write(seconds)

    def label_of_bin(self, index: int) -> str:
        first, last = self.cuts[index] * self.tick, self.cuts[index + 1] * self.tick - 1
        if self.resolution is None:
            iso = ISO_DATETIME if self.with_time else ISO_DATE
            return f"{iso.write(first)} to {iso.write(last)}"
        whole = ISO_DATETIME.write(first)
        lengths = {"year": len("2019"), "month": len("2019-12"), "hour": len("2019-12-31T23")}
        shown = whole[: lengths.get(self.resolution, len("2019-12-31"))]
        return f"week of {shown}" if self.resolution == "week" else shown

    def reading(self, decimal: str = POINT) -> Reading:  # noqa: ARG002 - a date has no decimals
        cuts, tick, read_moments = np.array(self.cuts), self.tick, self.moments.read_all

        def read(texts: Sequence[str]) -> NDArray[np.int32]:
            seconds = read_moments(texts)
            found = (np.searchsorted(cuts, seconds // tick, "right") - 1).astype(np.int32)
            found[found == len(cuts) - 1] = LATE
            found[seconds < cuts[0] * tick] = EARLY
            for place in np.flatnonzero(seconds == NO_MOMENT).tolist():
                found[place] = NO_DATE if texts[place] else EMPTY
            return found

        return read

    def contradictions(self) -> Iterator[str]:
        yield from super().contradictions()
        unusable = [
            *self._format_problems(),
            *(self._range_problems() if self.edges is None else self._edge_problems()),
        ]
        yield from unusable
        if not unusable:
            yield from list(self._too_large()) or self._alignment_problems()
            yield from self._dates_among_missing()

    def _format_problems(self) -> Iterator[str]:
        try:
            assert self.moments
        except ValueError as error:
            yield f'field "format": {error}'

    def _range_problems(self) -> Iterator[str]:
        for field in ("min", "max", "resolution"):
            if getattr(self, field) is None:
                yield f'field "{field}": is missing; add it'
        if self.min is not None and self.max is not None and self.min > self.max:
            yield f'field "min": {self.min} is after max {self.max}; write the earlier one as min'

    def _edge_problems(self) -> Iterator[str]:
        assert self.edges is not None
        for field in ("min", "max", "resolution"):
            if getattr(self, field) is not None:
                yield f'field "{field}": leave it out; the edges say where the range and its parts begin and end'
        if len(self.edges) < 2:
            yield 'field "edges": must hold at least two dates, where the range begins and where it ends'
        elif (place := next(disorder(self.edges), None)) is not None:
            before, after = self.edges[place - 1 : place + 1]
            yield f'field "edges": {after} is not after {before} before it; write the edges in rising order'

    def _alignment_problems(self) -> Iterator[str]:
        """Find edges inside a month or day that the format tells as a whole: its dates would be read back elsewhere."""
        finest = self.moments.parts[-1]
        if self.resolution is not None and PARTS.index(_AS_FORMAT[self.resolution]) > PARTS.index(finest):
            yield f'field "resolution": the format tells no {_AS_FORMAT[self.resolution]}; choose {finest} or coarser'
            return
        first, last = self.span
        inner = [iso_span(edge)[0] for edge in self.edges[1:-1]] if self.edges is not None else []
        inside = [place for place, second in enumerate((first, *inner, last + 1)) if not self.moments.is_start(second)]
        if inside:
            field = "edges" if self.edges is not None else "max" if inside[0] else "min"
            yield f'field "{field}": cuts through one {finest}, which the format tells as a whole; cut between two'

    def _remedy(self) -> str:
        return "choose a coarser resolution or a shorter range"

    def _dates_among_missing(self) -> Iterator[str]:
        first, last = self.span
        for token in self.missing:
            seconds = self.moments.read(token)
            if seconds is not None and first <= seconds <= last:
                yield (
                    f'field "missing": the token {quoted(token)} is also a date between min and max; '
                    "narrow the range or choose another token"
                )


class Date(Moment):
    kind: Literal["date"]
    min: Annotated[StrictStr, AfterValidator(_first(ISO_DATE))] | None = None
    max: Annotated[StrictStr, AfterValidator(_last(ISO_DATE))] | None = None
    resolution: Literal["year", "month", "week", "day"] | None = None
    edges: Annotated[_Edges, AfterValidator(partial(_all_spelled, ISO_DATE))] | None = None
    format: StrictStr = "%Y-%m-%d"

    with_time: ClassVar[bool] = False
    tick: ClassVar[int] = DAY


class Datetime(Moment):
    kind: Literal["datetime"]
    min: Annotated[StrictStr, AfterValidator(_first(ISO_DATETIME))] | None = None
    max: Annotated[StrictStr, AfterValidator(_last(ISO_DATETIME))] | None = None
    edges: Annotated[_Edges, AfterValidator(partial(_all_spelled, ISO_DATETIME))] | None = None
    format: StrictStr = "%Y-%m-%d %H:%M:%S"

    with_time: ClassVar[bool] = True
    tick: ClassVar[int] = 1
