"""The model of a run: which released tables it can hold, fitted together, and the rows that it gives.

It does not know rows of people, parties or budgets: only noisy tables that were released.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crypto.randomness import Stream
from protocol.domain import Domain, Variables
from protocol.drawing import draw_rows
from protocol.estimation import Model, fit
from protocol.junction import elimination, model_cells
from protocol.marginal import Table, project_to_simplex
from protocol.merging import Merging, over
from protocol.network import Family, Network
from protocol.noise_laws import NoiseLaw

LARGEST_MODEL = 1 << 14  # numbers in all cliques together: some seconds of work


@dataclass(frozen=True, eq=False)
class RunModel:
    """A fitted model over merged categories, and how they are spread again."""

    merging: Merging
    model: Model

    def sample(self, count: int, stream: Stream) -> Iterator[list[NDArray[Any]]]:
        """`count` rows, batch after batch, as one column of codes per variable."""
        sizes = [len(groups) for groups in self.merging.groups]
        for columns in draw_rows(self.model, count, stream):
            spread = self.merging.spread(columns, stream)
            yield [c.astype(np.min_scalar_type(size - 1)) for c, size in zip(spread, sizes, strict=True)]


def model_of(tables: Sequence[Table], domain: Domain, total: int, law: NoiseLaw, merges: bool = True) -> RunModel:
    """The model of all these tables that fit into one; `total` is the public number of rows."""
    chosen = [*_single(tables, domain), *held(tables, domain, total, law)]
    single = {table.variables[0]: table for table in chosen if len(table.variables) == 1} if merges else {}
    merging = Merging.of(domain.sizes[: domain.count], single, total)
    merged = [merging.merge(table) for table in chosen]
    model = fit(merging.sizes, [table for table, _ in merged], [cells for _, cells in merged], total)
    return RunModel(merging, model)


def network_of(tables: Sequence[Table], domain: Domain, total: int, law: NoiseLaw) -> Network:
    """The model's structure as a network: what is eliminated first comes last, its neighbours left are its parents."""
    held_variables = [table.variables for table in held(tables, domain, total, law)]
    families = [
        Family(variable, tuple(v for v in range(domain.count) if neighbours >> v & 1))
        for variable, neighbours in elimination(domain.sizes[: domain.count], held_variables)
    ]
    return Network.of(reversed(families), domain)


def held(tables: Sequence[Table], domain: Domain, total: int, law: NoiseLaw) -> list[Table]:
    """The tables of two and more variables that one model can hold, in the order in which they are worth it.

    Tables of two come first, as they were asked for one by one; then the pairs inside larger ones, the stronger before
    the weaker, as far as they rise above their noise.
    """
    rising = [_rising(table, domain) for table in tables]
    kept: list[Table] = []
    sizes, structure = domain.sizes[: domain.count], list[Variables]()
    for table in (*(t for t in rising if len(t.variables) == 2), *_inside(rising, domain, total, law)):
        known = table.variables in structure
        if known or model_cells(sizes, [*structure, table.variables]) <= LARGEST_MODEL or not structure:
            kept.append(table)
            structure += [] if known else [table.variables]
    return kept


def strength(table: Table, total: int, law: NoiseLaw) -> float:
    """Of a pair: how far its table is from independence beyond what its noise makes of it, as a share of the rows."""
    shares = project_to_simplex(table.counts, total) / total
    apart = np.abs(shares - np.outer(shares.sum(axis=1), shares.sum(axis=0))).sum() / 2
    return float(apart) - shares.size * law.mean_size(table.variance) / (2 * total)


def _inside(tables: Sequence[Table], domain: Domain, total: int, law: NoiseLaw) -> list[Table]:
    pairs = [
        table.project(pair, domain)
        for table in tables
        if len(table.variables) > 2
        for pair in combinations(table.variables, 2)
    ]
    strengths = [strength(pair, total, law) for pair in pairs]
    order = sorted(range(len(pairs)), key=lambda place: -strengths[place])
    return [pairs[place] for place in order if strengths[place] > 0]


def _single(tables: Sequence[Table], domain: Domain) -> list[Table]:
    """A table of every variable alone: the one that was counted, or what the least noisy other one says of it."""
    found = []
    for variable in range(domain.count):
        counted = over((variable,), tables)
        others = (t.project((variable,), domain) for t in tables if variable in t.variables)
        best = counted or min(others, key=lambda t: t.variance, default=None)
        found += [] if best is None else [best]
    return found


def _rising(table: Table, domain: Domain) -> Table:
    return table.project(tuple(sorted(table.variables)), domain)
