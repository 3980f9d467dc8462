"""One party's coded rows, and exact tables over these rows: the only module that reads rows.

It does not know noise. The tables that it returns are confidential until a mechanism has been applied to them.

Cost: a table over coded columns takes about n (variables + 1) simple operations. Consecutive tables share the codes of
the variables with which both begin. Rows are read in pieces that stay in the cache, so that 10^8 rows need no memory
beside their columns (1 byte per code up to 256 codes); with so many rows a table takes about 0.2 seconds. Binary
domains are also kept bit-packed (`protocol.tables.bit_counting`). No operation depends on the values in the rows.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from protocol.errors import DataError
from protocol.tables.any_rows import AnyRows
from protocol.tables.bit_counting import BitColumns
from protocol.tables.domain import Codes, Domain, FoundEdges, Variables, bins_of

_ROWS_AT_ONCE = 1 << 16
COUNTED_CELLS = 1 << 21  # of tables that are kept, 8 bytes each


class Rows(AnyRows):
    """Coded columns of the base variables. The rows are private data and are never printed."""

    def __init__(self, domain: Domain, columns: Sequence[Codes]) -> None:
        _check(domain, columns)
        super().__init__(domain, len(columns[0]))
        self._columns = tuple(columns)
        binary = domain.is_binary and domain.count == len(domain.variables)
        self._bits = BitColumns(columns, self.count) if binary else None
        self._groups = {
            index: np.array(variable.groups, dtype=_dtype(variable.size))
            for index, variable in enumerate(domain.variables)
            if variable.groups is not None
        }
        self._divided: tuple[FoundEdges, Rows] | None = None
        self._wider: Rows | None = None
        self._counted: dict[Variables, NDArray[np.int64]] = {}
        self._counted_cells = 0

    def over(self, domain: Domain) -> "Rows":
        """These rows over a domain with more generalised variables."""
        if domain is self.domain:
            return self
        if self._wider is None or self._wider.domain != domain:
            self._wider = Rows(domain, self._columns)
        return self._wider

    def divided(self, domain: Domain, edges: FoundEdges) -> "Rows":
        """These rows over a domain in which some variables' codes are bins of neighbouring codes of these rows."""
        if self._divided is None or self._divided[0] != edges:
            bins = {v: bins_of(starts, self.domain.sizes[v], domain.sizes[v]) for v, starts in edges}
            columns = [bins[v][codes] if v in bins else codes for v, codes in enumerate(self._columns)]
            self._divided = edges, Rows(domain, columns)
        return self._divided[1]

    def tables(self, several: Sequence[Variables]) -> list[NDArray[np.int64]]:
        """Count one table for each entry, faster if neighbouring entries begin with the same variables."""
        tables: dict[int, NDArray[np.int64]] = {}
        for size in {len(variables) for variables in several}:
            places = [place for place, variables in enumerate(several) if len(variables) == size]
            chosen = [several[place] for place in places]
            counted = self.bit_tables(np.array(chosen)) if self.has_bits(size) else self._once_counted(chosen)
            tables.update(zip(places, counted, strict=True))
        return [tables[place] for place in range(len(several))]

    def flat_tables(self, several: Sequence[Variables]) -> NDArray[np.int64]:
        if not self.has_bits(len(several[0])):
            return super().flat_tables(several)
        return self.bit_tables(np.array(several)).reshape(len(several), -1)

    def has_bits(self, size: int) -> bool:
        """Whether `bit_tables` can count sets of `size` variables."""
        return size > 0 and self._bits is not None and self._bits.handles(size)

    def bit_tables(self, sets: NDArray[np.intp]) -> NDArray[np.int64]:
        """Count the table of every row of `sets`, for binary variables only: one array of shape (m, 2, ..., 2)."""
        assert self._bits is not None
        return self._bits.tables(sets)

    def _once_counted(self, several: Sequence[Variables]) -> list[NDArray[np.int64]]:
        """Count each table once, even if later steps ask for it again or with its variables in another order.

        Privacy: that a table is at hand tells what was asked for before, and nothing of the rows.
        """
        rising = [tuple(sorted(variables)) for variables in several]
        new = sorted({variables for variables in rising if variables not in self._counted})
        fresh = dict(zip(new, self._coded_tables(new), strict=True))
        for variables, table in fresh.items():
            if self._counted_cells + table.size <= COUNTED_CELLS:
                self._counted_cells += table.size
                self._counted[variables] = table
        tables = (fresh[own] if own in fresh else self._counted[own] for own in rising)
        return [_transposed(table, own, asked) for table, own, asked in zip(tables, rising, several, strict=True)]

    def _coded_tables(self, several: Sequence[Variables]) -> list[NDArray[np.int64]]:
        cells = [self.domain.cells(variables) for variables in several]
        flat = [np.zeros(size, dtype=np.int64) for size in cells]
        step = max([_ROWS_AT_ONCE, *cells])
        for start in range(0, self.count, step):
            piece = _Piece(self, start, min(start + step, self.count))
            for counts, variables in zip(flat, several, strict=True):
                counts += np.bincount(piece.codes(variables), minlength=counts.size)
        return [counts.reshape(self.domain.shape(variables)) for counts, variables in zip(flat, several, strict=True)]

    def _codes(self, variable: int, start: int, stop: int) -> Codes:
        codes = self._columns[self.domain.base(variable)][start:stop]
        groups = self._groups.get(variable)
        return codes if groups is None else groups[codes]


class _Piece:
    """A piece of the rows, with the combined codes of the last table's leading variables."""

    def __init__(self, rows: Rows, start: int, stop: int) -> None:
        self._rows, self._start, self._stop = rows, start, stop
        self._variables: list[int] = []
        self._combined: list[Codes] = [np.zeros(stop - start, dtype=np.uint8)]
        self._cells = [1]

    def codes(self, variables: Variables) -> Codes:
        """The combined code of these variables in every row."""
        shared = 0
        for own, asked in zip(self._variables, variables, strict=False):
            if own != asked:
                break
            shared += 1
        del self._variables[shared:], self._combined[shared + 1 :], self._cells[shared + 1 :]
        for variable in variables[shared:]:
            self._append(variable)
        return self._combined[-1]

    def _append(self, variable: int) -> None:
        size = self._rows.domain.sizes[variable]
        cells = self._cells[-1] * size
        # Overflow safety: the largest code is cells - 1, which the chosen type can hold.
        combined: Codes = self._combined[-1].astype(_dtype(cells))
        if size < cells:  # otherwise all codes so far are 0, and `size` might not fit into the type
            combined *= combined.dtype.type(size)
        combined += self._rows._codes(variable, self._start, self._stop)
        self._variables.append(variable)
        self._combined.append(combined)
        self._cells.append(cells)


def _transposed(table: NDArray[np.int64], own: Variables, asked: Variables) -> NDArray[np.int64]:
    """A copy of a table over `own` variables, with its axes in the order in which they are asked for."""
    return np.array(table.transpose([own.index(variable) for variable in asked]), order="C")


def _dtype(size: int) -> type[np.uint8] | type[np.uint16] | type[np.uint32] | type[np.int64]:
    """The smallest type that holds codes below `size`."""
    if size <= 1 << 8:
        return np.uint8
    if size <= 1 << 16:
        return np.uint16
    return np.uint32 if size <= 1 << 32 else np.int64


def _check(domain: Domain, columns: Sequence[Codes]) -> None:
    if len(columns) != domain.count or not columns:
        raise DataError(f"{len(columns)} columns came for {domain.count} variables; give one column for each variable")
    if len({len(column) for column in columns}) > 1:
        raise DataError("the columns differ in length; give every row a code in every column")
    for index, column in enumerate(columns):
        if column.size and int(column.max()) >= domain.sizes[index]:
            name = domain.variables[index].name
            raise DataError(f"column {name} has a code outside 0 to {domain.sizes[index] - 1}; code it by its schema")
