"""The codebook of a published table: every column with its type, its description and all its values.

It does not know how the table was made: it is written from the schema alone.
"""

import csv
import io
from collections.abc import Iterator
from typing import Any

from curator.rendering.templating import render
from curator.results.report import POLICY, STYLE
from protocol.services.schema_words import in_words
from protocol.tables.attributes import AttributeBase, Listed, Moment, Numeric
from protocol.tables.schema import Schema

_MOST_BINS = 1000  # of a range that are listed one by one
_MOST_ON_PAGE = 100
_HEADER = ("column", "kind", "description", "unit", "format", "value", "label")


def codebook_csv(schema: Schema) -> str:
    """Write a line for every value or bin; a range of more bins has one line."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_HEADER)
    for attribute in schema.attributes:
        about = [attribute.name, attribute.kind, attribute.description, _unit(attribute), _format(attribute)]
        writer.writerows([*about, *line] for line in _values(attribute))
    return text.getvalue()


def codebook_html(schema: Schema, run: str) -> str:
    columns = [_column(attribute) for attribute in schema.attributes]
    return render(
        "codebook.html", style=STYLE, policy=POLICY, title=schema.title, run=run, columns=columns, hash=schema.hash
    )


def _column(attribute: Any) -> dict[str, Any]:
    is_listed = isinstance(attribute, Listed)
    values = list(_values(attribute)) if is_listed or attribute.categories <= _MOST_ON_PAGE else []
    return {
        "name": attribute.name,
        "kind": attribute.kind,
        "description": attribute.description,
        "unit": _unit(attribute),
        "words": in_words(attribute),
        "is_listed": is_listed,
        "has_labels": any(label for _, label in values),
        "values": values,
    }


def _values(attribute: AttributeBase) -> Iterator[tuple[str, str]]:
    """Yield every value with its label; of a range, its bins."""
    if isinstance(attribute, Listed):
        for value in attribute.written:
            yield value, attribute.labels.get(value, "")
    elif attribute.categories <= _MOST_BINS:
        bins = attribute.labels_of_categories()[: attribute.categories]
        yield from ((text, "") for text in bins)
    else:
        yield in_words(attribute), ""
    if attribute.missing:
        labels = attribute.labels if isinstance(attribute, Listed) else {}
        yield attribute.missing[0], labels.get(attribute.missing[0], "missing")


def _unit(attribute: AttributeBase) -> str:
    return attribute.unit if isinstance(attribute, Numeric) else ""


def _format(attribute: AttributeBase) -> str:
    return attribute.format if isinstance(attribute, Moment) else ""
