"""Selection of the pairs of released tables that one graphical model can hold, each table weighted to count once.

It does not know how a model is fitted, or whose rows were counted.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from protocol.model.junction_tree import cells, grown_cliques, maximal_cliques
from protocol.privacy.mechanisms import PrivacyDefinition
from protocol.tables.domain import Domain, Variables
from protocol.tables.marginal import Table, project_to_simplex

LARGEST_MODEL = 1 << 15  # numbers in all cliques together

Part = tuple[int, Table]  # the index of a table, and the projection of that table onto a pair


@dataclass(frozen=True, eq=False)
class ModelEvidence:
    """Tables over rising variables, the cliques of a model of these tables, and the pairs that lie in a clique."""

    tables: tuple[Table, ...]
    cliques: tuple[Variables, ...]
    pairs: tuple[Part, ...]

    def parts(self, domain: Domain) -> Iterator[tuple[Table, int]]:
        """Pairs and one-way tables, each with the number of times that it is to be counted.

        Each table's one-way information counts exactly once: every pair repeats it, so the repeats are subtracted.
        """
        yield from ((table, 1) for _, table in self.pairs)
        for place, table in enumerate(self.tables):
            own = [pair.variables for origin, pair in self.pairs if origin == place]
            for variable in table.variables:
                times = 1 - sum(variable in pair for pair in own)
                if times:
                    yield table.project((variable,), domain), times


def select_evidence(
    tables: Sequence[Table], domain: Domain, total: int, definition: PrivacyDefinition
) -> ModelEvidence:
    """Select the pairs of these tables, over rising variables, that one model can hold."""
    parts = [*_pairs(tables, domain)]
    # Pairs that were picked one by one always fit: the picks left room for all of them in one model.
    cliques = maximal_cliques(domain.sizes[: domain.count], [part.variables for _, part in parts])
    if sum(cells(domain.sizes, clique) for clique in cliques) > LARGEST_MODEL:
        sizes = domain.sizes[: domain.count]
        in_order = _in_order_of_strength(parts, total, definition)
        cliques = grown_cliques(sizes, in_order, lambda found: sum(cells(sizes, one) for one in found) <= LARGEST_MODEL)
    inside = [set(clique) for clique in cliques]
    held = tuple(part for part in parts if any(set(part[1].variables) <= clique for clique in inside))
    return ModelEvidence(tuple(tables), tuple(cliques), held)


def strength(table: Table, total: int, definition: PrivacyDefinition) -> float:
    """The distance of a pair's table from independence, less what its noise accounts for, as a share of the rows."""
    shares = project_to_simplex(table.counts, total) / total
    apart = np.abs(shares - np.outer(shares.sum(axis=1), shares.sum(axis=0))).sum() / 2
    return float(apart) - shares.size * definition.mean_size(table.variance) / (2 * total)


def _pairs(tables: Sequence[Table], domain: Domain) -> Iterator[Part]:
    for place, table in enumerate(tables):
        for pair in combinations(table.variables, 2):
            yield place, table.project(pair, domain)


def _in_order_of_strength(parts: Sequence[Part], total: int, definition: PrivacyDefinition) -> list[Variables]:
    """The pairs that rise above their noise, the strongest first; a pair counted twice takes its better rank."""
    strengths = [strength(part, total, definition) for _, part in parts]
    order = sorted(range(len(parts)), key=lambda place: -strengths[place])
    return list(dict.fromkeys(parts[place][1].variables for place in order if strengths[place] > 0))
