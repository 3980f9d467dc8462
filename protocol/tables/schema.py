"""Schemas: the attributes of a table, agreed before any data is read.

It does not know data, or how attributes become variables (`protocol.tables.encoding`).
"""

from functools import cached_property
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from protocol.errors import SchemaError
from protocol.exact import digest
from protocol.outside_json import read_json
from protocol.tables.attributes import Attribute, Name
from protocol.tables.exact_json import write_json
from protocol.tables.schema_problems import equal_names, overfull, sentences, unready

LARGEST_SCHEMA = 1 << 20  # characters of its JSON
MOST_ATTRIBUTES = 2000
MOST_CATEGORIES = 1 << 20  # of all attributes together: the cells of their single tables

_FORMAT = "$schema"


class Schema(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    title: Name = ""
    attributes: Annotated[tuple[Attribute, ...], Field(max_length=MOST_ATTRIBUTES)]

    @classmethod
    def parse(cls, source: str | bytes | dict[str, Any]) -> "Schema":
        """Parse a schema from JSON, or from the object that JSON was read into. Raises SchemaError."""
        raw = _without_format(read_schema_json(source) if isinstance(source, str | bytes) else source)
        if too_much := overfull(raw):
            raise SchemaError(too_much)
        not_ready = unready(raw)
        try:
            found = cls.model_validate(raw)
        except ValidationError as error:
            raise SchemaError(*sentences(raw, not_ready, error, cls._complaints)) from None
        if not_ready:
            raise SchemaError(*not_ready.values())
        if (length := len(found.to_json())) > LARGEST_SCHEMA:
            raise SchemaError(
                f"Schema: written in full it has {length:,} characters, and at most {LARGEST_SCHEMA:,} are read; "
                "use fewer values or edges."
            )
        return found

    @classmethod
    def _complaints(cls, raw: Any) -> ValidationError | None:
        try:
            cls.model_validate(raw)
        except ValidationError as error:
            return error
        return None

    def to_json(self) -> str:
        """Write canonical JSON: schemas with the same meaning give the same text."""
        return self._text

    @cached_property
    def _text(self) -> str:
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
        for what in equal_names([attribute.name for attribute in attributes]):
            raise ValueError(what)
        if (categories := sum(attribute.size for attribute in attributes)) > MOST_CATEGORIES:
            raise ValueError(
                f"the attributes have {categories:,} categories together and at most {MOST_CATEGORIES:,} are possible; "
                "use fewer `bins`, fewer values or fewer attributes"
            )
        return attributes


def read_schema_json(source: str | bytes) -> Any:
    """Read JSON with exact numbers. Raises SchemaError."""
    try:
        return read_json(source, LARGEST_SCHEMA, exact=True)
    except ValueError as error:
        raise SchemaError(f"Schema: this is not JSON that can be read: {error}.") from None


def _without_format(raw: Any) -> Any:
    """Leave out the address of the format's description (`table-schema.json`), which is for editors."""
    if isinstance(raw, dict) and isinstance(raw.get(_FORMAT), str):
        return {field: value for field, value in raw.items() if field != _FORMAT}
    return raw


def _meant(model: BaseModel) -> dict[str, Any]:
    """The fields that differ from their defaults; leaving a field out means its default."""
    defaults = {name: field.get_default(call_default_factory=True) for name, field in type(model).model_fields.items()}
    return {name: value for name, default in defaults.items() if (value := getattr(model, name)) != default}
