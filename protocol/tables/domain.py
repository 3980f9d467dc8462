"""Domains: the variables over which tables are counted, after the schema's attributes have been encoded.

It does not know attributes' labels (`protocol.tables.schema`) or how they become variables
(`protocol.tables.encoding`).

Base variables come first, one column of codes each. A generalised variable (hierarchical encoding) has
no column of its own: its code follows from its base variable's code through `groups`.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[Any]  # codes of rows, in the smallest unsigned integers that hold the largest code
Variables = tuple[int, ...]  # indices into Domain.variables
# Variables whose bins were found, and the codes of their grids with which the bins begin.
FoundEdges = tuple[tuple[int, tuple[int, ...]], ...]
Merged = tuple[int, tuple[int, ...]]  # a base variable, and the code of the merged category for each of its codes


def bins_of(starts: Sequence[int], cells: int, size: int) -> Codes:
    """The bin of every code of a grid. A variable with a code more than bins has missing values, its last code."""
    found = np.searchsorted(starts, np.arange(cells), side="right") - 1
    if size > len(starts):
        found[-1] = len(starts)
    return found.astype(np.min_scalar_type(size - 1))


@dataclass(frozen=True)
class Variable:
    name: str
    size: int
    base: int  # index of the variable that this variable generalises; its own index if it generalises none
    groups: tuple[int, ...] | None = None  # this variable's code for every code of the base variable
    ordered: int = 0  # how many codes, from the first on, have an order; the missing category has no place in it


@dataclass(frozen=True)
class Domain:
    variables: tuple[Variable, ...]

    @classmethod
    def of_sizes(cls, sizes: Sequence[int]) -> "Domain":
        return cls(tuple(Variable(f"v{i}", size, i) for i, size in enumerate(sizes)))

    def with_merged(self, merged: Sequence[Merged]) -> "Domain":
        """This domain, with variables appended that generalise a base variable by merging its categories."""
        coarse = (
            Variable(f"{self.variables[base].name} (merged)", max(groups) + 1, base, groups) for base, groups in merged
        )
        return Domain((*self.variables, *coarse)) if merged else self

    def without_order(self) -> "Domain":
        """This domain, with no variable's codes in an order."""
        return Domain(tuple(replace(variable, ordered=0) for variable in self.variables))

    @cached_property
    def count(self) -> int:
        """Number of base variables."""
        return sum(v.groups is None for v in self.variables)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        return tuple(v.size for v in self.variables)

    @cached_property
    def is_binary(self) -> bool:
        return all(size == 2 for size in self.sizes)

    @cached_property
    def variants(self) -> tuple[Variables, ...]:
        """Each base variable with its generalisations, from fine to coarse; the base variable comes first."""
        found: list[list[int]] = [[] for _ in range(self.count)]
        for index, variable in enumerate(self.variables):
            found[variable.base].append(index)
        return tuple(tuple(sorted(same, key=lambda i: (-self.sizes[i], i))) for same in found)

    def base(self, variable: int) -> int:
        return self.variables[variable].base

    def coarsest(self, variables: Iterable[int]) -> Variables:
        """Each variable's coarsest generalisation."""
        return tuple(self.variants[self.base(v)][-1] for v in variables)

    @cached_property
    def coarse_sizes(self) -> tuple[int, ...]:
        """Sizes of the coarsest generalisations, by base variable; tables of several variables count these."""
        return self.shape(self.coarsest(range(self.count)))

    def cells(self, variables: Iterable[int]) -> int:
        return math.prod(self.sizes[v] for v in variables)

    def shape(self, variables: Iterable[int]) -> tuple[int, ...]:
        return tuple(self.sizes[v] for v in variables)

    def names(self, variables: Iterable[int]) -> list[str]:
        return [self.variables[v].name for v in variables]
