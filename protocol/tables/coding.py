"""Coding of columns of text into columns of codes, and of codes into text again.

It does not know files, separators or quoting. Each distinct text that a batch tells is coded once.

Privacy: messages about a row name its number, the column and the class of the value, never a value.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from crypto.randomness import Stream
from protocol.errors import DataError, OperatorError
from protocol.tables.attributes import AttributeBase, Ranged, first_duplicate, quoted
from protocol.tables.batches import Batch, Column, Row, batched
from protocol.tables.domain import Codes
from protocol.tables.fields import FieldReader
from protocol.tables.kinds.attribute import ABOVE, BELOW, EARLY, LATE, POINT, WHAT
from protocol.tables.schema import Schema
from protocol.tables.text_column import TextColumn

Rule = Literal["refuse", "clamp", "missing"]

WRONG_WIDTH = "the wrong number of fields"
_GROWTH = 8  # columns that are full grow by this part of their length


@dataclass(frozen=True)
class Problem:
    """The number of bad values of one class in a column or, without a column, the number of bad rows."""

    column: str | None
    what: str
    count: int


@dataclass(frozen=True)
class Cell:
    """A bad value, for the eyes of the data owner alone; or a row of the wrong width, without a column."""

    row: int
    column: str | None
    what: str
    text: str = field(repr=False)


class Coder:
    """Coder of batches whose fields are in the schema's order, or in the order of the header last given to `columns`.

    `decimal` is the sign in the table's numbers, and `place` names a row of the source by its number.
    """

    def __init__(
        self,
        schema: Schema,
        out_of_range: Rule | Mapping[str, Rule] = "refuse",
        source: str = "the table",
        decimal: str = POINT,
        place: Callable[[int], str] = "row {}".format,
    ) -> None:
        self._schema = schema
        self._source = source
        self._place = place
        self._readers = [FieldReader(attribute, decimal) for attribute in schema.attributes]
        self._replacements = [replacements(attribute, out_of_range) for attribute in schema.attributes]
        if not isinstance(out_of_range, str) and (unknown := sorted(out_of_range.keys() - set(schema.names))):
            raise OperatorError(
                f"The schema has no attribute {quoted(unknown[0])}, for which a rule is given; correct the name."
            )
        self._positions = list(range(len(schema.names)))
        self._width = len(schema.names)

    def columns(self, header: Sequence[str]) -> None:
        """Take the order of the fields from a header; columns that the schema does not name are ignored."""
        given, names = set(header), set(self._schema.names)
        absent = [name for name in self._schema.names if name not in given]
        if absent:
            listed = ", ".join(map(quoted, absent))
            raise DataError(f"{self._source}: the header lacks {listed}; add the column or correct its name.")
        if (twice := first_duplicate([name for name in header if name in names])) is not None:
            raise DataError(f"{self._source}: the header names {quoted(twice)} twice; keep one of the columns.")
        self._positions = [header.index(name) for name in self._schema.names]
        self._width = len(header)

    def code(self, rows: Iterable[Row], first_row: int = 1) -> list[Codes]:
        """Code all rows, into one column per attribute. Row 1 is the first row below the header."""
        return gather(self._schema, self.batches(batched(rows, self._width), first_row))

    def batches(self, batches: Iterable[Batch], first_row: int = 1) -> Iterator[list[Codes]]:
        """Code batch by batch, for tables that should not be held in memory as text."""
        for batch in batches:
            yield self._code(batch, first_row)
            first_row += batch.rows

    def problems(self, batches: Iterable[Batch]) -> list[Problem]:
        """Count values that the schema does not cover, before any rule applies. Only the data owner may see counts."""
        found: Counter[tuple[int, int]] = Counter()
        misfits = 0
        for batch in batches:
            misfits += len(batch.misfits)
            for index, (column, codes) in enumerate(self._coded(batch)):
                if (codes < 0).any():
                    spread = column.spread(codes)
                    bad, counts = np.unique(spread[spread < 0], return_counts=True)
                    found.update({(index, int(code)): int(count) for code, count in zip(bad, counts, strict=True)})
        names = self._schema.names
        problems = [Problem(names[index], WHAT[code], count) for (index, code), count in sorted(found.items())]
        return ([Problem(None, WRONG_WIDTH, misfits)] if misfits else []) + problems

    def offending(self, batches: Iterable[Batch], most: int) -> list[Cell]:
        """Find bad values, at most `most` of each column and class, before any rule applies; in the rows' order."""
        found: list[Cell] = []
        counts: Counter[tuple[str | None, str]] = Counter()
        first_row = 1
        for batch in batches:
            for cell in sorted(self._bad_cells(batch, first_row), key=lambda cell: cell.row):
                counts[cell.column, cell.what] += 1
                if counts[cell.column, cell.what] <= most:
                    found.append(cell)
            first_row += batch.rows
        return found

    def _bad_cells(self, batch: Batch, first_row: int) -> Iterator[Cell]:
        for place, row in batch.misfits.items():
            yield Cell(first_row + place, None, WRONG_WIDTH, f"{len(row)} instead of {self._width}")
        for index, (column, codes) in enumerate(self._coded(batch)):
            if (codes < 0).any():
                spread = column.spread(codes)
                for at in np.flatnonzero(spread < 0).tolist():
                    row_number = first_row + int(batch.fitting[at])
                    yield Cell(row_number, self._schema.names[index], WHAT[int(spread[at])], column.text(at))

    def _code(self, batch: Batch, first_row: int) -> list[Codes]:
        columns: list[Codes] = []
        bad: list[tuple[int, int, int]] = []  # the first of each column: the row's place, the column, the class
        for index, (column, codes) in enumerate(self._coded(batch)):
            for what, code in self._replacements[index].items():
                codes[codes == what] = code
            if (codes < 0).any() and (spread := column.spread(codes)).min(initial=0) < 0:
                at = int(np.argmax(spread < 0))
                bad.append((int(batch.fitting[at]), index, int(spread[at])))
            columns.append(column.spread(codes.astype(self._schema.attributes[index].code_type)))
        self._refuse(batch, bad, first_row)
        return columns

    def _coded(self, batch: Batch) -> Iterator[tuple[Column, NDArray[np.int32]]]:
        """Every attribute's column, and the codes of its texts; a negative code is a class of bad values."""
        for position, reader in zip(self._positions, self._readers, strict=True):
            column = batch.columns[position]
            yield column, reader.codes(column.texts)

    def _refuse(self, batch: Batch, bad: Sequence[tuple[int, int, int]], first_row: int) -> None:
        """Refuse the first row with a bad value or of another width than the header."""
        misfit = min(batch.misfits, default=batch.rows)
        row, index, what = min(bad, default=(batch.rows, 0, 0))
        if row < misfit:
            place = f"{self._source}, {self._place(first_row + row)}, column {quoted(self._schema.names[index])}"
            raise DataError(
                f"{place}: {WHAT[what]}; correct the table or the schema, or set out_of_range for this column."
            )
        if batch.misfits:
            found = f"{len(batch.misfits[misfit])} instead of {self._width}"
            place = self._place(first_row + misfit)
            raise DataError(f"{self._source}, {place}: {WRONG_WIDTH}, {found}; correct the row.")


def gather(schema: Schema, batches: Iterable[list[Codes]]) -> list[Codes]:
    """Join batches into whole columns of one or two bytes per value. Columns grow in place, never held twice."""
    columns: list[Codes] = [np.empty(0, attribute.code_type) for attribute in schema.attributes]
    rows = 0
    for batch in batches:
        end = rows + len(batch[0])
        for column, codes in zip(columns, batch, strict=True):
            if end > column.size:
                column.resize(max(end, column.size + column.size // _GROWTH), refcheck=False)
            column[rows:end] = codes
        rows = end
    for column in columns:
        column.resize(rows, refcheck=False)
    return columns


def labels(schema: Schema, codes: Sequence[Codes], stream: Stream) -> list[TextColumn]:
    """The text of every code, by attribute; a number or a date is drawn from its category."""
    columns = zip(schema.attributes, codes, strict=True)
    return [attribute.texts(column, stream) for attribute, column in columns]


def replacements(attribute: AttributeBase, out_of_range: Rule | Mapping[str, Rule]) -> dict[int, int]:
    """The code that replaces each class of bad value, by the data owner's rule."""
    for_all = isinstance(out_of_range, str)
    rule = out_of_range if isinstance(out_of_range, str) else out_of_range.get(attribute.name, "refuse")
    if rule == "clamp" and isinstance(attribute, Ranged):
        last = attribute.categories - 1
        return {ABOVE: last, LATE: last, BELOW: 0, EARLY: 0}
    if rule == "missing" and attribute.missing:
        return dict.fromkeys(WHAT, attribute.categories)
    if rule != "refuse" and not for_all:
        needed = "numbers or dates" if rule == "clamp" else "a missing token in the schema"
        raise OperatorError(f"The rule {rule} for {quoted(attribute.name)} needs {needed}; choose another rule.")
    return {}
