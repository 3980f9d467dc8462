"""Frictionless Table Schemas, alone or in a Data Package.

It does not know files: it reads JSON that was parsed.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from math import isfinite
from typing import Any

from curator.operator.dictionaries.described import Entry, described
from protocol.errors import DataError
from protocol.services.schema_draft import Column, DraftKind, Number

_KINDS: Mapping[str, DraftKind | None] = {
    "string": "categorical",
    "number": "real",
    "integer": "integer",
    "boolean": "boolean",
    "date": "date",
    "datetime": "datetime",
    "year": "date",
    "yearmonth": "date",
    "any": "categorical",
}
_FORMATS = {"year": "%Y", "yearmonth": "%Y-%m", "datetime": "%Y-%m-%dT%H:%M:%S"}
_SHORT_TEXT = 40
_NO_COLUMNS = ("array", "object", "geopoint", "geojson", "time", "duration")


def columns_of(source: str, found: Any, table: str | None) -> list[Column]:
    schema = _schema(source, found, table)
    fields = schema.get("fields")
    if not isinstance(fields, list) or not all(isinstance(one, Mapping) and one.get("name") for one in fields):
        raise DataError(f'{source}: this is no Table Schema: a list "fields" of objects with a "name" is expected')
    keys = schema.get("primaryKey", [])
    if not isinstance(keys, str | list):
        raise DataError(f'{source}: "primaryKey" is no name and no list of names: correct it')
    primary = {keys} if isinstance(keys, str) else set(map(str, keys))
    missing = _texts(schema.get("missingValues", [""]))
    return [described(_entry(one, missing, str(one["name"]) in primary and len(primary) == 1)) for one in fields]


def _schema(source: str, found: Any, table: str | None) -> Mapping[str, Any]:
    """Return the Table Schema itself or, of a Data Package, that of a resource."""
    if not isinstance(found, Mapping) or "resources" not in found:
        return found if isinstance(found, Mapping) else {}
    if not isinstance(found["resources"], list):
        raise DataError(f'{source}: "resources" is no list of tables: correct it')
    resources = {
        str(one.get("name", place)): one
        for place, one in enumerate(found["resources"])
        if isinstance(one, Mapping) and isinstance(one.get("schema"), Mapping)
    }
    if table is None and len(resources) == 1:
        return next(iter(resources.values()))["schema"]  # type: ignore[no-any-return]
    if table not in resources:
        raise DataError(f"{source}: the package has the tables {', '.join(resources) or 'none'}; choose one by --table")
    return resources[table]["schema"]  # type: ignore[no-any-return]


def _entry(one: Mapping[str, Any], missing: Sequence[str], is_key: bool) -> Entry:
    kind, limits = str(one.get("type", "string")), one.get("constraints")
    limits = limits if isinstance(limits, Mapping) else {}
    values, labels = _categories(one.get("categories", limits.get("enum")))
    drafted = _KINDS.get(kind)
    if kind == "boolean":
        values = [*_texts(one.get("falseValues", ["false"]))[:1], *_texts(one.get("trueValues", ["true"]))[:1]]
        labels = dict(zip(values, ("no", "yes"), strict=False))
    if one.get("categoriesOrdered") is True and values:
        drafted = "ordinal"
    longest = limits.get("maxLength")
    is_short = isinstance(longest, int | Decimal) and longest <= _SHORT_TEXT
    is_text = kind in _NO_COLUMNS or (kind == "string" and not values and not is_short)
    return Entry(
        name=str(one["name"]),
        kind=drafted,
        description=str(one.get("description") or one.get("title") or ""),
        unit=str(one.get("unit", "")),
        values=values,
        labels=labels,
        missing=_texts(one.get("missingValues")) or missing,
        lowest=_end(drafted, limits.get("minimum")),
        highest=_end(drafted, limits.get("maximum")),
        format=_FORMATS.get(kind) if one.get("format") in (None, "default", "any") else str(one["format"]),
        is_identifier=is_key or limits.get("unique") is True or one.get("format") in ("email", "uuid", "uri"),
        is_free_text=is_text,
    )


def _categories(found: Any) -> tuple[list[str], dict[str, str]]:
    if not isinstance(found, list):
        return [], {}
    pairs = [(one.get("value"), one.get("label")) if isinstance(one, Mapping) else (one, None) for one in found]
    values = [str(value) for value, _ in pairs]
    return values, {str(value): str(label) for value, label in pairs if label is not None}


def _texts(found: Any) -> list[str]:
    if not isinstance(found, list):
        return []
    return [str(one.get("value", "")) if isinstance(one, Mapping) else str(one) for one in found]


def _end(kind: DraftKind | None, found: Any) -> Number | None:
    if kind in ("date", "datetime"):
        return None if found is None else str(found)
    if isinstance(found, Decimal):
        return float(found) if isfinite(float(found)) else None
    return found if isinstance(found, int | float) and not isinstance(found, bool) else None
