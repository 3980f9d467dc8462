"""Tables over rows that lie in an engine, as grouping sets over their codes (`protocol.tables.any_rows`).

It does not know how codes come about (`party.engines.table`), or noise.

Cost: one scan counts AT_ONCE groups of tables. A table that was counted is kept, as long as there is room.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
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

OPEN = 32  # groups to which a table may still be joined
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
            for statement in _statements(frozen, keys):
                yield from statement.counted(engine)
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
    """A column of a statement: all of a table's variables that follow from one attribute, and what its codes mean."""

    attribute: int
    codes: tuple[int, ...]  # of the column, for each code of the attribute
    places: NDArray[np.intp] = field(compare=False)  # what each code of the column adds to the place in the table


@dataclass
class _Group:
    """Tables that are counted as one larger table, because that costs an engine less than each by itself."""

    axes: dict[_Axis, None]
    cells: int
    keys: list[tuple[Key, list[_Axis]]]


def _statements(frozen: Frozen, keys: Sequence[Key]) -> Iterator["_Statement"]:
    groups = _grouped(keys, min(MOST_JOINED, frozen.rows // ROWS_OF_A_CELL))
    for start in range(0, len(groups), AT_ONCE):
        yield _Statement(frozen, groups[start : start + AT_ONCE])


def _grouped(keys: Sequence[Key], most: int) -> list[_Group]:
    """Join tables to groups of at most `most` cells. A table joins the open group whose cells grow least by it."""
    groups: list[_Group] = []
    for key in keys:
        axes = [*_axes(key)]
        grown = [(_grown(group, axes), place) for place, group in enumerate(groups[-OPEN:], max(0, len(groups) - OPEN))]
        alone = prod(len(axis.places) for axis in axes)
        fitting = [found for found in grown if found[0] <= most or found[0] == groups[found[1]].cells]
        cells, place = min(fitting, key=lambda found: found[0] - groups[found[1]].cells, default=(alone, len(groups)))
        if place == len(groups):
            groups.append(_Group({}, 0, []))
        groups[place].axes.update(dict.fromkeys(axes))
        groups[place].cells = cells
        groups[place].keys.append((key, axes))
    return groups


def _grown(group: _Group, axes: Iterable[_Axis]) -> int:
    """The cells of a group that also holds a table of these axes."""
    return group.cells * prod(len(axis.places) for axis in axes if axis not in group.axes)


class _Statement:
    """Several groups of tables that one scan counts. Each column of the statement holds codes of one attribute."""

    def __init__(self, frozen: Frozen, groups: Sequence[_Group]) -> None:
        self._frozen, self._groups = frozen, groups
        axes = dict.fromkeys(axis for group in groups for axis in group.axes)
        self._columns = {axis: f"k{number}" for number, axis in enumerate(axes)}

    def counted(self, engine: Engine) -> Iterator[tuple[Key, Table]]:
        own = names(self._frozen.schema)
        whole = engine.table(self._frozen.name, dict.fromkeys(own, "int32"))
        rows = whole.select(
            **{name: _expression(whole[own[axis.attribute]], axis.codes) for axis, name in self._columns.items()}
        )
        sets = [self._names(group.axes) for group in self._groups]
        distinct = {frozenset(one): one for one in sets}
        found = _Lines(engine.grouped(rows, [*distinct.values()], [*self._columns.values()]), [*self._columns.values()])
        for group, columns in zip(self._groups, sets, strict=True):
            codes, counts = found.of(columns)
            if int(counts.sum()) != self._frozen.rows:
                raise _damaged("no longer has its rows")
            by_axis = dict(zip(group.axes, codes, strict=True))
            for key, axes in group.keys:
                yield key, self._table(key, [(axis, by_axis[axis]) for axis in axes], counts)

    def _names(self, axes: Iterable[_Axis]) -> list[str]:
        return [self._columns[axis] for axis in axes]

    def _table(self, key: Key, columns: Sequence[tuple[_Axis, Codes]], counts: Table) -> Table:
        table = np.zeros([known.size for known in key], dtype=np.int64)
        places = np.zeros(len(counts), dtype=np.intp)
        for axis, codes in columns:
            if codes.size and not 0 <= int(codes.min()) <= int(codes.max()) < len(axis.places):
                raise _damaged("holds a code that its schema does not have")
            places += axis.places[codes]
        np.add.at(table.reshape(-1), places, counts)
        return table


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


class _Lines:
    """The lines of a statement by their set of columns: a line has values in the columns of its set, and only there."""

    def __init__(self, lines: Any, columns: Sequence[str]) -> None:
        self._columns = {name: lines[name].fill_null(0).to_numpy() for name in columns}
        self._counts = lines["n"].to_numpy()
        held = np.array([lines[name].is_valid().to_numpy() for name in columns]).reshape(len(columns), -1)
        packed = np.packbits(held, axis=0).T
        kinds, of_line = np.unique(packed, axis=0, return_inverse=True)
        order = np.argsort(of_line.reshape(-1), kind="stable")
        ends = np.cumsum(np.bincount(of_line.reshape(-1), minlength=len(kinds)))
        self._names, self._places = (
            list(columns),
            {
                kind.tobytes(): order[end - size : end]
                for kind, end, size in zip(kinds, ends, np.diff(ends, prepend=0), strict=True)
            },
        )

    def of(self, names: Sequence[str]) -> tuple[list[Codes], Table]:
        held = np.array([name in names for name in self._names])
        places = self._places.get(np.packbits(held).tobytes(), np.zeros(0, np.intp))
        return [self._columns[name][places] for name in names], self._counts[places].astype(np.int64)
