"""Texts that a spreadsheet takes for formulas when somebody opens a table in it, and how to keep them texts.

A spreadsheet whose language writes decimal commas splits a CSV file at semicolons, and others split it at tabs. What
stands behind them begins a cell there, as does what stands behind the end of a line.

It does not know files.
"""

import re
from collections.abc import Iterator

from protocol.tables.attributes import Listed, Moment, Numeric
from protocol.tables.exact_json import is_number
from protocol.tables.schema import Schema

_BEGINNINGS = tuple("=+-@")
_SEPARATORS = re.compile("([;\t\r\n])")
_SKIPPED = ' "'  # by spreadsheets, in front of a cell
_TEXT_MARK = "'"


def is_formula(text: str) -> bool:
    """Whether the text, or a part that a spreadsheet may split off, would be computed."""
    return any(map(_is_computed, _SEPARATORS.split(text)))


def as_text(text: str) -> str:
    """The cell as a spreadsheet shows it without computing anything, wherever it splits it."""
    return "".join(_TEXT_MARK + part if _is_computed(part) else part for part in _SEPARATORS.split(text))


def formulas_in(schema: Schema) -> list[str]:
    """Texts of a schema, in its table or codebook, that a spreadsheet would take for formulas."""
    return [text for text in dict.fromkeys(_texts(schema)) if is_formula(text)]


def _is_computed(part: str) -> bool:
    cell = part.lstrip(_SKIPPED)
    return cell.startswith(_BEGINNINGS) and not is_number(cell)


def _texts(schema: Schema) -> Iterator[str]:
    for attribute in schema.attributes:
        yield attribute.name
        yield attribute.description
        yield from attribute.missing[:1]  # the token that is written
        if isinstance(attribute, Listed):
            yield from attribute.written
            yield from attribute.labels.values()
        elif isinstance(attribute, Moment):
            yield attribute.format
        elif isinstance(attribute, Numeric):
            yield attribute.unit
