"""Differences between the requested schema and the schema of a data set of this party.

It does not know rows: both sides are public schemas.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from party.books.ledger import Request
from party.errors import SettingsError
from party.home.home import OpenHome
from party.home.settings import schema_of
from party.views import schema_in
from protocol.tables.attributes import Attribute, Listed, Numeric
from protocol.tables.exact_json import decimal_text
from protocol.tables.schema import Schema

_MOST_VALUES = 8


@dataclass(frozen=True)
class Line:
    """One attribute on both sides; the text is empty for a side that lacks the attribute."""

    name: str
    asked: str
    held: str
    how: Literal["same", "different", "not held", "not asked"]


def asked_schema(request: Request) -> Schema | None:
    return schema_in(request.schema_text)


def held_for(opened: OpenHome, dataset: str | None, asked: Schema) -> tuple[str, Schema] | None:
    """The data set of the request, or else the data set that shares most attribute names."""
    schemas = _readable_schemas(opened)
    if dataset is not None and dataset in schemas:
        return dataset, schemas[dataset]
    common = {name: len({*schema.names} & {*asked.names}) for name, schema in schemas.items()}
    best = max(common, key=lambda name: common[name], default=None)
    return (best, schemas[best]) if best is not None and common[best] else None


def lines(asked: Schema, held: Schema | None) -> list[Line]:
    """Compare all attributes: the requested ones in their order, then those that only this party holds."""
    own = {attribute.name: attribute for attribute in held.attributes} if held else {}
    beside = [_line(attribute, own.get(attribute.name)) for attribute in asked.attributes]
    extra = [one for name, one in own.items() if name not in asked.names]
    return beside + [Line(one.name, "", in_words(one), "not asked") for one in extra]


def in_words(attribute: Attribute) -> str:
    missing = ", or missing" if attribute.missing else ""
    if isinstance(attribute, Numeric):
        bins = f" in {attribute.bins} bins" if attribute.bins else ""
        kind = "whole numbers" if attribute.kind == "integer" else "numbers"
        return f"{kind} from {decimal_text(attribute.min)} to {decimal_text(attribute.max)}{bins}{missing}"
    assert isinstance(attribute, Listed)
    shown = ", ".join(attribute.values[:_MOST_VALUES])
    more = len(attribute.values) - _MOST_VALUES
    order = "in order: " if attribute.kind == "ordinal" else ""
    return f"{order}{shown}{f' and {more:,} more' if more > 0 else ''}{missing}"


def _line(asked: Attribute, held: Attribute | None) -> Line:
    if held is None:
        return Line(asked.name, in_words(asked), "", "not held")
    return Line(asked.name, in_words(asked), in_words(held), "same" if asked == held else "different")


def _readable_schemas(opened: OpenHome) -> Mapping[str, Schema]:
    found = {}
    for name, dataset in opened.settings.datasets.items():
        try:
            found[name] = schema_of(opened.home, name, dataset)
        except SettingsError:
            continue
    return found
