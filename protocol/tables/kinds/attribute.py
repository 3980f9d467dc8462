"""The base of every kind of attribute: a name, missing tokens, and the ways between texts and categories.

It does not know data, or the other attributes of the schema.

A text becomes a category in two steps. `spelled` holds the texts whose category is known beforehand. `reading` works
out the categories of all other texts, or tells the classes of bad values, which are negative.
"""

import json
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, ConfigDict, FailFast, StrictStr, model_validator

from crypto.randomness import Stream
from protocol.tables.text_column import TextColumn

LARGEST_DOMAIN = 65_536
LONGEST_NAME = 200  # characters
LONGEST_VALUE = 1000
MISSING_LABEL = "missing"
POINT, COMMA = ".", ","  # decimal signs

ABOVE, BELOW, NO_NUMBER, NO_INTEGER, UNLISTED, EMPTY, NO_DATE, LATE, EARLY = range(-1, -10, -1)
WHAT = {
    ABOVE: "a number above the largest",
    BELOW: "a number below the smallest",
    NO_NUMBER: "text where a number is expected",
    NO_INTEGER: "a fraction where a whole number is expected",
    UNLISTED: "a category that the schema does not list",
    EMPTY: "an empty field, which the schema does not list as missing",
    NO_DATE: "text that is no date in the schema's format",
    LATE: "a date after the last",
    EARLY: "a date before the first",
}

Reading = Callable[[Sequence[str]], NDArray[np.int32]]


class Contradictions(ValueError):
    """All problems of one attribute, each a sentence without its place."""

    def __init__(self, what: Sequence[str]) -> None:
        super().__init__("; ".join(what))
        self.what = tuple(what)


def is_clean(text: str) -> bool:
    """Whether text can be written to files and screens, having no control character and no half of a surrogate pair."""
    return all(unicodedata.category(character) not in ("Cc", "Cs") for character in text)


def _clean(text: str) -> str:
    if not is_clean(text):
        raise ValueError("must not contain control characters or half a character")
    return _within(LONGEST_VALUE, text)


def _short(text: str) -> str:
    return _within(LONGEST_NAME, text)


def _within(longest: int, text: str) -> str:
    if len(text) > longest:
        raise ValueError(f"has {len(text):,} characters, and at most {longest:,} are possible; shorten it")
    return text


def _labels(labels: dict[Any, Any]) -> dict[str, str]:
    """Check the labels of values, up to the first that is no text."""
    for value, label in labels.items():
        if not isinstance(value, str) or not isinstance(label, str):
            raise ValueError(f"the label of {quoted(str(value))} must be a text in quotes")
        try:
            _clean(label)
        except ValueError as error:
            raise ValueError(f"the label of {quoted(value)} {error}") from None
    return labels


Text = Annotated[StrictStr, AfterValidator(_clean)]
Name = Annotated[Text, AfterValidator(_short)]
Texts = Annotated[tuple[Text, ...], FailFast()]
Labels = Annotated[dict[Any, Any], AfterValidator(_labels)]


class AttributeBase(BaseModel, ABC):
    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Name
    missing: Texts = ()
    description: Text = ""

    @property
    @abstractmethod
    def categories(self) -> int:
        """Number of categories, not counting the missing category."""

    @property
    @abstractmethod
    def is_ordered(self) -> bool:
        """Whether neighbouring categories are closer to each other than others."""

    @property
    def size(self) -> int:
        """Number of categories. The missing category, if the attribute has one, is the last."""
        return self.categories + bool(self.missing)

    @property
    def code_type(self) -> type[np.uint8] | type[np.uint16]:
        return np.uint8 if self.size <= 256 else np.uint16

    @cached_property
    def spelled(self) -> Mapping[str, int]:
        """The texts whose category is known beforehand: missing tokens and listed values."""
        return dict.fromkeys(self.missing, self.categories)

    @abstractmethod
    def reading(self, decimal: str = POINT) -> Reading:
        """Make the function that finds the categories of texts not in `spelled`, or their classes of bad values."""

    @abstractmethod
    def texts(self, codes: NDArray[Any], stream: Stream) -> TextColumn:
        """Write a text for every code; a number or a date is drawn from its category."""

    @abstractmethod
    def labels_of_categories(self) -> list[str]:
        """Name every category for people, with the missing category as the last."""

    def contradictions(self) -> Iterator[str]:
        """Problems of the attribute, worst first. A later check may assume that earlier checks passed or ended it."""
        if not self.name:
            yield 'field "name": must not be empty'
        if (token := first_duplicate(self.missing)) is not None:
            yield f'field "missing": the token {quoted(token)} is listed twice; list it once'

    def _too_large(self) -> Iterator[str]:
        if self.size > LARGEST_DOMAIN:
            yield f"it has {self.size} categories and at most {LARGEST_DOMAIN} are possible; {self._remedy()}"

    def _remedy(self) -> str:
        """Say how to get along with fewer categories."""
        return "use `bins` or fewer values"

    @model_validator(mode="after")
    def _refuse_contradictions(self) -> "AttributeBase":
        if found := list(self.contradictions()):
            raise Contradictions(found)
        return self


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=not text.isprintable())


def each_read(read: Callable[[str], int], texts: Sequence[str]) -> NDArray[np.int32]:
    """Read texts one by one."""
    return np.fromiter(map(read, texts), np.int32, len(texts))


def first_duplicate(texts: Sequence[str]) -> str | None:
    seen: set[str] = set()
    for text in texts:
        if text in seen:
            return text
        seen.add(text)
    return None
