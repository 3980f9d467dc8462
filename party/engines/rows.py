"""Tables over rows that lie in an engine, as grouping sets over their codes (`protocol.tables.any_rows`).

It does not know how codes come about (`party.engines.table`), or noise.

Cost: one scan counts at least AT_ONCE tables, joined to a few groups. A table that was counted is kept, as long as
there is room.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from hashlib import sha256
from itertools import accumulate, islice
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from party.engines.coding import steps
from party.engines.connection import Engine, kind_of
from party.engines.table import engine_of, names
from party.errors import PolicyRefusal
from party.home.settings import Dataset
from protocol.tables.any_rows import AT_ONCE, AnyRows
from protocol.tables.domain import Codes, Domain, FoundEdges, Variables, bins_of
from protocol.tables.encoding import Encoding
from protocol.tables.schema import Schema

OPEN = 512  # tables among which a group looks for more that fit
MOST_JOINED = 1 << 14  # cells of a group of several tables
ROWS_OF_A_CELL = 256  # in such a group on average, at least: what comes back is far smaller than the rows
MOST_KEPT = 1 << 24  # cells of all tables that are kept, of 8 bytes each

Table = NDArray[np.int64]


@dataclass(frozen=True)
class Known:
    """A variable as the engine sees it: an attribute, and the variable's code for each code of the attribute."""

    attribute: int
    codes: Codes = field(compare=False, repr=False)
    size: int
    digest: bytes  # of the codes

    @classmethod
    def of(cls, attribute: int, codes: Codes, size: int) -> "Known":
        plain = codes.astype(np.int32)
        return cls(attribute, plain, size, sha256(plain.tobytes()).digest())


Key = tuple[Known, ...]  # a table, with its variables in one order, whatever the order in which it is asked for


@dataclass(frozen=True)
class Frozen:
    """A table of codes in an engine, as it was when its run was joined."""

    dataset: Dataset = field(repr=False)
    schema: Schema = field(repr=False)
    name: str
    rows: int


class Store:
    """Tables that were counted over one frozen table, with the scans and bytes that counting took."""

    def __init__(self, frozen: Frozen) -> None:
        self.frozen, self.scans, self.bytes = frozen, 0, 0
        self._kept: dict[Key, Table] = {}
        self._room = MOST_KEPT

    def tables(self, keys: Sequence[Key]) -> dict[Key, Table]:
        """Count what is not kept, by as few statements as possible."""
        missing = [key for key in dict.fromkeys(keys) if key not in self._kept]
        counted = dict(self._counted(missing)) if missing else {}
        for key, table in counted.items():
            if table.size <= self._room:
                self._room -= table.size
                self._kept[key] = table
        return {key: self._kept[key] if key in self._kept else counted[key] for key in keys}

    def expect(self, keys: Iterable[Key]) -> None:
        """Count tables before they are asked for one by one, as far as there is room for them."""
        wanted, room = [], self._room
        for key in dict.fromkeys(keys):
            cells = int(np.prod([known.size for known in key], dtype=object))
            if key not in self._kept and cells <= room:
                room -= cells
                wanted.append(key)
        self.tables(wanted)

    def _counted(self, keys: Sequence[Key]) -> Iterator[tuple[Key, Table]]:
        frozen = self.frozen
        with engine_of(frozen.dataset) as engine:
            if not engine.holds(frozen.name):
                raise _damaged("is gone")
            for groups in statements(frozen, keys):
                yield from _counted(frozen, groups, engine)
            self.scans += engine.scans
            self.bytes += engine.bytes


class EngineRows(AnyRows):
    """Rows that a run counts in an engine. They are private data there; only tables come here."""

    def __init__(self, domain: Domain, variables: Sequence[Known], store: Store) -> None:
        super().__init__(domain, store.frozen.rows)
        self.engine = kind_of(store.frozen.dataset.source)[1]
        self._base, self._store = variables, store
        self._known = [
            variables[one.base] if one.groups is None else _regrouped(variables[one.base], one.groups, one.size)
            for one in domain.variables
        ]

    @classmethod
    def of(cls, frozen: Frozen, encoding: Encoding) -> "EngineRows":
        every = [np.arange(size).astype(np.uint16) for size in encoding.sizes]
        columns = encoding.encode(every)
        attributes = [place for place, block in enumerate(encoding.blocks) for _ in block.variables]
        sizes = encoding.domain.sizes
        known = [Known.of(*found) for found in zip(attributes, columns, sizes[: len(columns)], strict=True)]
        return cls(encoding.domain, known, Store(frozen))

    @property
    def scans(self) -> int:
        return self._store.scans

    @property
    def bytes(self) -> int:
        return self._store.bytes

    def over(self, domain: Domain) -> "EngineRows":
        return self if domain is self.domain else EngineRows(domain, self._base, self._store)

    def divided(self, domain: Domain, edges: FoundEdges) -> "EngineRows":
        variables = list(self._base)
        for variable, starts in edges:
            size = domain.sizes[variable]
            variables[variable] = _regrouped(variables[variable], bins_of(starts, variables[variable].size, size), size)
        return EngineRows(domain, variables, self._store)

    def tables(self, several: Sequence[Variables]) -> list[Table]:
        placed = [self._key(variables) for variables in several]
        counted = self._store.tables([key for key, _ in placed if key])
        return [counted[key].transpose(order) if key else np.array(self.count, dtype=np.int64) for key, order in placed]

    def expect(self, several: Sequence[Variables]) -> None:
        self._store.expect(key for key, _ in map(self._key, several) if key)

    def _key(self, variables: Variables) -> tuple[Key, list[int]]:
        """The table of these variables, and the place in it of each axis that was asked for."""
        known = [self._known[variable] for variable in variables]
        order = sorted(range(len(known)), key=lambda place: (known[place].attribute, known[place].digest))
        return tuple(known[place] for place in order), [order.index(place) for place in range(len(known))]


def _regrouped(known: Known, groups: Sequence[int] | Codes, size: int) -> Known:
    return Known.of(known.attribute, np.asarray(groups)[known.codes], size)


def _damaged(what: str) -> PolicyRefusal:
    return PolicyRefusal(f"this party cannot go on: the table of codes that its engine kept of the run {what}")


# One statement


@dataclass(frozen=True)
class _Axis:
    """All of a table's variables that follow from one attribute, as one variable."""

    attribute: int
    codes: tuple[int, ...]  # of the axis, for each code of the attribute
    places: NDArray[np.intp] = field(compare=False)  # what each code of the axis adds to the place in the table


@dataclass(frozen=True)
class _Group:
    """Tables that are counted as one larger table, because that costs an engine less than each by itself."""

    axes: Sequence[_Axis]
    tables: Mapping[Key, Sequence[_Axis]]

    @property
    def shape(self) -> list[int]:
        return [len(axis.places) for axis in self.axes]

    def place(self, codes: Mapping[_Axis, Any]) -> Any:
        """The place of a row in the joined table, from its code on every axis."""
        place = codes[self.axes[0]]
        for axis, size in zip(self.axes[1:], self.shape[1:], strict=True):
            place = place * size + codes[axis]
        return place.cast("int64")  # Overflow safety: no table that fits into memory has 2^31 cells

    def counted(self, joined: Table) -> Iterator[tuple[Key, Table]]:
        for key, axes in self.tables.items():
            kept = sorted((self.axes.index(axis), axis.places) for axis in axes)
            others = tuple(place for place in range(len(self.axes)) if place not in dict(kept))
            table = np.zeros([known.size for known in key], dtype=np.int64)
            table.reshape(-1)[reduce(np.add.outer, dict(kept).values())] = joined.sum(axis=others)
            yield key, table


def statements(frozen: Frozen, keys: Sequence[Key]) -> Iterator[list[_Group]]:
    """Groups that one scan counts: few, whose cells stay in an engine's cache, but at least AT_ONCE tables."""
    statement: list[_Group] = []
    for group in _grouped(keys, min(MOST_JOINED, frozen.rows // ROWS_OF_A_CELL)):
        statement.append(group)
        if sum(len(one.tables) for one in statement) >= AT_ONCE:
            yield statement
            statement = []
    if statement:
        yield statement


def _grouped(keys: Sequence[Key], most: int) -> Iterator[_Group]:
    """Join tables to groups of at most `most` cells. A group grows by the axes that complete most of its tables."""
    axes = {key: [*_axes(key)] for key in keys}
    every = dict.fromkeys(axis for own in axes.values() for axis in own)
    numbers = {axis: number for number, axis in enumerate(every)}
    sizes = [len(axis.places) for axis in every]

    def cells(held: Iterable[int]) -> int:
        return prod(sizes[axis] for axis in held)

    left = {key: frozenset(numbers[axis] for axis in own) for key, own in axes.items()}
    left = dict(sorted(left.items(), key=lambda item: -cells(item[1])))
    while left:
        held = next(iter(left.values()))  # the largest: others are easier to place
        while True:
            lacking = Counter(own - held for own in islice(left.values(), OPEN))
            fitting = [more for more in lacking if more and cells(held | more) <= most]
            if not fitting:
                break
            best = max(fitting, key=lambda more: (lacking[more], -cells(more)))
            held = held | best
        whole = [key for key, own in left.items() if own <= held]
        yield _Group([axis for axis in every if numbers[axis] in held], {key: axes[key] for key in whole})
        for key in whole:
            del left[key]


def _counted(frozen: Frozen, groups: Sequence[_Group], engine: Engine) -> Iterator[tuple[Key, Table]]:
    """Count groups by one scan: the places of their joined tables lie one after the other."""
    own = names(frozen.schema)
    whole = engine.table(frozen.name, dict.fromkeys(own, "int32"))
    axes = {
        axis: f"k{number}" for number, axis in enumerate(dict.fromkeys(axis for one in groups for axis in one.axes))
    }
    rows = engine.fenced(
        whole.select(**{name: _expression(whole[own[axis.attribute]], axis.codes) for axis, name in axes.items()})
    )
    codes = {axis: rows[name] for axis, name in axes.items()}
    ends = [*accumulate(prod(group.shape) for group in groups)]
    starts = [0, *ends[:-1]]
    places = {f"g{start}": group.place(codes) + start for group, start in zip(groups, starts, strict=True)}
    lines = engine.counted(rows.select(**places))
    found, cells = lines["place"].to_numpy(), np.zeros(ends[-1], dtype=np.int64)
    if found.size and not 0 <= int(found.min()) <= int(found.max()) < cells.size:
        raise _damaged("holds a code that its schema does not have")
    np.add.at(cells, found, lines["n"].to_numpy())
    for group, start, end in zip(groups, starts, ends, strict=True):
        joined = cells[start:end].reshape(group.shape)
        if int(joined.sum()) != frozen.rows:
            raise _damaged("no longer has its rows")
        yield from group.counted(joined)


def _axes(key: Key) -> Iterator[_Axis]:
    shape = [known.size for known in key]
    strides = [int(np.prod(shape[place + 1 :], dtype=np.int64)) for place in range(len(shape))]
    for attribute in dict.fromkeys(known.attribute for known in key):
        own = [place for place, known in enumerate(key) if known.attribute == attribute]
        added = sum(key[place].codes.astype(np.int64) * strides[place] for place in own)
        places, codes = np.unique(added, return_inverse=True)
        yield _Axis(attribute, tuple(codes.tolist()), places.astype(np.intp))


def _expression(column: Any, codes: tuple[int, ...]) -> Any:
    if codes == tuple(range(len(codes))):
        return column
    starts = [place for place in range(1, len(codes)) if codes[place] != codes[place - 1]]
    return steps(column, starts, [codes[0], *(codes[start] for start in starts)]).cast("int32")
