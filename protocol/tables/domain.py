"""Variables: what tables are counted over, after the schema's attributes have been encoded.

It does not know attributes' labels (`protocol.tables.schema`) or how they become variables
(`protocol.tables.encoding`).

Base variables come first, one column of codes each. A generalised variable (hierarchical encoding) has
no column of its own: its code follows from its base variable's code through `groups`.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

Codes = NDArray[Any]  # of rows: unsigned integers, as small as the largest code allows
Variables = tuple[int, ...]  # indices into Domain.variables
Merged = tuple[int, tuple[int, ...]]  # a base variable, and for every code of it the code of the merged category


@dataclass(frozen=True)
class Variable:
    name: str
    size: int
    base: int  # index of the variable that it generalises; its own index if it generalises none
    groups: tuple[int, ...] | None = None  # code here for every code of the base variable


@dataclass(frozen=True)
class Domain:
    variables: tuple[Variable, ...]

    @classmethod
    def of_sizes(cls, sizes: Sequence[int]) -> "Domain":
        return cls(tuple(Variable(f"v{i}", size, i) for i, size in enumerate(sizes)))

    def with_merged(self, merged: Sequence[Merged]) -> "Domain":
        """This domain and, behind its variables, those that generalise one by merging categories of it."""
        coarse = (
            Variable(f"{self.variables[base].name} (merged)", max(groups) + 1, base, groups) for base, groups in merged
        )
        return Domain((*self.variables, *coarse)) if merged else self

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
        """For every base variable: itself, then its generalisations from fine to coarse."""
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
        """By base variable, of its coarsest generalisation: what tables of several variables count."""
        return self.shape(self.coarsest(range(self.count)))

    def cells(self, variables: Iterable[int]) -> int:
        return math.prod(self.sizes[v] for v in variables)

    def shape(self, variables: Iterable[int]) -> tuple[int, ...]:
        return tuple(self.sizes[v] for v in variables)

    def names(self, variables: Iterable[int]) -> list[str]:
        return [self.variables[v].name for v in variables]
