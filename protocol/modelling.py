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
from protocol.merging import Merging
from protocol.network import Family, Network
from protocol.noise_laws import NoiseLaw

_LEAST_VARIANCE = 1e-6  # where a budget is so large that no noise is left
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
    rising = [_rising(table, domain) for table in tables]
    kept = _held(rising, domain, total, law)
    single = {v: _best_single(v, rising, domain) for v in range(domain.count)} if merges else {}
    merging = Merging.of(domain.sizes[: domain.count], {v: t for v, t in single.items() if t is not None}, total)
    heard = [(table, 1) for _, table in kept] + list(_single_parts(rising, kept, domain))
    merged = [(*merging.merge(table), times) for table, times in heard]
    weights = [times / np.maximum(variances, _LEAST_VARIANCE) for _, variances, times in merged]
    model = fit(merging.sizes, [table for table, _, _ in merged], weights, total)
    return RunModel(merging, model)


def _single_parts(
    tables: Sequence[Table], kept: Sequence[tuple[int, Table]], domain: Domain
) -> Iterator[tuple[Table, int]]:
    """What every table says of each of its variables alone, and how often that is still to be counted.

    Once in all: every pair of the table that the model holds says it again, so that it is taken out as often less one.
    """
    for place, table in enumerate(tables):
        pairs = [pair.variables for origin, pair in kept if origin == place]
        for variable in table.variables:
            times = 1 - sum(variable in pair for pair in pairs)
            if times:
                yield table.project((variable,), domain), times


def _best_single(variable: int, tables: Sequence[Table], domain: Domain) -> Table | None:
    """All tables' answers, averaged by how little noise they have."""
    answers = [table.project((variable,), domain) for table in tables if variable in table.variables]
    if not answers:
        return None
    weights = [1 / max(one.variance, _LEAST_VARIANCE) for one in answers]
    counts = np.average([one.counts for one in answers], axis=0, weights=weights)
    return Table((variable,), counts, 1 / sum(weights))


def network_of(tables: Sequence[Table], domain: Domain, total: int, law: NoiseLaw) -> Network:
    """The model's structure as a network: what is eliminated first comes last, its neighbours left are its parents."""
    held_variables = [table.variables for table in held(tables, domain, total, law)]
    families = [
        Family(variable, tuple(v for v in range(domain.count) if neighbours >> v & 1))
        for variable, neighbours in elimination(domain.sizes[: domain.count], held_variables)
    ]
    return Network.of(reversed(families), domain)


def held(tables: Sequence[Table], domain: Domain, total: int, law: NoiseLaw) -> list[Table]:
    """The tables of two variables that one model can hold, in the order in which they are worth it.

    Tables of two come first, as they were asked for one by one; then the pairs inside larger ones, the stronger before
    the weaker, as far as they rise above their noise.
    """
    return [table for _, table in _held([_rising(table, domain) for table in tables], domain, total, law)]


def _held(rising: Sequence[Table], domain: Domain, total: int, law: NoiseLaw) -> list[tuple[int, Table]]:
    """With the place of the table that each is a part of."""
    kept: list[tuple[int, Table]] = []
    sizes, structure = domain.sizes[: domain.count], list[Variables]()
    whole = [(place, table) for place, table in enumerate(rising) if len(table.variables) == 2]
    for place, table in (*whole, *_inside(rising, domain, total, law)):
        known = table.variables in structure
        if known or model_cells(sizes, [*structure, table.variables]) <= LARGEST_MODEL or not structure:
            kept.append((place, table))
            structure += [] if known else [table.variables]
    return kept


def strength(table: Table, total: int, law: NoiseLaw) -> float:
    """Of a pair: how far its table is from independence beyond what its noise makes of it, as a share of the rows."""
    shares = project_to_simplex(table.counts, total) / total
    apart = np.abs(shares - np.outer(shares.sum(axis=1), shares.sum(axis=0))).sum() / 2
    return float(apart) - shares.size * law.mean_size(table.variance) / (2 * total)


def _inside(tables: Sequence[Table], domain: Domain, total: int, law: NoiseLaw) -> list[tuple[int, Table]]:
    pairs = [
        (place, table.project(pair, domain))
        for place, table in enumerate(tables)
        if len(table.variables) > 2
        for pair in combinations(table.variables, 2)
    ]
    strengths = [strength(pair, total, law) for _, pair in pairs]
    order = sorted(range(len(pairs)), key=lambda place: -strengths[place])
    return [pairs[place] for place in order if strengths[place] > 0]


def _rising(table: Table, domain: Domain) -> Table:
    return table.project(tuple(sorted(table.variables)), domain)
