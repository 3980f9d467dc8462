"""Kinds of attributes: the values that each kind may take, and the bin into which a number falls.

It does not know data, or the other attributes of the schema.

Numbers are exact, so that every machine puts a value into the same bin. Bins of equal width split [min, max]
(real) or the integers of [min, max + 1) (integer) at exact rational edges. A bin holds its lower edge. The last bin of
a real attribute holds its upper edge too.
"""

import json
import math
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    FailFast,
    Field,
    PlainValidator,
    StrictInt,
    StrictStr,
    model_validator,
)

from protocol.tables.exact_json import decimal_text, is_number, number_of

LARGEST_DOMAIN = 65_536
LONGEST_NAME = 200  # characters
LONGEST_VALUE = 1000
DEEPEST_TAXONOMY = 30
_DIGITS_IN_BIN = 6


def _is_clean(text: str) -> bool:
    """Whether text can be written to files and screens, having no control character and no half of a surrogate pair."""
    return all(unicodedata.category(character) not in ("Cc", "Cs") for character in text)


def _clean(text: str) -> str:
    if not _is_clean(text):
        raise ValueError("must not contain control characters or half a character")
    if len(text) > LONGEST_VALUE:
        raise ValueError(f"has {len(text):,} characters, and at most {LONGEST_VALUE:,} are possible; shorten it")
    return text


def _short(text: str) -> str:
    if len(text) > LONGEST_NAME:
        raise ValueError(f"has {len(text):,} characters, and at most {LONGEST_NAME} are possible; shorten it")
    return text


Text = Annotated[StrictStr, AfterValidator(_clean)]
Name = Annotated[Text, AfterValidator(_short)]
Texts = Annotated[tuple[Text, ...], FailFast()]
Number = Annotated[Fraction, PlainValidator(number_of)]


class _Attribute(BaseModel, ABC):
    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Name
    missing: Texts = ()

    @property
    @abstractmethod
    def categories(self) -> int:
        """Number of categories, not counting the missing category."""

    @property
    def size(self) -> int:
        """Number of categories. The missing category, if the attribute has one, is the last."""
        return self.categories + bool(self.missing)

    @property
    def code_type(self) -> type[np.uint8] | type[np.uint16]:
        return np.uint8 if self.size <= 256 else np.uint16

    def contradictions(self) -> Iterator[str]:
        """Problems of the attribute, worst first. A later check may assume that earlier checks passed."""
        if not self.name:
            yield 'field "name": must not be empty'
        if (token := first_duplicate(self.missing)) is not None:
            yield f'field "missing": the token {quoted(token)} is listed twice; list it once'

    def _too_large(self) -> Iterator[str]:
        if self.size > LARGEST_DOMAIN:
            yield f"it has {self.size} categories and at most {LARGEST_DOMAIN} are possible; use `bins` or fewer values"

    @model_validator(mode="after")
    def _refuse_contradictions(self) -> "_Attribute":
        for what in self.contradictions():
            raise ValueError(what)
        return self


class Listed(_Attribute):
    values: Texts

    @property
    def categories(self) -> int:
        return len(self.values)

    def contradictions(self) -> Iterator[str]:
        yield from super().contradictions()
        if not self.values:
            yield 'field "values": must list at least one value'
        if (value := first_duplicate(self.values)) is not None:
            yield f'field "values": the value {quoted(value)} is listed twice; list it once'
        if (both := first_duplicate((*self.values, *self.missing))) is not None:
            yield f'field "missing": the token {quoted(both)} is also one of the values; keep it in one of the lists'
        yield from self._too_large()


class Ordinal(Listed):
    kind: Literal["ordinal"]


class Categorical(Listed):
    kind: Literal["categorical"]
    taxonomy: dict[Any, Any] = Field(default_factory=dict)

    @cached_property
    def paths(self) -> dict[str, tuple[str, ...]]:
        """Groups from the root down, for every value that the taxonomy names."""
        return dict(_leaves(self.taxonomy, ()))

    def contradictions(self) -> Iterator[str]:
        yield from super().contradictions()
        leaves = [leaf for leaf, _ in _leaves(self.taxonomy, ())]
        if (leaf := first_duplicate(leaves)) is not None:
            yield f'field "taxonomy": the value {quoted(leaf)} is named twice; a value belongs to one group'
        known = set(self.values)
        if (unknown := next((leaf for leaf in leaves if leaf not in known), None)) is not None:
            yield f'field "taxonomy": {quoted(unknown)} is not one of the values; correct it or add it to `values`'


class Numeric(_Attribute):
    min: Number
    max: Number

    @property
    @abstractmethod
    def span(self) -> Fraction:
        """Size of the range that the bins divide: its length, or the number of its integers."""

    @property
    @abstractmethod
    def decimals(self) -> int:
        """Number of decimals of a synthetic value."""

    def edge(self, index: int) -> Fraction:
        """The lower edge of bin `index`."""
        return self.min + self.span * index / self.categories

    def bin(self, value: Fraction) -> int:
        """The bin of a value in [min, max]."""
        return min(math.floor((value - self.min) * self.categories / self.span), self.categories - 1)

    def grid(self) -> tuple[list[int], list[int]]:
        """Possible synthetic values in units of 10^-decimals: the first value of each bin, and the number of values."""
        unit = 10**self.decimals
        first = [math.ceil(self.edge(index) * unit) for index in range(self.categories)]
        ends = [*first[1:], math.floor(self.max * unit) + 1]
        return first, [end - start for start, end in zip(first, ends, strict=True)]

    def contradictions(self) -> Iterator[str]:
        yield from super().contradictions()
        if self.min > self.max:
            smaller, larger = decimal_text(self.max), decimal_text(self.min)
            yield f'field "min": {larger} is above max {smaller}; write the smaller one as min'
        for token in self.missing:
            if is_number(token) and self.min <= Fraction(token) <= self.max:
                yield (
                    f'field "missing": the token {quoted(token)} is also a number between min and max; '
                    "narrow the range or choose another token"
                )


class Integer(Numeric):
    kind: Literal["integer"]
    bins: Annotated[StrictInt, Field(ge=1)] | None = None

    @property
    def categories(self) -> int:
        return self.bins or int(self.span)

    @property
    def span(self) -> Fraction:
        return self.max - self.min + 1

    @property
    def decimals(self) -> int:
        return 0

    def contradictions(self) -> Iterator[str]:
        for field, value in (("min", self.min), ("max", self.max)):
            if value.denominator != 1:
                yield f'field "{field}": must be a whole number; use the kind "real" for {decimal_text(value)}'
        yield from super().contradictions()
        if self.categories > self.span:
            yield (
                f'field "bins": {self.bins} bins are more than the {self.span} integers from min to max; '
                "ask for fewer bins or leave `bins` out"
            )
        yield from self._too_large()


class Real(Numeric):
    kind: Literal["real"]
    bins: Annotated[StrictInt, Field(ge=1)]

    @property
    def categories(self) -> int:
        return self.bins

    @property
    def span(self) -> Fraction:
        return self.max - self.min

    @property
    def decimals(self) -> int:
        """Number of decimals, large enough that a bin holds at least a million values."""
        decimals, needed = 0, 10**_DIGITS_IN_BIN * self.bins / self.span
        while 10**decimals < needed:
            decimals += 1
        return decimals

    def contradictions(self) -> Iterator[str]:
        yield from super().contradictions()
        if self.min == self.max:
            yield f'field "max": {decimal_text(self.max)} is also min; a real attribute needs a range'
        yield from self._too_large()


Attribute = Annotated[Categorical | Ordinal | Integer | Real, Field(discriminator="kind")]


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=not text.isprintable())


def first_duplicate(texts: Sequence[str]) -> str | None:
    seen: set[str] = set()
    for text in texts:
        if text in seen:
            return text
        seen.add(text)
    return None


def _leaves(group: object, path: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Find every leaf below `group`, with the names of the groups that hold it. Raises ValueError."""
    if len(path) > DEEPEST_TAXONOMY:
        raise ValueError(f'field "taxonomy": it has more than {DEEPEST_TAXONOMY} levels')
    if path and not group:
        raise ValueError(f'field "taxonomy": the group {quoted(path[-1])} is empty; remove it or fill it')
    if isinstance(group, Mapping):
        for name, inner in group.items():
            if not isinstance(name, str) or not _is_clean(name):
                raise ValueError('field "taxonomy": the name of a group must be a text without control characters')
            if len(name) > LONGEST_NAME:
                raise ValueError(f'field "taxonomy": the name of a group has more than {LONGEST_NAME} characters')
            yield from _leaves(inner, (*path, name))
    elif isinstance(group, list | tuple) and all(isinstance(leaf, str) for leaf in group):
        yield from ((leaf, path) for leaf in group)
    else:
        raise ValueError(f'field "taxonomy": the group {quoted(path[-1])} must be a list of values or hold groups')
