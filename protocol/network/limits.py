"""Limits on the size of families, so that their noisy tables remain useful (theta-usefulness).

It does not know budgets; the plan derives the limits from them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from protocol.tables.domain import Domain, Variables


@dataclass(frozen=True)
class Limits:
    cells: int | None = None  # largest number of cells of a family's table, the child included
    degree: int | None = None  # largest number of parents

    def admits(self, domain: Domain, child: int, parents: Variables) -> bool:
        """Whether this family may be modelled; a family without parents always may."""
        if not parents:
            return True
        if self.degree is not None and len(parents) > self.degree:
            return False
        return self.cells is None or domain.cells((child, *parents)) <= self.cells

    def most_parents(self, sizes: Sequence[int]) -> int:
        """An upper bound on the parents of a variable, where variables have these sizes."""
        product, fitting = 1, 0
        for size in sorted(sizes):
            product *= size
            if self.cells is not None and product > self.cells:
                break
            fitting += 1
        most = max(0, fitting - 1)
        return most if self.degree is None else min(most, self.degree)

    def largest_family(self, domain: Domain) -> int:
        """An upper bound on the cells of a family's table."""
        falling = sorted(domain.sizes[: domain.count], reverse=True)
        most = math.prod(falling[: 1 + (self.degree if self.degree is not None else len(falling))])
        return max(falling[0], min(most, self.cells if self.cells is not None else most))
