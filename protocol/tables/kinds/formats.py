"""Formats of dates and times, written as for strptime, and the same in every country.

It does not know ranges or bins. It reads and writes moments as seconds since 1970, without a time zone.

Known are %Y, %m, %d, %H, %M and %S, with a leading zero, and %-m, %-d and %-H, which are read with or without one and
written without. What depends on a language (names of months), a century (%y) or a time zone is refused.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protocol.tables.kinds.attribute import is_clean
from protocol.tables.kinds.calendar import (
    DAY,
    FIRST_YEAR,
    HOUR,
    LAST_YEAR,
    date_of,
    day_number,
    is_date,
)

NO_MOMENT = np.iinfo(np.int64).min
PARTS = ("year", "month", "day", "hour", "minute", "second")  # from coarse to fine
KNOWN = "%Y, %m, %d, %H, %M, %S, %-m, %-d and %-H"
_LONGEST = 60
_PIECE = re.compile(r"%-?.|[^%]+|%", re.DOTALL)
_DIRECTIVES = {  # by directive: the part, how it is read, how it is written
    "%Y": ("year", "[0-9]{4}", "{year:04d}"),
    "%m": ("month", "[0-9]{2}", "{month:02d}"),
    "%d": ("day", "[0-9]{2}", "{day:02d}"),
    "%H": ("hour", "[0-9]{2}", "{hour:02d}"),
    "%M": ("minute", "[0-9]{2}", "{minute:02d}"),
    "%S": ("second", "[0-9]{2}", "{second:02d}"),
    "%-m": ("month", "[0-9]{1,2}", "{month}"),
    "%-d": ("day", "[0-9]{1,2}", "{day}"),
    "%-H": ("hour", "[0-9]{1,2}", "{hour}"),
}
_EXAMPLE = dict.fromkeys(PARTS, 0)
_ZERO = ord("0")
_WHY_UNKNOWN = {
    "%b": "names of months depend on a language; write months as numbers in the table",
    "%B": "names of months depend on a language; write months as numbers in the table",
    "%y": "a year of two digits may be in two centuries; write years with four digits in the table",
    "%z": "time zones are not known; convert all times to one zone in the table",
    "%Z": "time zones are not known; convert all times to one zone in the table",
    "%f": "fractions of a second are not known; write whole seconds in the table",
}


@dataclass(frozen=True)
class Format:
    """A checked format. Make it by `format_of`."""

    text: str

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """The parts of a moment that the format tells, from coarse to fine."""
        told = {_DIRECTIVES[piece][0] for piece in _pieces(self.text) if piece in _DIRECTIVES}
        return tuple(part for part in PARTS if part in told)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile("".join(map(_reading, _pieces(self.text))))

    @cached_property
    def _template(self) -> str:
        return "".join(map(_writing, _pieces(self.text)))

    def read(self, text: str) -> int | None:
        """Return the first second that the text means, or None if it means none."""
        found = self._pattern.fullmatch(text)
        if found is None:
            return None
        parts = {name: int(digits) for name, digits in found.groupdict().items()}
        return seconds_of(**parts)

    def read_all(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return the first second that each text means, or NO_MOMENT."""
        example, places = self.write(0), self._places
        joined = "".join(texts)
        if not places or not joined.isascii() or {*map(len, texts)} != {len(example)}:
            found = (self.read(text) for text in texts)
            return np.array([NO_MOMENT if seconds is None else seconds for seconds in found], np.int64)
        signs = np.frombuffer(joined.encode(), np.uint8).reshape(-1, len(example))
        between = np.delete(np.arange(len(example)), np.concatenate([*places.values()]))
        is_written = (signs[:, between] == np.frombuffer(example.encode(), np.uint8)[between]).all(axis=1)
        for place in places.values():
            is_written &= ((signs[:, place] >= _ZERO) & (signs[:, place] < _ZERO + 10)).all(axis=1)
        parts = {part: _numbers(signs[:, place]) for part, place in places.items()}
        seconds, is_moment = _seconds_of_all(**parts)
        return np.where(is_written & is_moment, seconds, NO_MOMENT)

    @cached_property
    def _places(self) -> Mapping[str, NDArray[np.intp]]:
        """The places of each part's digits; nothing if texts may differ in length, or hold other signs than ASCII."""
        found, end = {}, 0
        for piece in _pieces(self.text):
            if piece.startswith("%-") or not piece.isascii():
                return {}
            begin, end = end, end + len(_writing(piece).format(**_EXAMPLE))
            if piece in _DIRECTIVES:
                found[_DIRECTIVES[piece][0]] = np.arange(begin, end)
        return found

    def write(self, seconds: int) -> str:
        days, rest = divmod(seconds, DAY)
        year, month, day = date_of(days)
        hour, rest = divmod(rest, HOUR)
        minute, second = divmod(rest, 60)
        return self._template.format(year=year, month=month, day=day, hour=hour, minute=minute, second=second)

    def is_start(self, seconds: int) -> bool:
        """Whether a year, month, ..., or second begins at this moment: the finest that the format tells."""
        days, rest = divmod(seconds, DAY)
        _, month, day = date_of(days)
        finest = PARTS.index(self.parts[-1])
        beyond = ((month, 1), (day, 1), (rest // HOUR, 0), (rest // 60 % 60, 0), (rest % 60, 0))[finest:]
        return all(found == first for found, first in beyond)


def seconds_of(year: int, month: int = 1, day: int = 1, hour: int = 0, minute: int = 0, second: int = 0) -> int | None:
    """Return the seconds since 1970, or None if there is no such moment."""
    if not (is_date(year, month, day) and hour < 24 and minute < 60 and second < 60):
        return None
    return day_number(year, month, day) * DAY + hour * HOUR + minute * 60 + second


def _numbers(signs: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Read the numbers whose digits stand in a line each."""
    found = np.zeros(len(signs), np.int64)
    for place in range(signs.shape[1]):
        found = 10 * found + signs[:, place] - _ZERO
    return found


def _seconds_of_all(
    year: Any, month: Any = 1, day: Any = 1, hour: Any = 0, minute: Any = 0, second: Any = 0
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the seconds since 1970, and whether there are such moments."""
    first = day_number(year, month, 1)
    length = np.where(np.equal(month, 12), 31, day_number(year, month + 1, 1) - first)
    is_day = (year >= FIRST_YEAR) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= length)
    seconds = (first + day - 1) * DAY + hour * HOUR + minute * 60 + second
    return seconds, is_day & (hour < 24) & (minute < 60) & (second < 60)


def format_of(text: str, with_time: bool) -> Format:
    """Check a format. Raises ValueError with a sentence."""
    for what in _problems(text, with_time):
        raise ValueError(what)
    return Format(text)


def _problems(text: str, with_time: bool) -> Iterator[str]:
    if len(text) > _LONGEST or not is_clean(text):
        yield f"must have at most {_LONGEST} characters, and no control characters"
    pieces = list(_pieces(text))
    for piece in pieces:
        if piece.startswith("%") and piece not in _DIRECTIVES and piece != "%%":
            yield f"{piece} cannot be read: {_WHY_UNKNOWN.get(piece, f'known are {KNOWN}')}"
    told = [_DIRECTIVES[piece][0] for piece in pieces if piece in _DIRECTIVES]
    for before, after in pairwise(pieces):
        if before.startswith("%-") and (after in _DIRECTIVES or after[0].isdigit()):
            yield f"{before} has one digit or two, so a sign has to stand between it and {after}"
    if len({*told}) < len(told):
        yield "tells a part of the date twice; keep one of them"
    needed = PARTS[: 1 + max((PARTS.index(part) for part in told), default=0)]
    if lacking := [part for part in needed if part not in told]:
        yield f"lacks the {lacking[0]}; a format tells the year and all parts down to the finest that it tells"
    if with_time and "hour" not in told:
        yield 'tells no hour; use the kind "date", or add %H'
    if not with_time and "hour" in told:
        yield 'tells the time of day; use the kind "datetime", or leave the time out'


def _pieces(text: str) -> Iterator[str]:
    return (found[0] for found in _PIECE.finditer(text))


def _reading(piece: str) -> str:
    if piece in _DIRECTIVES:
        part, pattern, _ = _DIRECTIVES[piece]
        return f"(?P<{part}>{pattern})"
    return re.escape("%" if piece == "%%" else piece)


def _writing(piece: str) -> str:
    if piece in _DIRECTIVES:
        return _DIRECTIVES[piece][2]
    return ("%" if piece == "%%" else piece).replace("{", "{{").replace("}", "}}")


_ISO = re.compile(
    r"(?P<year>[0-9]{4})(?:-(?P<month>[0-9]{2})(?:-(?P<day>[0-9]{2})"
    r"(?:[T ](?P<hour>[0-9]{2})(?::(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2}))?)?)?)?)?"
)


def iso_span(text: str) -> tuple[int, int]:
    """Return the first and the last second of a year, month, day, hour, minute or second. Raises ValueError."""
    found = _ISO.fullmatch(text)
    parts = {} if found is None else {name: int(digits) for name, digits in found.groupdict().items() if digits}
    first = seconds_of(**parts) if parts else None
    if first is None:
        raise ValueError(
            f"must be a date such as 2019, 2019-12, 2019-12-31 or 2019-12-31T23:59, from the year {FIRST_YEAR:04d} to "
            f"{LAST_YEAR}, whatever the format of the table"
        )
    return first, _following(first, list(parts)[-1]) - 1


def _following(first: int, part: str) -> int:
    """Return the second at which the next year, month, ... begins."""
    year, month, _ = date_of(first // DAY)
    if part == "year":
        return day_number(year + 1, 1, 1) * DAY
    if part == "month":
        return day_number(year + month // 12, month % 12 + 1, 1) * DAY
    return first + {"day": DAY, "hour": HOUR, "minute": 60, "second": 1}[part]


ISO_DATE, ISO_DATETIME = Format("%Y-%m-%d"), Format("%Y-%m-%dT%H:%M:%S")
