"""Expressions by which an engine codes a column's values, exactly as `protocol.tables.coding` does it here.

It does not know engines (`party.engines.connection`) or tables. The argument is in `engines.md`.

A negative code is a class of bad values. Most types are coded by comparisons with what the schema names, so that no
value leaves the engine. The values of any other column are fetched, each once, and coded here.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import ibis
import numpy as np

from party.readers.typed import speller_of
from protocol.tables.attributes import AttributeBase, Integer, Listed, Moment, Numeric
from protocol.tables.exact_json import is_number
from protocol.tables.fields import FieldReader
from protocol.tables.kinds.attribute import ABOVE, BELOW, EARLY, LATE, NO_INTEGER, NO_NUMBER

Values = Any  # a column of ibis, which has no types of its own
Codes = Any
Fetched = Mapping[int, Sequence[object]]  # the values of each code

UNREAD = -100  # a value that was not there when the values were fetched
_UNLISTED_TEXT = "\0"  # no text that a schema can list
_PLACES = 18  # of a decimal, which leave room for the largest number of a schema in 38 digits
_BEGINNING = datetime(1970, 1, 1)
_ALL_WHOLE = 2.0**53  # from here on, no float has a fraction
_UNWRITTEN = 1e300  # written out, it has more digits than a number may have


class ColumnCoder:
    """The coder of one attribute from a column of one type."""

    def __init__(self, attribute: AttributeBase, kind: Any, engine: str) -> None:
        self._attribute, self._kind, self._engine = attribute, kind, engine
        self._speller, self._reader = speller_of(attribute), FieldReader(attribute)

    @property
    def needs_values(self) -> bool:
        """Whether the column's values have to be fetched, because no comparison gives their codes."""
        return self._expression is None

    def code_of(self, value: object) -> int:
        """The code of one value, worked out here."""
        return int(self._reader.codes([self._speller(value)])[0])

    def codes(self, values: Values, fetched: Fetched | None = None) -> Codes:
        """The code of every value, before any rule of the settings applies."""
        make = self._expression
        if make is None:
            assert fetched is not None
            rest = _cases([(_one_of(values, same), code) for code, same in fetched.items()], UNREAD)
        else:
            rest = make(values)
        return _cases([(values.isnull(), self.code_of(None))], rest).cast("int32")

    @property
    def _expression(self) -> Callable[[Values], Codes] | None:
        kind, attribute = self._kind, self._attribute
        if kind.is_boolean():
            return lambda values: values.ifelse(self.code_of(True), self.code_of(False))
        if isinstance(attribute, Listed):
            if kind.is_string():
                return self._listed(lambda text: text)
            return self._listed(_integer) if kind.is_integer() else None
        if isinstance(attribute, Numeric):
            return self._numeric(attribute)
        if isinstance(attribute, Moment) and (kind.is_date() or kind.is_timestamp()):
            reads = any(attribute.moments.read(token) is not None for token in attribute.missing)
            return None if reads or getattr(kind, "timezone", None) else self._moment(attribute)
        return None

    # Listed values

    def _listed(self, value_of: Callable[[str], object | None]) -> Callable[[Values], Codes]:
        cases = self._tokens(value_of)
        others = int(self._reader.codes([_UNLISTED_TEXT])[0])

        def make(values: Values) -> Codes:
            empty = [] if self._kind.is_integer() else [(values == "", self.code_of(""))]
            return _cases([*((values.isin(same), code) for code, same in cases.items()), *empty], others)

        return make

    def _tokens(self, value_of: Callable[[str], object | None]) -> dict[int, list[Any]]:
        """The values that the schema spells out (listed values, missing tokens), by their codes."""
        found: dict[int, list[Any]] = {}
        for text, code in self._attribute.spelled.items():
            value = value_of(text)
            if value is not None and self._speller(value) == text:
                found.setdefault(code, []).append(value)
        return found

    # Numbers

    def _numeric(self, attribute: Numeric) -> Callable[[Values], Codes] | None:
        scale = _scale_of(self._kind)
        if scale is None or (scale is ANY and any(map(_is_numeric, attribute.spelled))):
            return None
        tokens = self._tokens(scale.value_of)

        def make(values: Values) -> Codes:
            values = scale.widened(values)
            cases = [(_among(values, [*map(scale.literal, same)]), code) for code, same in tokens.items()]
            cases += self._no_numbers(values)
            if isinstance(attribute, Integer) and (is_fraction := scale.is_fraction(values)) is not None:
                cases.append((is_fraction, NO_INTEGER))
            return _cases(cases, _bins(attribute, values, scale))

        return make

    def _no_numbers(self, values: Values) -> Iterable[tuple[Values, int]]:
        if self._kind.is_floating():
            yield values.isnan() | values.isinf() | (values.abs() >= _double(_UNWRITTEN)), NO_NUMBER
        elif self._kind.is_decimal() and self._engine == "postgresql":  # only there may a decimal be no number
            near = values.cast("float64")
            yield near.isnan() | near.isinf(), NO_NUMBER

    # Moments

    def _moment(self, attribute: Moment) -> Callable[[Values], Codes] | None:
        try:
            cuts = [_BEGINNING + timedelta(seconds=cut * attribute.tick) for cut in attribute.cuts]
        except OverflowError:  # the range ends with the last year that a calendar has
            return None
        codes = [EARLY, *range(len(cuts) - 1), LATE]

        def make(values: Values) -> Codes:
            moments = values.cast("timestamp")
            return _steps([partial(_not_before, moments, cut) for cut in cuts], codes)

        return make


def _not_before(moments: Values, cut: datetime) -> Values:
    return moments >= ibis.literal(cut, "timestamp")


def _one_of(values: Values, same: Sequence[object]) -> Values:
    if any(isinstance(value, float) for value in same):
        return _among(values, [*map(_literal, same)])
    return values.isin([ibis.literal(value, values.type()) for value in same])


def _cases(cases: Sequence[tuple[Values, Any]], otherwise: Any) -> Codes:
    if cases:
        return ibis.cases(*cases, else_=otherwise)
    return ibis.literal(otherwise) if isinstance(otherwise, int) else otherwise


def _steps(reached: Sequence[Callable[[], Values]], codes: Sequence[int]) -> Codes:
    """The code behind the last condition that holds, found by bisection. If one fails, all later ones do."""
    if not reached:
        return ibis.literal(codes[0], "int32")
    middle = len(reached) // 2
    lower, upper = _steps(reached[:middle], codes[: middle + 1]), _steps(reached[middle + 1 :], codes[middle + 1 :])
    return reached[middle]().ifelse(upper, lower)


def steps(values: Values, starts: Sequence[int], codes: Sequence[int]) -> Codes:
    """The code of whole numbers. Each start is the first number of the next code."""
    return _steps([partial(_Whole().reached, values, Fraction(start)) for start in starts], codes)


def _bins(attribute: Numeric, values: Values, scale: "Scale") -> Codes:
    """The bin of every number, or the class of a number outside all bins."""
    starts = attribute.cuts[:-1]
    if isinstance(attribute, Integer):
        starts = tuple(Fraction(math.ceil(cut)) for cut in starts)
    outside = [(~scale.reached(values, starts[0]), BELOW), (scale.passed(values, attribute.highest), ABOVE)]
    if isinstance(scale, _Whole) and len(starts) > 2 and starts[-1] - starts[0] == len(starts) - 1:
        return _cases(outside, (values - int(starts[0])).cast("int32"))
    reached = [partial(scale.reached, values, start) for start in starts[1:]]
    return _cases(outside, _steps(reached, range(len(starts))))


# How the numbers of one type are compared, exactly as they are written


class Scale(ABC):
    @abstractmethod
    def value_of(self, text: str) -> Any:
        """The value that may be spelled so; None if there is none."""

    @abstractmethod
    def reached(self, values: Values, at: Fraction) -> Values:
        """Whether a number is not below this one."""

    @abstractmethod
    def passed(self, values: Values, at: Fraction) -> Values:
        """Whether a number is above this one."""

    def is_fraction(self, values: Values) -> Values | None:  # noqa: ARG002 - see the other scales
        """Whether a number is not a whole one; None if all are."""
        return None

    def literal(self, value: Any) -> Values:
        return ibis.literal(value)

    def widened(self, values: Values) -> Values:
        return values


class _Whole(Scale):
    def value_of(self, text: str) -> int | None:
        return _integer(text)

    def reached(self, values: Values, at: Fraction) -> Values:
        return values >= math.ceil(at)

    def passed(self, values: Values, at: Fraction) -> Values:
        return values > math.floor(at)

    def widened(self, values: Values) -> Values:
        return values.cast("int64")


@dataclass(frozen=True)
class _Fixed(Scale):
    """Decimals of a known number of places."""

    places: int

    def value_of(self, text: str) -> Decimal | None:
        return self._decimal(math.floor(Fraction(text) * 10**self.places)) if is_number(text) else None

    def reached(self, values: Values, at: Fraction) -> Values:
        return values >= self.literal(self._decimal(math.ceil(at * 10**self.places)))

    def passed(self, values: Values, at: Fraction) -> Values:
        return values > self.literal(self._decimal(math.floor(at * 10**self.places)))

    def is_fraction(self, values: Values) -> Values:
        return values != values.cast("decimal(38, 0)").cast(f"decimal(38, {self.places})")

    def literal(self, value: Any) -> Values:
        return ibis.literal(f"{value:f}").cast(f"decimal(38, {self.places})")

    def _decimal(self, units: int) -> Decimal:
        return Decimal(units).scaleb(-self.places)


class _Any(Scale):
    """Decimals of any number of places, as PostgreSQL has them: a product with a whole number is exact."""

    def value_of(self, text: str) -> None:  # noqa: ARG002 - equal values may be written differently
        return None

    def reached(self, values: Values, at: Fraction) -> Values:
        return values * at.denominator >= at.numerator

    def passed(self, values: Values, at: Fraction) -> Values:
        return values * at.denominator > at.numerator

    def is_fraction(self, values: Values) -> Values:
        return values % 1 != 0


@dataclass(frozen=True)
class _Float(Scale):
    """Floats. A float means the decimal that is written for it: the shortest one that is read as the same float."""

    number: Any

    def value_of(self, text: str) -> float | None:
        try:
            value = float(text)
        except ValueError:
            return None
        return value if value != value or float(str(self.number(value))) == value else None

    def reached(self, values: Values, at: Fraction) -> Values:
        return values >= self._first(at, lambda written: written >= at)

    def passed(self, values: Values, at: Fraction) -> Values:
        return values >= self._first(at, lambda written: written > at)

    def is_fraction(self, values: Values) -> Values:
        small = (values.abs() < _double(_ALL_WHOLE)).ifelse(values, _double(0.0))
        return small != small.floor()

    def literal(self, value: Any) -> Values:
        return _double(float(self.number(value)))

    def widened(self, values: Values) -> Values:
        return values.cast("float64")

    def _first(self, near: Fraction, holds: Callable[[Fraction], bool]) -> Values:
        """The first float for whose text this holds: the texts of rising floats rise."""
        found = self.number(float(near))
        while holds(Fraction(str(found))):
            found = np.nextafter(found, self.number(-np.inf))
        while not holds(Fraction(str(found))):
            found = np.nextafter(found, self.number(np.inf))
        return _double(float(found))


ANY = _Any()


def _scale_of(kind: Any) -> Scale | None:
    if kind.is_integer():
        return None if kind.is_uint64() else _Whole()
    if kind.is_floating():
        return None if kind.is_float16() else _Float(np.float32 if kind.is_float32() else np.float64)
    if not kind.is_decimal():
        return None
    if kind.scale is None:
        return ANY
    return _Fixed(kind.scale) if kind.scale <= _PLACES else None


# Literals


def _double(value: float) -> Values:
    """A float's literal, written as text: some engines read a number with a point as a decimal, and round it again."""
    return ibis.literal(repr(value)).cast("float64")


def _literal(value: Any) -> Values:
    return _double(value) if isinstance(value, float) else ibis.literal(value)


def _among(values: Values, same: Sequence[Values]) -> Values:
    return ibis.or_(*(values == one for one in same))


def _integer(text: str) -> int | None:
    try:
        value = int(text)
    except ValueError:
        return None
    return value if abs(value) < 1 << 63 else None


def _is_numeric(text: str) -> bool:
    return is_number(text) or text.lower().strip("+-") in ("nan", "inf", "infinity")
