"""Schemas: the attributes of a table, agreed before any data is read.

It does not know data, or how attributes become variables (`protocol.tables.encoding`).
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, FailFast, Field, ValidationError, field_validator

from protocol.errors import SchemaError
from protocol.exact import digest
from protocol.outside_json import read_json
from protocol.tables.attributes import Attribute, Name, first_duplicate, quoted
from protocol.tables.exact_json import write_json

LARGEST_SCHEMA = 1 << 20  # characters of its JSON
MOST_ATTRIBUTES = 2000
MOST_CATEGORIES = 1 << 20  # of all attributes together: the cells of their single tables
_LONGEST_SENTENCE = 500


class Schema(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    title: Name = ""
    attributes: Annotated[tuple[Attribute, ...], Field(max_length=MOST_ATTRIBUTES), FailFast()]

    @classmethod
    def parse(cls, source: str | bytes | dict[str, Any]) -> "Schema":
        """Parse a schema from JSON, or from the object that JSON was read into. Raises SchemaError."""
        try:
            raw = read_json(source, LARGEST_SCHEMA, exact=True) if isinstance(source, str | bytes) else source
        except ValueError as error:
            raise SchemaError(f"Schema: this is not JSON that can be read: {error}.") from None
        try:
            return cls.model_validate(raw)
        except ValidationError as error:
            raise SchemaError(_sentence(error, raw)) from None

    def to_json(self) -> str:
        """Write canonical JSON: schemas with the same meaning give the same text."""
        return write_json(_meant(self) | {"attributes": [_meant(attribute) for attribute in self.attributes]})

    @cached_property
    def hash(self) -> str:
        return digest(self.to_json().encode())

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(attribute.size for attribute in self.attributes)

    @field_validator("attributes")
    @classmethod
    def _refuse_contradictions(cls, attributes: tuple[Attribute, ...]) -> tuple[Attribute, ...]:
        if not attributes:
            raise ValueError("must list at least one attribute")
        if (name := first_duplicate([attribute.name for attribute in attributes])) is not None:
            raise ValueError(f"the name {quoted(name)} is given to two attributes; rename one")
        if (categories := sum(attribute.size for attribute in attributes)) > MOST_CATEGORIES:
            raise ValueError(
                f"the attributes have {categories:,} categories together and at most {MOST_CATEGORIES:,} are possible; "
                "use fewer `bins`, fewer values or fewer attributes"
            )
        return attributes


def _meant(model: BaseModel) -> dict[str, Any]:
    """The fields that differ from their defaults; leaving a field out means its default."""
    defaults = {name: field.get_default(call_default_factory=True) for name, field in type(model).model_fields.items()}
    return {name: value for name, default in defaults.items() if (value := getattr(model, name)) != default}


_WHAT = {
    "missing": "is missing; add it",
    "extra_forbidden": "is not known here; remove it or correct its spelling",
    "string_type": "must be a text in quotes",
    "int_type": "must be a whole number",
    "greater_than_equal": "must be at least 1",
    "tuple_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "too_long": f"has more than {MOST_ATTRIBUTES:,} entries; leave some out",
    "union_tag_not_found": 'field "kind": is missing; write categorical, ordinal, integer or real',
    "union_tag_invalid": 'field "kind": must be categorical, ordinal, integer or real',
}


def _sentence(error: ValidationError, raw: Any) -> str:
    """State pydantic's first complaint in one sentence that names the attribute and the field."""
    first = error.errors(include_url=False)[0]
    what = str(first["ctx"]["error"]) if first["type"] == "value_error" else _WHAT.get(first["type"], first["msg"])
    place = ", ".join(_place(first["loc"], raw))
    return f"{place}{', ' if what.startswith('field') else ': '}{what}"[:_LONGEST_SENTENCE] + "."


def _place(loc: tuple[int | str, ...], raw: Any) -> Iterator[str]:
    yield "Schema"
    field = loc
    if loc[:1] == ("attributes",) and len(loc) > 1:
        yield f"attribute {_name(raw['attributes'], int(loc[1]))}"
        field = loc[3:]  # loc[2] is the kind
    if field:
        yield f'field "{field[0]}"'
    if len(field) > 1:
        yield f"entry {int(field[1]) + 1}"


def _name(attributes: Any, index: int) -> str:
    """The attribute's name, or its number if the name cannot be shown."""
    found = attributes[index].get("name") if isinstance(attributes[index], Mapping) else None
    return quoted(found) if isinstance(found, str) and found.isprintable() and found else f"number {index + 1}"
