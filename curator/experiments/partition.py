"""Division of rows among parties in an experiment: at random, by a column, sorted by an attribute, or unequally.

It does not know how rows are read or used.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crypto.randomness import Stream
from curator.experiments.division_options import WAYS
from protocol.errors import DataError, PlanError
from protocol.exact import exact
from protocol.plan.plan import LONGEST_NAME
from protocol.tables.schema import Schema

_DEFAULT_PARTIES = 3


@dataclass(frozen=True)
class Partition:
    """The party of each row, and the parties' names."""

    names: tuple[str, ...]
    owner: NDArray[np.intp]


@dataclass(frozen=True)
class Division:
    """A way to divide rows among parties."""

    kind: str
    argument: str

    @classmethod
    def parse(cls, text: str) -> "Division":
        kind, _, argument = text.partition(":")
        if kind not in ("random", "file", "sorted", "largest") or (kind == "random") == (":" in text):
            raise _unknown(text)
        if kind != "random" and not argument:
            raise _unknown(text)
        return cls(kind, argument)

    @property
    def column(self) -> str:
        """The column of the file that must be read in addition to the schema's columns, or an empty text."""
        return self.argument if self.kind == "file" else ""

    def apply(
        self, schema: Schema, codes: Sequence[NDArray[Any]], owners: Sequence[str], parties: int | None, stream: Stream
    ) -> Partition:
        if self.kind == "file":
            return _by_column(owners, parties)
        count = _DEFAULT_PARTIES if parties is None else parties
        rows = len(codes[0])
        if not 1 <= count <= rows:
            raise PlanError(f"{rows} rows cannot be divided among {count} parties: everybody needs at least one")
        order = np.array(stream.permutation(rows), dtype=np.intp)
        if self.kind == "random":
            return _in_shares(order, np.arange(rows) % count, count)
        if self.kind == "sorted":
            order = order[np.argsort(_attribute(schema, codes, self.argument)[order], kind="stable")]
            return _in_shares(order, np.arange(rows) * count // rows, count)
        return _in_shares(order, _largest_first(rows, count, self.argument), count)


def _unknown(text: str) -> PlanError:
    return PlanError(f"--partition is {text!r}; expected {WAYS}")


def _in_shares(order: NDArray[np.intp], owner_in_order: NDArray[Any], count: int) -> Partition:
    owner = np.empty(len(order), dtype=np.intp)
    owner[order] = owner_in_order
    return Partition(tuple(f"party-{k + 1}" for k in range(count)), owner)


def _attribute(schema: Schema, codes: Sequence[NDArray[Any]], name: str) -> NDArray[Any]:
    if name not in schema.names:
        raise PlanError(f"--partition sorts by {name!r}, which is not an attribute of the schema")
    return codes[schema.names.index(name)]


def _largest_first(rows: int, count: int, text: str) -> NDArray[np.intp]:
    """Give the first party this share of the rows, and the others equal parts of the rest."""
    try:
        share = exact(text)
    except ValueError as error:
        raise PlanError(f"--partition largest: {error}") from None
    first = int(rows * share)
    if not Fraction(0) < share < 1 or count < 2 or not first or rows - first < count - 1:
        raise PlanError(f"--partition largest:{text} leaves a party without rows: everybody needs at least one")
    rest = 1 + np.arange(rows - first) % (count - 1)
    return np.concatenate([np.zeros(first, dtype=np.intp), rest])


def _by_column(owners: Sequence[str], parties: int | None) -> Partition:
    names, owner = np.unique(np.array(owners, dtype=str), return_inverse=True)
    if parties is not None and parties != len(names):
        raise PlanError(f"--parties says {parties}, the column that divides the rows has {len(names)} values")
    if max(map(len, names), default=0) > LONGEST_NAME:
        raise DataError(f"the column that divides the rows names a party with more than {LONGEST_NAME} characters")
    return Partition(tuple(str(name) or "(empty)" for name in names), owner)
