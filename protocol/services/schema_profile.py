"""Descriptions of the columns of a table, from its rows, for the person who may see them.

It does not know sources, or how a draft is written (`protocol.services.schema_draft`).

Privacy: what is found here comes from rows. Names, kinds, formats and missing tokens say how a table is written; values
and ranges say what it holds, so a draft marks all of them, and no schema with a mark is accepted anywhere. Values that
few rows have are left out, and ranges are rounded outwards, so that even a draft that is shown too early names nobody.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Literal

from protocol.services.schema_draft import Column, Described, DraftKind, LeftOut, Number
from protocol.services.schema_lint import are_intervals, is_name_of_identifier
from protocol.tables.batches import Batch
from protocol.tables.exact_json import is_number
from protocol.tables.kinds.calendar import DAY, date_of
from protocol.tables.kinds.formats import Format
from protocol.tables.kinds.numeric import with_point

FEWEST_ROWS = 10  # of a value that a draft shows
_MOST_DISTINCT = 20_000  # values of a column that are kept
_MOST_VALUES = 200  # values of a category that anybody wants to list
_LONG = 40
_NOTHING = ("", "NA", "N/A", "n/a", "NULL", "null", "nan", "NaN", "?", ".", "-", "--", "k.A.", "#N/A")
_ODD_ONES = 2  # texts among numbers or dates that are taken as missing tokens
_TRUTHS = (("true", "false"), ("yes", "no"), ("ja", "nein"), ("y", "n"), ("t", "f"), ("1", "0"), ("wahr", "falsch"))
_CODE = re.compile(r"0[0-9]+")
_YEARS = range(1850, 2101)
_DATES = ("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d-%m-%Y", "%Y%m%d", "%Y-%m", "%m/%Y")
_LOOSE_DATES = ("%-d.%-m.%Y", "%-d/%-m/%Y", "%-m/%-d/%Y")
_TIMES = (" %H:%M:%S", " %H:%M", "T%H:%M:%S", "T%H:%M", " %-H:%M")
_FORMATS: tuple[tuple[DraftKind, Format], ...] = (
    *(("date", Format(form)) for form in (*_DATES, *_LOOSE_DATES)),
    *(("datetime", Format(form + time)) for form in (*_DATES[:6], *_LOOSE_DATES) for time in _TIMES),
)


class Profile:
    """What the rows of a table tell about its columns."""

    def __init__(self, header: Sequence[str], decimal: Literal[".", ","], key: str | None = None) -> None:
        """Describe all columns but the `key` of persons; of two columns with one name, the first."""
        self._names, self._decimal = [name for name in dict.fromkeys(header) if name != key], decimal
        self._places = [list(header).index(name) for name in self._names]
        self._found: list[Counter[str]] = [Counter() for _ in self._names]
        self._more = [False for _ in self._names]
        self.rows = 0

    def read(self, batches: Iterable[Batch]) -> "Profile":
        """Look at all rows that are as wide as the header."""
        for batch in batches:
            self.rows += batch.fitting.size
            for index, place in enumerate(self._places):
                found = self._found[index]
                for text, count in batch.columns[place].counted():
                    if text in found or len(found) < _MOST_DISTINCT:
                        found[text] += count
                    else:
                        self._more[index] = True
        return self

    def columns(self) -> list[Column]:
        return [
            _described(name, found, more, self.rows, self._decimal)
            for name, found, more in zip(self._names, self._found, self._more, strict=True)
        ]


def _described(name: str, found: Counter[str], more: bool, rows: int, decimal: str) -> Column:
    missing = [text for text in _NOTHING if text in found]
    present = Counter({text: count for text, count in found.items() if text not in missing})
    if not present:
        return LeftOut(name, "it holds nothing")
    if is_name_of_identifier(name) and (more or len(present) > _MOST_VALUES):
        return LeftOut(name, "its name and its many values are those of an identifier; it may be the person_key")
    pair = _truths(present)
    if pair is not None:
        return Described(name, "boolean", true=[pair[0]], false=[pair[1]], missing=missing, is_public=False)
    moment = _moment(name, present, missing)
    number = None if moment is not None else _number(name, present, missing, decimal)
    return moment or number or _category(name, present, missing, more, rows)


def _truths(present: Counter[str]) -> tuple[str, str] | None:
    by_meaning = {text.lower(): text for text in present}
    if len(present) != 2 or len(by_meaning) != 2:
        return None
    return next(((by_meaning[yes], by_meaning[no]) for yes, no in _TRUTHS if {yes, no} == {*by_meaning}), None)


# Numbers


def _number(name: str, present: Counter[str], missing: Sequence[str], decimal: str) -> Column | None:
    numbers = {text: with_point(text, decimal) for text in present}
    odd = [text for text, number in numbers.items() if not is_number(number)]
    if len(odd) > _ODD_ONES or len(odd) == len(present) or any(map(_CODE.fullmatch, present)):
        return None
    values = [Decimal(number) for text, number in numbers.items() if text not in odd]
    places = max(max(0, -int(value.as_tuple().exponent)) for value in values)
    low, high = _outward(min(values), max(values))
    return Described(
        name,
        "real" if places else "integer",
        missing=[*missing, *odd],
        lowest=low,
        highest=high,
        decimals=places or None,
        is_public=False,
    )


def _outward(low: Decimal, high: Decimal) -> tuple[Number, Number]:
    """Round a range outwards to one digit of its width."""
    unit = Decimal(10) ** (high - low).adjusted() if high > low else Decimal(1)
    ends = [(end / unit).to_integral_value(way) * unit for end, way in ((low, ROUND_FLOOR), (high, ROUND_CEILING))]
    first, last = (int(end) if end == end.to_integral_value() else float(end) for end in ends)
    return first, last


# Dates


def _moment(name: str, present: Counter[str], missing: Sequence[str]) -> Column | None:
    odd = [text for text in present if not any(letter.isdigit() for letter in text)]
    texts = [text for text in present if text not in odd]
    if len(odd) > _ODD_ONES or not texts:
        return None
    fitting = [(kind, form) for kind, form in _FORMATS if _fits(form, texts)]
    if not fitting:
        return None
    kind, form = fitting[0]
    seconds = [form.read(text) or 0 for text in texts]
    years = [date_of(one // DAY)[0] for one in (min(seconds), max(seconds))]
    return Described(
        name,
        kind,
        missing=[*missing, *odd],
        lowest=f"{years[0]:04d}",
        highest=f"{years[1]:04d}",
        format=form.text,
        is_format_sure=all([other.read(text) for text in texts] == seconds for _, other in fitting),
        is_public=False,
    )


def _fits(form: Format, texts: Sequence[str]) -> bool:
    for text in texts:
        seconds = form.read(text)
        if seconds is None or date_of(seconds // DAY)[0] not in _YEARS:
            return False
    return True


# Categories


def _category(name: str, present: Counter[str], missing: Sequence[str], more: bool, rows: int) -> Column:
    if more or (len(present) > _MOST_VALUES and len(present) * 2 > rows):
        return LeftOut(name, "it has nearly as many values as rows: an identifier, or free text")
    if sum(len(text) > _LONG for text in present) * 2 > len(present):
        return LeftOut(name, "it looks like free text, which cannot be counted")
    common = sorted(text for text, count in present.items() if count >= FEWEST_ROWS)
    if are_intervals(list(present)):
        common.sort(key=lambda text: Decimal(re.findall(r"-?[0-9]+(?:\.[0-9]+)?", text)[0]))
        return Described(name, "ordinal", values=common, missing=missing, is_public=False)
    has_others = len(common) < len(present)
    return Described(name, "categorical", values=common, missing=missing, has_others=has_others, is_public=False)
