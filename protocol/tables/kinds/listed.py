"""Kinds whose values are listed: categorical, ordinal and boolean.

It does not know numbers or dates (`protocol.tables.kinds.numbers`, `protocol.tables.kinds.moments`).
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from functools import cached_property, partial
from typing import Any, Literal

from numpy.typing import NDArray
from pydantic import Field

from crypto.randomness import Stream
from protocol.tables.kinds import taxonomy
from protocol.tables.kinds.attribute import (
    EMPTY,
    MISSING_LABEL,
    POINT,
    UNLISTED,
    AttributeBase,
    Labels,
    Reading,
    Text,
    Texts,
    each_read,
    first_duplicate,
    quoted,
)
from protocol.tables.text_column import TextColumn


class Listed(AttributeBase):
    """An attribute whose categories have one written text each."""

    labels: Labels = Field(default_factory=dict)

    @property
    @abstractmethod
    def written(self) -> tuple[str, ...]:
        """The text of every category, without the missing category."""

    @property
    def categories(self) -> int:
        return len(self.written)

    @cached_property
    def spelled(self) -> Mapping[str, int]:
        return {**super().spelled, **{text: code for code, text in enumerate(self.written)}}

    def reading(self, decimal: str = POINT) -> Reading:  # noqa: ARG002 - values are read as they are written
        return partial(each_read, lambda text: UNLISTED if text else EMPTY)

    def texts(self, codes: NDArray[Any], stream: Stream) -> TextColumn:  # noqa: ARG002 - nothing is drawn
        return TextColumn([*self.written, *self.missing[:1]], codes)

    def labels_of_categories(self) -> list[str]:
        return [*self.written, *[MISSING_LABEL] * bool(self.missing)]

    def contradictions(self) -> Iterator[str]:
        yield from super().contradictions()
        if (both := first_duplicate([*self._tokens(), *dict.fromkeys(self.missing)])) is not None:
            yield f'field "missing": the token {quoted(both)} is also one of the values; keep it in one of the lists'
        known = {*self._tokens(), *self.missing}
        if (unknown := next((text for text in self.labels if text not in known), None)) is not None:
            yield f'field "labels": {quoted(unknown)} is not one of the values; correct it or add it to `values`'
        yield from self._too_large()

    def _tokens(self) -> list[str]:
        """Every text that stands for a category, each once."""
        return list(dict.fromkeys(self.written))


class Valued(Listed):
    """An attribute that lists its values."""

    values: Texts

    def contradictions(self) -> Iterator[str]:
        if not self.values:
            yield 'field "values": must list at least one value'
        if (value := first_duplicate(self.values)) is not None:
            yield f'field "values": the value {quoted(value)} is listed twice; list it once'
        yield from super().contradictions()


class Ordinal(Valued):
    kind: Literal["ordinal"]

    @property
    def written(self) -> tuple[str, ...]:
        return self.values

    @property
    def is_ordered(self) -> bool:
        return True


class Categorical(Valued):
    kind: Literal["categorical"]
    other: Text | None = None
    taxonomy: dict[Any, Any] = Field(default_factory=dict)

    @property
    def written(self) -> tuple[str, ...]:
        return self.values if self.other is None else (*self.values, self.other)

    @property
    def is_ordered(self) -> bool:
        return False

    @cached_property
    def paths(self) -> dict[str, tuple[str, ...]]:
        """Groups from the root down, for every value that the taxonomy names."""
        return taxonomy.paths(self.taxonomy, self.values)

    def reading(self, decimal: str = POINT) -> Reading:
        if self.other is None:
            return super().reading(decimal)
        rest = len(self.values)
        return partial(each_read, lambda text: rest if text else EMPTY)

    def contradictions(self) -> Iterator[str]:
        yield from super().contradictions()
        if self.other == "":
            yield 'field "other": must not be empty; write the text that stands for all other values'
        if self.other in self.values:
            yield f'field "other": {quoted(str(self.other))} is also one of the values; keep it in one of both'
        yield from taxonomy.problems(self.taxonomy, self.written)


class Boolean(Listed):
    """Yes or no. Code 0 is false and code 1 is true; the first text of each is written back."""

    kind: Literal["boolean"]
    true: Texts = ("true",)
    false: Texts = ("false",)

    @property
    def written(self) -> tuple[str, ...]:
        return (*self.false[:1], *self.true[:1])

    @property
    def is_ordered(self) -> bool:
        return False

    @cached_property
    def spelled(self) -> Mapping[str, int]:
        return {**super().spelled, **dict.fromkeys(self.false, 0), **dict.fromkeys(self.true, 1)}

    def contradictions(self) -> Iterator[str]:
        for field, texts in (("true", self.true), ("false", self.false)):
            if not texts:
                yield f'field "{field}": must list at least one text'
            if (text := first_duplicate(texts)) is not None:
                yield f'field "{field}": the text {quoted(text)} is listed twice; list it once'
        if both := sorted({*self.true} & {*self.false}):
            yield f'field "true": the text {quoted(both[0])} is also listed as false; keep it in one of both'
        yield from super().contradictions()

    def _tokens(self) -> list[str]:
        return list(dict.fromkeys((*self.false, *self.true)))
