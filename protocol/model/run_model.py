"""The model of a run: which released tables it can hold, fitted together, and the rows that it gives.

It does not know rows of people, parties or budgets: only noisy tables that were released.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crypto.randomness import Stream
from protocol.model.estimation import Model, Weighted, fit
from protocol.model.evidence import Heard, gathered
from protocol.model.junction_tree import Array, elimination
from protocol.model.rare_categories import Merging
from protocol.model.systematic_sampling import draw_rows
from protocol.network.network import Family, Network
from protocol.privacy.mechanisms import PrivacyDefinition
from protocol.tables.domain import Domain
from protocol.tables.marginal import Table, project_to_simplex

_LEAST_VARIANCE = 1e-6  # where a budget is so large that no noise is left


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


def model_of(tables: Sequence[Table], domain: Domain, total: int, definition: PrivacyDefinition) -> RunModel:
    """The model of all that these tables say; `total` is the public number of rows.

    Its variables are those of the plan; its codes those of the coarsest generalisation that the domain has of them.
    """
    # Before tables are taken apart: parts of one table must have as much noise as it has.
    tables = [replace(table, variance=max(table.variance, _LEAST_VARIANCE)) for table in tables]
    found = {variable: _best_single(variable, tables, domain) for variable in range(domain.count)}
    known = {variable: table for variable, table in found.items() if table is not None}
    merging = Merging.of(domain, known, total)
    small = Domain.of_sizes(domain.coarse_sizes)
    heard = _heard(tables, domain, total, definition)
    weighted = [_weighted(table, table.variance, times) for table, times in heard.parts(small)]
    weighted += [_weighted(*merging.merge(table), 1) for table in tables if len(table.variables) == 1]
    return RunModel(merging, fit(merging.sizes, heard.cliques, weighted, total, _shares(merging, known, total)))


def network_of(tables: Sequence[Table], domain: Domain, total: int, definition: PrivacyDefinition) -> Network:
    """The model's structure as a network: what is eliminated first comes last, its neighbours left are its parents."""
    families = [
        Family(variable, tuple(v for v in range(domain.count) if neighbours >> v & 1))
        for variable, neighbours in elimination(domain.coarse_sizes, _heard(tables, domain, total, definition).cliques)
    ]
    return Network.of(reversed(families), domain)


def _heard(tables: Sequence[Table], domain: Domain, total: int, definition: PrivacyDefinition) -> Heard:
    """What the tables of several variables say, over merged categories."""
    small = Domain.of_sizes(domain.coarse_sizes)
    joint = [_rising(table, domain, small) for table in tables if len(table.variables) > 1]
    return gathered(joint, small, total, definition)


def _weighted(table: Table, variance: Array | float, times: int) -> Weighted:
    weights = times / np.asarray(variance)
    return Weighted(table.variables, table.counts, np.broadcast_to(weights, table.counts.shape))


def _best_single(variable: int, tables: Sequence[Table], domain: Domain) -> Table | None:
    """The answers of all tables that count each of its categories, averaged by how little noise they have."""
    answers = [table.project((variable,), domain) for table in tables if variable in table.variables]
    if not answers:
        return None
    weights = [1 / one.variance for one in answers]
    counts = np.average([one.counts for one in answers], axis=0, weights=weights)
    return Table((variable,), counts, 1 / sum(weights))


def _shares(merging: Merging, known: Mapping[int, Table], total: int) -> list[Array]:
    """Of every variable alone; of one that was not counted, all alike."""
    return [
        project_to_simplex(merging.merge(known[v])[0].counts, total) / total if v in known else np.full(size, 1 / size)
        for v, size in enumerate(merging.sizes)
    ]


def _rising(table: Table, domain: Domain, small: Domain) -> Table:
    named = Table(tuple(map(domain.base, table.variables)), table.counts, table.variance)
    return named.project(tuple(sorted(named.variables)), small)
