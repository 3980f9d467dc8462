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
from protocol.junction import Array, elimination, model_cells
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


def model_of(tables: Sequence[Table], domain: Domain, total: int, law: NoiseLaw) -> RunModel:
    """The model of all these tables that fit into one; `total` is the public number of rows.

    Its variables are those of the plan; its codes those of the coarsest generalisation that the domain has of them.
    """
    small = _merged(domain)
    known = {variable: _best_single(variable, tables, domain) for variable in range(domain.count)}
    merging = Merging.of(domain, {v: table for v, table in known.items() if table is not None}, total)
    joint = [_rising(table, domain, small) for table in tables if len(table.variables) > 1]
    kept = _held(joint, small, total, law)
    heard: list[tuple[Table, Array | float, int]] = [(pair, pair.variance, 1) for _, pair in kept]
    heard += [(part, part.variance, times) for part, times in _single_parts(joint, kept, small)]
    heard += [(*merging.merge(table), 1) for table in tables if len(table.variables) == 1]
    weights = [np.full(t.counts.shape, times / np.maximum(variance, _LEAST_VARIANCE)) for t, variance, times in heard]
    return RunModel(merging, fit(merging.sizes, [table for table, _, _ in heard], weights, total))


def _single_parts(
    joint: Sequence[Table], kept: Sequence[tuple[int, Table]], domain: Domain
) -> Iterator[tuple[Table, int]]:
    """What every table says of each of its variables alone, and how often that is still to be counted.

    Once in all: every pair of the table that the model holds says it again, so that it is taken out as often less one.
    """
    for place, table in enumerate(joint):
        pairs = [pair.variables for origin, pair in kept if origin == place]
        for variable in table.variables:
            times = 1 - sum(variable in pair for pair in pairs)
            if times:
                yield table.project((variable,), domain), times


def _best_single(variable: int, tables: Sequence[Table], domain: Domain) -> Table | None:
    """The answers of all tables that count each of its categories, averaged by how little noise they have."""
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
        for variable, neighbours in elimination(_merged(domain).sizes, held_variables)
    ]
    return Network.of(reversed(families), domain)


def held(tables: Sequence[Table], domain: Domain, total: int, law: NoiseLaw) -> list[Table]:
    """The tables of two variables that one model can hold, in the order in which they are worth it.

    Tables of two come first, as they were asked for one by one; then the pairs inside larger ones, the stronger before
    the weaker, as far as they rise above their noise.
    """
    small = _merged(domain)
    joint = [_rising(table, domain, small) for table in tables if len(table.variables) > 1]
    return [table for _, table in _held(joint, small, total, law)]


def _held(joint: Sequence[Table], domain: Domain, total: int, law: NoiseLaw) -> list[tuple[int, Table]]:
    """With the place of the table that each is a part of."""
    kept: list[tuple[int, Table]] = []
    structure = list[Variables]()
    whole = [(place, table) for place, table in enumerate(joint) if len(table.variables) == 2]
    for place, table in (*whole, *_inside(joint, domain, total, law)):
        known = table.variables in structure
        if known or model_cells(domain.sizes, [*structure, table.variables]) <= LARGEST_MODEL or not structure:
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


def _merged(domain: Domain) -> Domain:
    """The variables as tables of two and more count them."""
    return Domain.of_sizes(domain.shape(domain.coarsest(range(domain.count))))


def _rising(table: Table, domain: Domain, small: Domain) -> Table:
    named = Table(tuple(map(domain.base, table.variables)), table.counts, table.variance)
    return named.project(tuple(sorted(named.variables)), small)
