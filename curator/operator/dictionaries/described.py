"""One row of a data dictionary as the description of a column.

It does not know the form of any dictionary: the forms hand it the same few words.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from curator.operator.dictionaries.words import truths
from protocol.services.schema_draft import Column, Described, DraftKind, LeftOut, Number
from protocol.tables.kinds.attribute import LONGEST_VALUE
from protocol.tables.kinds.formats import iso_span

FREE_TEXT = "free text, which cannot be counted"
IDENTIFIER = "an identifier, which describes nobody"


@dataclass(frozen=True)
class Entry:
    name: str
    kind: DraftKind | None
    description: str = ""
    unit: str = ""
    values: Sequence[str] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    missing: Sequence[str] = ()
    lowest: Number | None = None
    highest: Number | None = None
    decimals: int | None = None
    format: str | None = None
    is_identifier: bool = False
    is_free_text: bool = False


@dataclass(frozen=True)
class Dictionary:
    """What a dictionary tells of each column, and the names of its own columns that were not understood."""

    columns: Sequence[Column]
    unread: Sequence[str] = ()


def described(entry: Entry) -> Column:
    if entry.is_identifier:
        return LeftOut(entry.name, IDENTIFIER)
    if entry.is_free_text and not entry.values:
        return LeftOut(entry.name, FREE_TEXT)
    kind: DraftKind = entry.kind or "categorical"
    values = [value for value in entry.values if value not in entry.missing]
    if values and kind not in ("ordinal", "boolean"):
        kind = "categorical"
    pair = truths(values, entry.labels) if kind == "boolean" else None
    if kind == "boolean" and values and pair is None:
        kind = "categorical"
    return Described(
        name=entry.name,
        kind=kind,
        description=" ".join(entry.description.split())[:LONGEST_VALUE],
        unit=entry.unit,
        values=values,
        labels={
            value: entry.labels[value][:LONGEST_VALUE] for value in (*values, *entry.missing) if value in entry.labels
        },
        true=pair[0] if pair else (),
        false=pair[1] if pair else (),
        missing=list(dict.fromkeys(entry.missing)),
        lowest=_end(kind, entry.lowest),
        highest=_end(kind, entry.highest),
        decimals=entry.decimals,
        format=entry.format,
    )


def _end(kind: DraftKind, found: Number | None) -> Number | None:
    """Return an end of a range, if it is one: a number of numbers, an ISO date of dates, but not "today"."""
    if kind not in ("date", "datetime"):
        return None if isinstance(found, str) else found
    try:
        iso_span(str(found))
    except ValueError:
        return None
    return str(found)
