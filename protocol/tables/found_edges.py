"""Edges of bins that a run finds: which attributes ask for them, and the schema that follows from them.

It does not know counts, or how edges are chosen (`protocol.model.bin_edges`).

An attribute with `find` has a fine public grid: its bins as the schema says. Found edges join neighbours of the
grid. How many bins come out is public, so that everything that is planned follows from the schema before.
"""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

from protocol.errors import PlanError
from protocol.outside_json import read_json
from protocol.tables.attributes import Numeric
from protocol.tables.domain import Codes, FoundEdges, bins_of
from protocol.tables.exact_json import decimal_text
from protocol.tables.schema import Schema

_OF_GRID = ("min", "max", "bins", "scale", "find")


def asking(schema: Schema) -> dict[int, Numeric]:
    """The attributes whose edges can be found, by their places in the schema."""
    numbers = ((place, one) for place, one in enumerate(schema.attributes) if isinstance(one, Numeric))
    return {place: one for place, one in numbers if one.find is not None}


def counted(schema: Schema, part: Fraction) -> Schema:
    """The schema as tables count it before edges are found, with this part of the budget to find them."""
    if not 0 <= part < 1:
        raise PlanError(f"the part for edges is {part}: it must be 0, or lie between 0 and 1, such as 0.1")
    return with_edges(schema, even_edges(schema)) if part else schema


def even_edges(schema: Schema) -> FoundEdges:
    """Edges that divide every grid evenly: they stand for those that are still to be found."""
    return tuple((place, _evenly(one.categories, one.find or 1)) for place, one in asking(schema).items())


def with_edges(schema: Schema, edges: FoundEdges) -> Schema:
    """The schema with these bins in place of its grids."""
    raw = read_json(schema.to_json(), exact=True)
    for place, starts in edges:
        own: dict[str, Any] = raw["attributes"][place]
        attribute = schema.attributes[place]
        assert isinstance(attribute, Numeric)
        kept = {field: value for field, value in own.items() if field not in _OF_GRID}
        found = [Decimal(decimal_text(edge)) for edge in attribute.edges_at(starts)]
        raw["attributes"][place] = kept | {"edges": found}
    return Schema.parse(raw)


def in_found_bins(agreed: Schema, found: Schema, edges: FoundEdges, codes: Sequence[Codes]) -> list[Codes]:
    """Columns of codes of the agreed schema as columns of codes of the found one."""
    bins = {place: bins_of(starts, agreed.sizes[place], found.sizes[place]) for place, starts in edges}
    return [bins[place][column] if place in bins else column for place, column in enumerate(codes)]


def problem_of(schema: Schema, told: FoundEdges) -> str | None:
    """The reason why these edges do not fit the schema, if they do not."""
    expected = asking(schema)
    if [place for place, _ in told] != list(expected):
        return f"expected those of {len(expected)} attributes in their order"
    for place, starts in told:
        attribute = expected[place]
        in_order = all(before < after for before, after in pairwise(starts))
        if len(starts) != attribute.find or starts[0] or not in_order or starts[-1] >= attribute.beginnings:
            return f"expected {attribute.find} rising places below {attribute.beginnings} of a grid, the first 0"
    return None


def _evenly(cells: int, bins: int) -> tuple[int, ...]:
    return tuple(cells * place // bins for place in range(bins))
