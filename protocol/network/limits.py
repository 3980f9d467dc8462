"""How large a family may be, so that its noisy table still says something (theta-usefulness).

It does not know budgets: the plan turns them into these numbers.
"""

from dataclasses import dataclass

from protocol.tables.domain import Domain, Variables


@dataclass(frozen=True)
class Limits:
    cells: int | None = None  # largest number of cells of a family's table, the child included
    degree: int | None = None  # largest number of parents

    def admits(self, domain: Domain, child: int, parents: Variables) -> bool:
        """Whether this family may be modelled; one without parents always is."""
        if not parents:
            return True
        if self.degree is not None and len(parents) > self.degree:
            return False
        return self.cells is None or domain.cells((child, *parents)) <= self.cells
