"""Division of rows among parties in an experiment: at random, by a column, by an attribute's values, or unequally.

It does not know how rows are read or used.
"""

import math
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
from protocol.model.row_order import random_order
from protocol.plan.plan import LONGEST_NAME
from protocol.tables.schema import Schema

_DEFAULT_PARTIES = 3
_COMBINATIONS = (["random"], ["file"], ["sorted"], ["dirichlet"], ["largest"], ["sorted", "largest"])


@dataclass(frozen=True)
class Partition:
    """The party of each row, and the parties' names."""

    names: tuple[str, ...]
    owner: NDArray[Any]


@dataclass(frozen=True)
class Division:
    """A way to divide rows among parties."""

    kind: str
    argument: str = ""
    largest: str = ""  # the share of the rows at the first party; equal parts for all if empty

    @classmethod
    def parse(cls, text: str) -> "Division":
        if text.startswith("file:"):  # a column's name may hold anything
            found = [("file", text.removeprefix("file:"))]
        else:
            found = [(kind, argument) for kind, _, argument in (part.partition(":") for part in text.split(","))]
        kinds = [kind for kind, _ in found]
        if kinds not in _COMBINATIONS or any((kind == "random") == bool(argument) for kind, argument in found):
            raise _unknown(text)
        told = dict(found)
        largest = told.pop("largest", "")
        kind, argument = next(iter(told.items()), ("random", ""))
        return cls(kind, argument, largest)

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
        order = random_order(rows, stream)
        if self.kind == "dirichlet":
            name, _, beta = self.argument.rpartition(":")
            return _by_values(_attribute(schema, codes, name), order, count, beta, stream)
        if self.kind == "sorted":
            order = order[np.argsort(_attribute(schema, codes, self.argument)[order], kind="stable")]
        if self.largest:
            return _in_shares(order, _largest_first(rows, count, self.largest), count)
        dealt = np.arange(rows) % count if self.kind == "random" else np.arange(rows) * count // rows
        return _in_shares(order, dealt, count)


def _unknown(text: str) -> PlanError:
    return PlanError(f"--partition is {text!r}; expected {WAYS}")


def _in_shares(order: NDArray[np.intp], owner_in_order: NDArray[Any], count: int) -> Partition:
    owner = np.empty(len(order), dtype=np.min_scalar_type(count - 1))
    owner[order] = owner_in_order
    return Partition(tuple(f"party-{k + 1}" for k in range(count)), owner)


def _attribute(schema: Schema, codes: Sequence[NDArray[Any]], name: str) -> NDArray[Any]:
    if name not in schema.names:
        raise PlanError(f"--partition divides by {name!r}, which is not an attribute of the schema")
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
    rest = 1 + np.arange(rows - first) * (count - 1) // (rows - first)
    return np.concatenate([np.zeros(first, dtype=np.intp), rest])


def _by_values(values: NDArray[Any], order: NDArray[np.intp], count: int, beta: str, stream: Stream) -> Partition:
    """Divide each value's rows in shares of its own, drawn from a Dirichlet distribution with this beta.

    A party that no row fell to gets one of the largest party's.
    """
    try:
        concentration = float(exact(beta))
    except ValueError as error:
        raise PlanError(f"--partition dirichlet: {error}") from None
    if not 0.01 <= concentration <= 100:
        raise PlanError(
            f"--partition dirichlet has beta {beta}: expected 0.01 (parties differ) to 100 (they are alike)"
        )
    owner = np.empty(len(values), dtype=np.intp)
    for value in np.unique(values):
        rows = order[values[order] == value]
        shares = np.array([_gamma(concentration, stream) for _ in range(count)])
        cuts = np.cumsum(shares / max(shares.sum(), np.finfo(float).tiny)) * len(rows)
        owner[rows] = np.minimum(np.searchsorted(cuts, np.arange(len(rows)), side="right"), count - 1)
    for party in set(range(count)) - set(owner.tolist()):
        owner[np.flatnonzero(owner == np.bincount(owner, minlength=count).argmax())[0]] = party
    return Partition(tuple(f"party-{k + 1}" for k in range(count)), owner)


def _gamma(shape: float, stream: Stream) -> float:
    """Draw a gamma variable by the method of Marsaglia and Tsang (2000)."""
    if shape < 1:
        return _gamma(shape + 1, stream) * float(_uniform(stream) ** (1 / shape))
    least = shape - 1 / 3
    while True:
        normal = math.sqrt(-2 * math.log(_uniform(stream))) * math.cos(2 * math.pi * _uniform(stream))
        cube = (1 + normal / math.sqrt(9 * least)) ** 3
        if cube > 0 and math.log(_uniform(stream)) < normal**2 / 2 + least * (1 - cube + math.log(cube)):
            return least * cube


def _uniform(stream: Stream) -> float:
    """Draw a number above 0 and below 1."""
    return (stream.bits(52) + 0.5) / 2**52


def _by_column(owners: Sequence[str], parties: int | None) -> Partition:
    names, owner = np.unique(np.array(owners, dtype=str), return_inverse=True)
    if parties is not None and parties != len(names):
        raise PlanError(f"--parties says {parties}, the column that divides the rows has {len(names)} values")
    if max(map(len, names), default=0) > LONGEST_NAME:
        raise DataError(f"the column that divides the rows names a party with more than {LONGEST_NAME} characters")
    return Partition(tuple(str(name) or "(empty)" for name in names), owner)
