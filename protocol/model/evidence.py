"""Selection of the parts of released tables that one graphical model can hold, each table weighted to count once.

It does not know how a model is fitted, or whose rows were counted.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from protocol.model.triangulation import TableGraph, cells, grown_cliques
from protocol.privacy.mechanisms import PrivacyDefinition
from protocol.tables.domain import Domain, Variables
from protocol.tables.marginal import Table, project_to_simplex

Part = tuple[int, Table]  # the index of a table, and the projection of that table onto a pair, or the table itself


@dataclass(frozen=True)
class Room:
    """What a model may hold."""

    numbers: int  # in all its cliques together
    ways: int = 2  # variables of a table that is heard whole; of a larger one, all pairs are


@dataclass(frozen=True, eq=False)
class ModelEvidence:
    """Tables over rising variables, the cliques of a model of these tables, and the parts that lie in a clique."""

    tables: tuple[Table, ...]
    cliques: tuple[Variables, ...]
    held: tuple[Part, ...]

    def parts(self, domain: Domain) -> Iterator[tuple[Table, int]]:
        """Parts and one-way tables, each with the number of times that it is to be counted.

        Each table's one-way information counts exactly once: every part repeats it, so the repeats are subtracted.
        """
        yield from ((table, 1) for _, table in self.held)
        for place, table in enumerate(self.tables):
            own = [part.variables for origin, part in self.held if origin == place]
            for variable in table.variables:
                times = 1 - sum(variable in part for part in own)
                if times:
                    yield table.project((variable,), domain), times


def select_evidence(
    tables: Sequence[Table], domain: Domain, total: int, definition: PrivacyDefinition, room: Room
) -> ModelEvidence:
    """Select the parts of these tables, over rising variables, for which one model has room."""
    parts = [*_parts(tables, domain, room.ways)]
    # Tables that were picked one by one mostly fit: the picks left room for all of them in one model.
    sizes = domain.sizes[: domain.count]
    cliques = TableGraph(sizes, (part.variables for _, part in parts)).cliques()
    if sum(cells(sizes, clique) for clique in cliques) > room.numbers:
        in_order = _in_order_of_strength(parts, total, definition)
        cliques = grown_cliques(sizes, in_order, lambda found: sum(cells(sizes, one) for one in found) <= room.numbers)
    inside = [set(clique) for clique in cliques]
    held = tuple(part for part in parts if any(set(part[1].variables) <= clique for clique in inside))
    return ModelEvidence(tuple(tables), tuple(cliques), held)


def strength(table: Table, total: int, definition: PrivacyDefinition) -> float:
    """The distance of a table from independence, less what its noise accounts for, as a share of the rows."""
    shares = project_to_simplex(table.counts, total) / total
    axes = range(shares.ndim)
    levels = [shares.sum(axis=tuple(other for other in axes if other != axis)) for axis in axes]
    apart = np.abs(shares - math.prod(np.ix_(*levels))).sum() / 2
    return float(apart) - shares.size * definition.mean_size(table.variance) / (2 * total)


def _parts(tables: Sequence[Table], domain: Domain, ways: int) -> Iterator[Part]:
    for place, table in enumerate(tables):
        if 2 < len(table.variables) <= ways:
            yield place, table
            continue
        for pair in combinations(table.variables, 2):
            yield place, table.project(pair, domain)


def _in_order_of_strength(parts: Sequence[Part], total: int, definition: PrivacyDefinition) -> list[Variables]:
    """The parts that rise above their noise, the strongest first; one that was counted twice takes its better rank."""
    strengths = [strength(part, total, definition) for _, part in parts]
    order = sorted(range(len(parts)), key=lambda place: -strengths[place])
    return list(dict.fromkeys(parts[place][1].variables for place in order if strengths[place] > 0))
