"""Schemas for people: attributes in words, two schemas beside each other, and a text to edit.

It does not know rows: schemas are public.
"""

from dataclasses import dataclass
from typing import Any, Literal

from protocol.outside_json import read_json
from protocol.tables.attributes import Attribute, AttributeBase, Categorical, Integer, Listed, Moment, Numeric
from protocol.tables.exact_json import decimal_text, write_json
from protocol.tables.schema import Schema

_MOST_VALUES = 8


@dataclass(frozen=True)
class Line:
    """One attribute on both sides; the text is empty for a side that lacks the attribute."""

    name: str
    asked: str
    held: str
    how: Literal["same", "different", "not held", "not asked"]


def lines(asked: Schema, held: Schema | None) -> list[Line]:
    """Compare all attributes: the requested ones in their order, then those that only the other schema has."""
    own = {attribute.name: attribute for attribute in held.attributes} if held else {}
    beside = [_line(attribute, own.get(attribute.name)) for attribute in asked.attributes]
    extra = [one for name, one in own.items() if name not in asked.names]
    return beside + [Line(one.name, "", in_words(one), "not asked") for one in extra]


def _line(asked: Attribute, held: Attribute | None) -> Line:
    if held is None:
        return Line(asked.name, in_words(asked), "", "not held")
    words, own = in_words(asked), in_words(held)
    if asked == held:
        return Line(asked.name, words, own, "same")
    note = _told_apart(asked, held) if words == own else ""
    return Line(asked.name, words + note, own, "different")


def _told_apart(asked: Attribute, held: Attribute) -> str:
    """Name the fields in which two attributes differ that read alike in words."""
    fields = (field for field in type(asked).model_fields if getattr(asked, field) != getattr(held, field, None))
    return f" (differs in {', '.join(fields)})"


def editable(schema: Schema) -> str:
    """Write a schema for an editor, an attribute on each line."""
    raw = read_json(schema.to_json(), exact=True)
    title = f'"title": {write_json(raw["title"])},\n ' if "title" in raw else ""
    attributes = ",\n  ".join(map(write_json, raw["attributes"]))
    return f'{{{title}"attributes": [\n  {attributes}\n ]}}\n'


def about(attribute: AttributeBase) -> dict[str, Any]:
    """Return what the schema says of an attribute for people: its description, unit and labels, where it has them."""
    found = {name: getattr(attribute, name, None) for name in ("description", "unit", "labels")}
    return {name: value for name, value in found.items() if value}


def in_words(attribute: AttributeBase) -> str:
    missing = ", or missing" if attribute.missing else ""
    if isinstance(attribute, Numeric):
        return f"{_number_words(attribute)}{missing}"
    if isinstance(attribute, Moment):
        return f"{_moment_words(attribute)}{missing}"
    assert isinstance(attribute, Listed)
    return f"{_listed_words(attribute)}{missing}"


def _number_words(attribute: Numeric) -> str:
    kind = "whole numbers" if isinstance(attribute, Integer) else "numbers"
    ends = f"from {decimal_text(attribute.lowest)} to {decimal_text(attribute.highest)}"
    unit = f" {attribute.unit}" if attribute.unit else ""
    found = f", joined into {attribute.find} bins where a plan finds edges" if attribute.find else ""
    return f"{kind} {ends}{unit}{_bin_words(attribute)}{found}"


def _bin_words(attribute: Numeric) -> str:
    if attribute.edges is not None:
        inner = ", ".join(map(decimal_text, attribute.edges[1:-1][:_MOST_VALUES]))
        more = len(attribute.edges) - 2 - _MOST_VALUES
        return f", divided at {inner}{_more(more)}" if inner else ""
    on_scale = f" on a {'logarithmic' if attribute.scale == 'log' else 'square-root'} scale" if attribute.scale else ""
    return f" in {attribute.categories} bins{on_scale}" if attribute.bins else ""


def _moment_words(attribute: Moment) -> str:
    first, last = (attribute.edges[0], attribute.edges[-1]) if attribute.edges else (attribute.min, attribute.max)
    divided = f"{attribute.categories} parts" if attribute.resolution is None else f"{attribute.resolution}s"
    kind = "times" if attribute.with_time else "dates"
    return f"{kind} from {first} to {last} by {divided}, written as {attribute.format}"


def _listed_words(attribute: Listed) -> str:
    labels = ((value, attribute.labels.get(value, "")) for value in attribute.written[:_MOST_VALUES])
    shown = ", ".join(f"{value} ({label})" if label else value for value, label in labels)
    order = "in order: " if attribute.is_ordered else ""
    other = " for all others" if isinstance(attribute, Categorical) and attribute.other is not None else ""
    return f"{order}{shown}{_more(len(attribute.written) - _MOST_VALUES)}{other}"


def _more(count: int) -> str:
    return f" and {count:,} more" if count > 0 else ""
