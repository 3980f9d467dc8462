"""Values of typed sources, such as dates of a database and cells of Excel, as the texts that a schema expects.

It does not know sources.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime
from functools import lru_cache

import numpy as np

from protocol.tables.attributes import AttributeBase, Boolean, Moment
from protocol.tables.batches import Batch, Column, divided

_REMEMBERED = 1 << 15
_SPELLED_ALIKE = (str, int, bool, date)  # types of which equal values have equal texts; 1.0 and 1.00 are equal decimals

Speller = Callable[[object], str]


def nothing_of(attribute: AttributeBase | None) -> str:
    """Return the text of a value that the source does not have: a missing token, if the schema lists one."""
    if attribute is None or not attribute.missing or "" in attribute.missing:
        return ""
    return attribute.missing[0]


def speller_of(attribute: AttributeBase | None) -> Speller:
    """Make the function that writes the values of a column as the attribute reads them; None: as they come."""
    nothing = nothing_of(attribute)
    typed = _typed(attribute)

    def spell(value: object) -> str:
        if isinstance(value, str):
            return value
        return nothing if value is None else typed(value)

    return spell


def _typed(attribute: AttributeBase | None) -> Speller:
    known = {} if attribute is None else attribute.spelled

    def plain(value: object) -> str:
        if isinstance(value, bool):
            return attribute.written[value] if isinstance(attribute, Boolean) else str(value).lower()
        text = str(value)
        if isinstance(value, float) and value.is_integer() and text not in known:
            return str(int(value))  # a spreadsheet knows no whole numbers
        return text

    @lru_cache(maxsize=_REMEMBERED)
    def moment(value: object) -> str:
        if isinstance(attribute, Moment) and isinstance(value, datetime):
            return attribute.text_of(value.year, value.month, value.day, value.hour, value.minute, value.second)
        if isinstance(attribute, Moment) and isinstance(value, date):
            return attribute.text_of(value.year, value.month, value.day)
        return plain(value)

    return moment if isinstance(attribute, Moment) else plain


def typed_batches(rows: Iterable[Sequence[object]], spellers: Sequence[Speller]) -> Iterator[Batch]:
    """Spell the values of rows, one speller for each column."""
    for found in divided(rows, len(spellers)):
        columns = zip(zip(*found, strict=True), spellers, strict=True)
        yield Batch(len(found), {place: _column(values, spell) for place, (values, spell) in enumerate(columns)})


def _column(values: Sequence[object], spell: Speller) -> Column:
    types = {*map(type, values)} - {type(None)}
    if len(types) > 1 or not types.issubset(_SPELLED_ALIKE):
        return Column([spell(value) for value in values])
    numbered = _Numbered()
    places = np.fromiter(map(numbered.__getitem__, values), np.int32, len(values))
    return Column([spell(value) for value in numbered], places)


class _Numbered(dict[object, int]):
    """Values in the order in which they were first asked for."""

    def __missing__(self, value: object) -> int:
        place = self[value] = len(self)
        return place
