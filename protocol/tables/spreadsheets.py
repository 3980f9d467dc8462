"""Texts that a spreadsheet takes for formulas when somebody opens a table in it, and how to keep them texts.

It does not know files.
"""

from collections.abc import Iterator

from protocol.tables.attributes import Listed, Moment
from protocol.tables.exact_json import is_number
from protocol.tables.schema import Schema

_BEGINNINGS = tuple("=+-@\t\r")
_TEXT_MARK = "'"


def is_formula(text: str) -> bool:
    return text.startswith(_BEGINNINGS) and not is_number(text)


def as_text(text: str) -> str:
    """The cell as a spreadsheet shows it without computing anything."""
    return _TEXT_MARK + text if is_formula(text) else text


def formulas_in(schema: Schema) -> list[str]:
    """Names, values, missing tokens and formats of a schema that a spreadsheet would take for formulas."""
    return [text for text in dict.fromkeys(_texts(schema)) if is_formula(text)]


def _texts(schema: Schema) -> Iterator[str]:
    for attribute in schema.attributes:
        yield attribute.name
        yield from attribute.missing[:1]  # the token that is written
        if isinstance(attribute, Listed):
            yield from attribute.written
        elif isinstance(attribute, Moment):
            yield attribute.format
