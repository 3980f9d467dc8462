"""Made-up tables of many shapes, on which predictions of the error are measured.

It does not know plans. The same name and seed always make the same table.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curator.experiments.coded_tables import DividedTable
from protocol.tables.schema import Schema

Columns = list[NDArray[Any]]
Random = np.random.Generator


@dataclass(frozen=True)
class Shape:
    """The sizes of a table's attributes, how unevenly rows fall into categories, and how attributes depend."""

    sizes: tuple[int, ...]
    fall: float  # the k-th commonest category has 1 / k^fall of the rows of the commonest
    strength: float  # 0 to 1: how often a value follows from others
    structure: str


def made_table(family: str, seed: int) -> DividedTable:
    """Return a table of a shape that the seed chooses. The families have different structures."""
    draw = np.random.default_rng([seed, len(family), *family.encode()])
    shape = _shape(draw, FAMILIES[family])
    rows = int(round(10 ** draw.uniform(3, 4.6), -2))
    columns = _STRUCTURES[shape.structure](draw, shape, rows)
    coded = [column.astype(np.min_scalar_type(size - 1)) for column, size in zip(columns, shape.sizes, strict=True)]
    return DividedTable(_schema(shape.sizes), coded, [])


def wide_table(count: int, most: int, rows: int) -> DividedTable:
    """Return a table of very many attributes of 2 to `most` categories, which depend on eight hidden numbers."""
    draw = np.random.default_rng([count, most])
    sizes, hidden = tuple(int(size) for size in draw.integers(2, most + 1, count)), draw.normal(size=(rows, 8))
    columns = []
    for size in sizes:
        value = hidden @ (draw.normal(size=8) * (draw.random(8) < 0.3)) + draw.normal(size=rows)
        edges = np.sort(draw.normal(size=size - 1)) * value.std()
        columns.append(np.searchsorted(edges, value).astype(np.min_scalar_type(size - 1)))
    return DividedTable(_schema(sizes), columns, [])


def two_kinds(count: int, strength: float, rows: int) -> DividedTable:
    """Return a table of very many attributes of two values: each is likelier by `strength` in one half of the rows."""
    draw = np.random.default_rng([count, round(1000 * strength)])
    kind, base = draw.integers(0, 2, rows), draw.uniform(0.05, 0.95, count) * (1 - strength)
    columns: Columns = [(draw.random(rows) < one + strength * kind).astype(np.uint8) for one in base]
    return DividedTable(_schema((2,) * count), columns, [])


FAMILIES: Mapping[str, tuple[str, ...]] = {
    "tuning": ("none", "hidden"),
    "other": ("chain", "numbers", "star", "none"),
}
_SIZES: tuple[tuple[int, int, tuple[int, ...]], ...] = (  # number of attributes, fewest and most, and their sizes
    (6, 16, (2,)),
    (5, 14, (2, 2, 3, 4, 5, 8)),
    (5, 12, (2, 4, 7, 12, 16, 24, 40)),
    (4, 9, (2, 3, 5, 12, 100, 300)),
    (4, 8, (10, 20, 40, 80)),
)


def _shape(draw: Random, structures: tuple[str, ...]) -> Shape:
    fewest, most, sizes = _SIZES[draw.integers(len(_SIZES))]
    count = int(draw.integers(fewest, most + 1))
    return Shape(
        tuple(int(size) for size in draw.choice(sizes, count)),
        float(draw.choice([0.3, 1, 1.5, 2.5])),
        float(draw.choice([0.1, 0.3, 0.6])),
        str(draw.choice(structures)),
    )


def _schema(sizes: tuple[int, ...]) -> Schema:
    attributes = [
        {"name": f"a{number}", "kind": "categorical", "values": [f"v{value}" for value in range(size)]}
        for number, size in enumerate(sizes)
    ]
    return Schema.parse({"title": "made up", "attributes": attributes})


def _shares(size: int, fall: float) -> NDArray[np.float64]:
    shares = np.arange(1, size + 1, dtype=np.float64) ** -fall
    return shares / shares.sum()


def _plain(draw: Random, shape: Shape, rows: int) -> Columns:
    return [draw.choice(size, rows, p=draw.permutation(_shares(size, shape.fall))) for size in shape.sizes]


def _hidden(draw: Random, shape: Shape, rows: int) -> Columns:
    """Four hidden kinds of rows, each with its own commonest categories."""
    kind, plain = draw.integers(4, size=rows), _plain(draw, shape, rows)
    for column, size in zip(plain, shape.sizes, strict=True):
        own = np.array([draw.choice(size, rows, p=draw.permutation(_shares(size, shape.fall))) for _ in range(4)])
        follows = draw.random(rows) < shape.strength
        column[follows] = own[kind, np.arange(rows)][follows]
    return plain


def _chain(draw: Random, shape: Shape, rows: int) -> Columns:
    """Every attribute follows the one before it."""
    found = _plain(draw, shape, rows)
    for former, column, size in zip(found, found[1:], shape.sizes[1:], strict=False):
        follows = draw.random(rows) < shape.strength
        column[follows] = (former * 7 % size)[follows]
    return found


def _star(draw: Random, shape: Shape, rows: int) -> Columns:
    """Half of the attributes follow the first, the others nothing."""
    found = _plain(draw, shape, rows)
    for column, size in list(zip(found, shape.sizes, strict=True))[1::2]:
        follows = draw.random(rows) < shape.strength
        column[follows] = (found[0] * 5 % size)[follows]
    return found


def _numbers(draw: Random, shape: Shape, rows: int) -> Columns:
    """Correlated normal variables in bins, of equal widths or with a long tail."""
    common = draw.normal(size=rows)
    found = []
    for size in shape.sizes:
        value = np.sqrt(shape.strength) * common * draw.choice([-1, 1])
        value = value + np.sqrt(1 - shape.strength) * draw.normal(size=rows)
        value = np.exp(value) if shape.fall >= 1.5 else value
        found.append(np.clip(((value - value.min()) / np.ptp(value) * size).astype(int), 0, size - 1))
    return found


_STRUCTURES: Mapping[str, Callable[[Random, Shape, int], Columns]] = {
    "none": _plain,
    "hidden": _hidden,
    "chain": _chain,
    "star": _star,
    "numbers": _numbers,
}
