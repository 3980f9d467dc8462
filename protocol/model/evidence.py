"""Hearing: which pairs of the released tables one model holds, and what every table says in it, counted once.

It does not know how a model is fitted, or whose rows were counted.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from protocol.model.junction_tree import cells, maximal_cliques
from protocol.privacy.mechanisms import PrivacyDefinition
from protocol.tables.domain import Domain, Variables
from protocol.tables.marginal import Table, project_to_simplex

LARGEST_MODEL = 1 << 15  # numbers in all cliques together

Part = tuple[int, Table]  # with the place of the table that it is a part of


@dataclass(frozen=True, eq=False)
class Heard:
    """Tables over rising variables, the cliques of a model of them, and the pairs that lie in a clique."""

    tables: tuple[Table, ...]
    cliques: tuple[Variables, ...]
    pairs: tuple[Part, ...]

    def parts(self, domain: Domain) -> Iterator[tuple[Table, int]]:
        """Pairs, and what every table says of each of its variables alone, with how often it is to be counted.

        Once in all: every pair of a table says of its variables what the table says, so that as much is taken out.
        """
        yield from ((table, 1) for _, table in self.pairs)
        for place, table in enumerate(self.tables):
            own = [pair.variables for origin, pair in self.pairs if origin == place]
            for variable in table.variables:
                times = 1 - sum(variable in pair for pair in own)
                if times:
                    yield table.project((variable,), domain), times


def gathered(tables: Sequence[Table], domain: Domain, total: int, definition: PrivacyDefinition) -> Heard:
    """What one model can hold of these tables over rising variables."""
    parts = [*_pairs(tables, domain)]
    # Pairs that were picked one by one were picked so that a model has room for all.
    cliques = maximal_cliques(domain.sizes[: domain.count], [part.variables for _, part in parts])
    if sum(cells(domain.sizes, clique) for clique in cliques) > LARGEST_MODEL:
        cliques = _cliques(_in_order_of_strength(parts, total, definition), domain)
    inside = [set(clique) for clique in cliques]
    held = tuple(part for part in parts if any(set(part[1].variables) <= clique for clique in inside))
    return Heard(tuple(tables), tuple(cliques), held)


def strength(table: Table, total: int, definition: PrivacyDefinition) -> float:
    """Of a pair: how far its table is from independence beyond what its noise makes of it, as a share of the rows."""
    shares = project_to_simplex(table.counts, total) / total
    apart = np.abs(shares - np.outer(shares.sum(axis=1), shares.sum(axis=0))).sum() / 2
    return float(apart) - shares.size * definition.mean_size(table.variance) / (2 * total)


def _pairs(tables: Sequence[Table], domain: Domain) -> Iterator[Part]:
    for place, table in enumerate(tables):
        for pair in combinations(table.variables, 2):
            yield place, table.project(pair, domain)


def _in_order_of_strength(parts: Sequence[Part], total: int, definition: PrivacyDefinition) -> list[Variables]:
    """The pairs that rise above their noise, the strongest first; one that is counted again goes by the first."""
    strengths = [strength(part, total, definition) for _, part in parts]
    order = sorted(range(len(parts)), key=lambda place: -strengths[place])
    return list(dict.fromkeys(parts[place][1].variables for place in order if strengths[place] > 0))


def _cliques(pairs: Sequence[Variables], domain: Domain) -> list[Variables]:
    """Of a model that grows pair by pair, leaving out those that would make it too large; the first always fits.

    It has grown up when as many pairs in a row did not fit as there are variables.
    """
    sizes = domain.sizes[: domain.count]
    taken, refused = list(pairs[:1]), 0
    found = maximal_cliques(sizes, taken)
    for pair in pairs[1:]:
        if any(set(pair) <= set(clique) for clique in found):
            continue
        larger = maximal_cliques(sizes, [*taken, pair])
        fits = sum(cells(sizes, clique) for clique in larger) <= LARGEST_MODEL
        refused = 0 if fits else refused + 1
        if fits:
            found = larger
            taken.append(pair)
        elif refused == domain.count:
            break
    return found
