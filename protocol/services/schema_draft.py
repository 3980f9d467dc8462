"""Drafts of schemas from descriptions of columns, for a person to finish.

It does not know where the descriptions come from: a data dictionary, or the rows of a table on the spot.

What is not public knowledge yet is marked: a value, or nothing, inside {"to be justified from public knowledge": ...}.
A schema with a mark is refused everywhere, until somebody has put what is known in the mark's place.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from protocol.tables.schema_problems import MARK

DraftKind = Literal["categorical", "ordinal", "boolean", "integer", "real", "date", "datetime"]
Number = int | float | str  # a text is a date

_BINS = 20
_FEW = 32  # integers up to which each is a category of its own
_DEFAULT_FORMATS = {"date": "%Y-%m-%d", "datetime": "%Y-%m-%d %H:%M:%S"}


@dataclass(frozen=True)
class Described:
    """A column as somebody describes it. `is_public` says whether values and range may stand in a schema."""

    name: str
    kind: DraftKind
    description: str = ""
    unit: str = ""
    values: Sequence[str] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    true: Sequence[str] = ()
    false: Sequence[str] = ()
    missing: Sequence[str] = ()
    lowest: Number | None = None
    highest: Number | None = None
    decimals: int | None = None
    format: str | None = None
    is_format_sure: bool = True
    has_others: bool = False
    is_public: bool = True


@dataclass(frozen=True)
class LeftOut:
    """A column that no schema should hold, and why."""

    name: str
    why: str


Column = Described | LeftOut


def draft(title: str, columns: Sequence[Column]) -> str:
    """Write a schema as JSON for a person to finish, an attribute for each column that is not left out."""
    attributes = [_attribute(column) for column in columns if isinstance(column, Described)]
    lines = ",\n".join(f"  {json.dumps(attribute, ensure_ascii=False)}" for attribute in attributes)
    return f'{{"title": {json.dumps(title, ensure_ascii=False)},\n "attributes": [\n{lines}\n ]}}\n'


def summary(columns: Sequence[Column]) -> list[str]:
    """Say what a draft holds, what is left to do, and what was left out."""
    drafted = [column for column in columns if isinstance(column, Described)]
    marks = sum(_count_marks(_attribute(column)) for column in drafted)
    found = [f"{len(drafted)} columns"]
    if marks:
        found.append(
            f"{marks} fields are marked as {MARK}: replace every mark by what is known without a look at any row"
        )
    for column in columns:
        if isinstance(column, LeftOut):
            found.append(f"left out: {column.name} ({column.why})")
    return found


def _attribute(column: Described) -> dict[str, Any]:
    known: dict[str, Any] = {"name": column.name, "kind": column.kind}
    if column.description:
        known["description"] = column.description
    if column.kind in ("categorical", "ordinal"):
        known |= _listed(column)
    elif column.kind == "boolean":
        known |= {"true": list(column.true or ("true",)), "false": list(column.false or ("false",))}
        known |= {"labels": dict(column.labels)} if column.labels else {}
    elif column.kind in ("integer", "real"):
        known |= _numeric(column)
    else:
        known |= _moment(column)
    if column.missing:
        known["missing"] = list(column.missing)
    return known


def _listed(column: Described) -> dict[str, Any]:
    values = list(column.values)
    found: dict[str, Any] = {"values": values if column.is_public and values else _marked(values)}
    if column.labels:
        found["labels"] = dict(column.labels)
    if column.has_others and column.kind == "categorical":
        found["other"] = next(text for text in ("other", "others", "(other)") if text not in values)
    return found


def _numeric(column: Described) -> dict[str, Any]:
    low, high = column.lowest, column.highest
    found: dict[str, Any] = {"min": _public(column, low), "max": _public(column, high)}
    is_short = column.kind == "integer" and isinstance(low, int) and isinstance(high, int) and high - low < _FEW
    if not is_short:
        found["bins"] = _BINS
    if column.kind == "real" and column.decimals is not None:
        found["decimals"] = column.decimals
    if column.unit:
        found["unit"] = column.unit
    return found


def _moment(column: Described) -> dict[str, Any]:
    found: dict[str, Any] = {"min": _public(column, column.lowest), "max": _public(column, column.highest)}
    found["resolution"] = "month"
    form = column.format or _DEFAULT_FORMATS[column.kind]
    if form != _DEFAULT_FORMATS[column.kind]:
        found["format"] = form
    if not column.is_format_sure:
        found["format"] = _marked(form)
    return found


def _public(column: Described, value: Number | None) -> Any:
    return value if column.is_public and value is not None else _marked(value)


def _marked(value: Any) -> dict[str, Any]:
    return {MARK: value}


def _count_marks(attribute: Mapping[str, Any]) -> int:
    return sum(isinstance(value, Mapping) and MARK in value for value in attribute.values())
