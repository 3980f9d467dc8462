"""A data set whose rows stay in an engine: checked there, coded there, and frozen there for a run.

It does not know runs, the ledger or what is counted (`party.engines.rows`).

Privacy: numbers of bad values are for the data owner. Messages name columns and classes, never a value.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property, reduce
from operator import add
from typing import Any

import ibis

from party.engines.coding import UNREAD, ColumnCoder, Fetched
from party.engines.connection import Engine, Relation, connected
from party.home.settings import Dataset
from party.persons import TWICE, UNNAMED, PersonsFound
from protocol.errors import DataError
from protocol.tables.attributes import AttributeBase, first_duplicate, quoted
from protocol.tables.coding import Problem, replacements
from protocol.tables.kinds.attribute import WHAT
from protocol.tables.schema import Schema

MOST_VALUES = 20_000  # that are fetched to be coded here, of all columns whose type leaves no other way
PERSON = "person"
TOGETHER = 4  # columns whose classes of bad values are counted together
_CLASSES = 128  # more than there are
_PACKED = _CLASSES**TOGETHER  # which fits in 31 bits
_FIRST, _FURTHER, _TOO_MANY, _NO_KEY = range(4)  # a row of a person as the bound allows it, or why it does not fit
MORE = "a person with more rows than rows_per_person"
_WHAT = {**WHAT, UNREAD: "a value that came while the table was read"}
_TO_DO = {
    TWICE: "correct it, or set rows_per_person in party.toml",
    MORE: "an engine leaves out no rows: let the query number each person's rows, and keep as many as are allowed",
    UNNAMED: "correct it",
}


@dataclass(frozen=True)
class Counted:
    """A scan's findings: the number of rows, bad values by class, persons, and why the table is refused, if it is."""

    rows: int
    problems: tuple[Problem, ...]
    persons: PersonsFound | None
    refused: str = ""  # why the table does not fit with the rules; empty if it does


@dataclass(frozen=True)
class EngineTable:
    """A table that was examined: its number of rows, and where they are. The rows themselves never come here."""

    dataset: Dataset
    schema: Schema = field(repr=False)
    rows: int

    def frozen(self, name: str) -> int:
        """Make a table of this data set's codes in the engine, and return the number of its rows."""
        with engine_of(self.dataset) as engine:
            coded = _Coded(engine, self.dataset, self.schema)
            engine.made(name, coded.ruled)
            found = coded.counted(engine.table(name, coded.types))
            if found.refused or not found.rows:
                engine.drop(name)
                raise DataError(found.refused or f"{self.dataset.engine_shown}: the query gives no rows any more")
        return found.rows


def engine_of(dataset: Dataset) -> AbstractContextManager[Engine]:
    return connected(dataset.source, dataset.engine_shown, dataset.snapshots)


def examined(dataset: Dataset, schema: Schema) -> Counted:
    """Look at every value, by one scan of the engine; by a second one where values have to be fetched."""
    with engine_of(dataset) as engine:
        coded = _Coded(engine, dataset, schema)
        return coded.counted(coded.unruled)


def names(schema: Schema) -> list[str]:
    """The columns of codes, by the place of their attributes. No name of an attribute is a name in an engine."""
    return [f"c{place}" for place in range(len(schema.names))]


class _Coded:
    """The rows of a query as codes, which the engine works out."""

    def __init__(self, engine: Engine, dataset: Dataset, schema: Schema) -> None:
        self._engine, self._dataset, self._schema = engine, dataset, schema
        self._rows = engine.relation(str(dataset.query))
        self._types = self._rows.schema()
        self._check_header([*self._types])
        self._coders = [
            ColumnCoder(attribute, self._types[attribute.name], engine.name) for attribute in schema.attributes
        ]

    @property
    def types(self) -> dict[str, str]:
        kept = [*names(self._schema), *([PERSON] if self._dataset.person_key is not None else [])]
        return dict.fromkeys(kept, "int32")

    @cached_property
    def unruled(self) -> Relation:
        """Codes before any rule of the settings applies."""
        fetched, rows = self._fetched(), self._rows
        columns = {
            name: coder.codes(rows[attribute.name], fetched.get(attribute.name))
            for name, attribute, coder in zip(names(self._schema), self._schema.attributes, self._coders, strict=True)
        }
        return rows.select(**columns, **self._person())

    @property
    def ruled(self) -> Relation:
        coded, columns = self.unruled, {}
        for name, attribute in zip(names(self._schema), self._schema.attributes, strict=True):
            rules = replacements(attribute, self._dataset.out_of_range)
            cases = [(coded[name] == what, code) for what, code in rules.items()]
            columns[name] = ibis.cases(*cases, else_=coded[name]).cast("int32") if cases else coded[name]
        return coded.mutate(**columns)

    def counted(self, coded: Relation) -> Counted:
        """Count the rows of each class of bad values, in codes of this data set before its rules or after them."""
        columns = [*self.types]
        sets = [columns[start : start + TOGETHER] for start in range(0, len(columns), TOGETHER)]
        packed = {f"s{number}": _packed(coded, own) + number * _PACKED for number, own in enumerate(sets)}
        lines = self._engine.counted(coded.select(**packed))
        counts: dict[str, Counter[int]] = {name: Counter() for name in columns}
        for place, rows in zip(lines["place"].to_pylist(), lines["n"].to_pylist(), strict=True):
            for digit, name in enumerate(sets[place // _PACKED]):
                what = place % _PACKED // _CLASSES**digit % _CLASSES
                counts[name][what if name == PERSON else -what] += rows
        return self._judged(counts)

    def _judged(self, counts: Mapping[str, Mapping[int, int]]) -> Counted:
        rows = sum(counts["c0"].values())
        called, problems, refused = self._dataset.engine_shown, [], ""
        for name, attribute in zip(names(self._schema), self._schema.attributes, strict=True):
            if sum(counts[name].values()) != rows:
                raise DataError(f"{called}: the engine gave different numbers of rows in one answer; nothing was used")
            rules = replacements(attribute, self._dataset.out_of_range)
            for code in sorted(code for code in counts[name] if code < 0):
                problems.append(Problem(attribute.name, _WHAT[code], counts[name][code]))
                if code not in rules:
                    refused = refused or _refusal(called, attribute, _WHAT[code])
        persons, wrong = self._persons(counts.get(PERSON, {}))
        for problem in wrong:
            refused = (
                refused or f"{called}, column {quoted(str(problem.column))}: {problem.what}; {_TO_DO[problem.what]}"
            )
        return Counted(rows, (*wrong, *problems), persons, refused)

    def _persons(self, counts: Mapping[int, int]) -> tuple[PersonsFound | None, list[Problem]]:
        key, bound = self._dataset.person_key, self._dataset.rows_per_person
        many = MORE if bound else TWICE
        found = [Problem(key, many, counts.get(_TOO_MANY, 0)), Problem(key, UNNAMED, counts.get(_NO_KEY, 0))]
        wrong = [problem for problem in found if problem.count]
        if key is None or wrong:
            return None, wrong
        return PersonsFound(counts.get(_FIRST, 0), bound or 1, sum(counts.values())), []

    def _person(self) -> dict[str, Any]:
        """For each row of a person: whether it is the first, a further one, or one too many."""
        if self._dataset.person_key is None:
            return {}
        key, most = self._rows[self._dataset.person_key], self._dataset.rows_per_person or 1
        absent = key.isnull() | (key == "") if key.type().is_string() else key.isnull()
        before = ibis.row_number().over(ibis.window(group_by=key, order_by=key))
        found = ibis.cases((absent, _NO_KEY), (before >= most, _TOO_MANY), (before > 0, _FURTHER), else_=_FIRST)
        return {PERSON: found.cast("int32")}

    def _fetched(self) -> dict[str, Fetched]:
        """The values of columns that no comparison can code, each once, by their codes."""
        wanted = [
            (attribute.name, f"v{place}", coder)
            for place, (attribute, coder) in enumerate(zip(self._schema.attributes, self._coders, strict=True))
            if coder.needs_values
        ]
        if not wanted:
            return {}
        rows = self._rows.select(**{column: self._rows[name] for name, column, _ in wanted})
        lines = self._engine.distinct(rows, MOST_VALUES + 1)
        values = {name: [v for v in lines[column].to_pylist() if v is not None] for name, column, _ in wanted}
        if len(lines) > MOST_VALUES:
            largest = max(values, key=lambda name: len(values[name]))
            raise DataError(
                f"{self._dataset.engine_shown}, column {quoted(largest)}: it holds too many different values of type "
                f"{self._types[largest]} to be coded; cast it in the query, to a number, a date or a timestamp"
            )
        return {name: by_code(coder, values[name]) for name, _, coder in wanted}

    def _check_header(self, header: Sequence[str]) -> None:
        called = self._dataset.engine_shown
        wanted = [*self._schema.names, *filter(None, [self._dataset.person_key])]
        if absent := [name for name in wanted if name not in header]:
            listed = ", ".join(map(quoted, dict.fromkeys(absent)))
            raise DataError(f"{called}: the query has no column {listed}; add it or correct its name")
        if (twice := first_duplicate([name for name in header if name in wanted])) is not None:
            raise DataError(f"{called}: the query names {quoted(twice)} twice; keep one of the columns")


def _packed(coded: Relation, columns: Sequence[str]) -> Any:
    """The classes of several columns as the digits of one number: 0 for every code of the schema."""
    wrong = [coded[name] > 0 if name == PERSON else coded[name] < 0 for name in columns]
    classes = [coded[name] if name == PERSON else -ibis.least(coded[name], 0) for name in columns]
    digits = reduce(add, (one * _CLASSES**place for place, one in enumerate(classes)))
    return ibis.or_(*wrong).ifelse(digits, 0).cast("int64")  # of most rows, nothing but signs is looked at


def by_code(coder: ColumnCoder, values: Sequence[object]) -> Fetched:
    """Group values by the codes that they have here."""
    found: dict[int, list[object]] = {}
    for value in values:
        found.setdefault(coder.code_of(value), []).append(value)
    return found


def _refusal(called: str, attribute: AttributeBase, what: str) -> str:
    return (
        f"{called}, column {quoted(attribute.name)}: {what}; correct the table or the schema, or set out_of_range for "
        "this column"
    )
