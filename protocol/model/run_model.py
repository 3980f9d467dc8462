"""The model of a run, fitted to all released tables that it can hold, and the rows drawn from it.

It does not know rows of people, parties or budgets; it only sees released noisy tables.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crypto.randomness import Stream
from protocol.model.estimation import GraphicalModel, Weighted, fit
from protocol.model.evidence import ModelEvidence, Room, select_evidence
from protocol.model.junction_tree import Array
from protocol.model.rare_categories import Merging
from protocol.model.systematic_sampling import draw_rows
from protocol.model.triangulation import TableGraph
from protocol.network.network import Family, Network
from protocol.privacy.mechanisms import PrivacyDefinition
from protocol.tables.domain import Domain
from protocol.tables.marginal import Table, averaged, project_to_simplex

_LEAST_VARIANCE = 1e-6  # used where a budget is so large that no noise is left


@dataclass(frozen=True, eq=False)
class RunModel:
    """A fitted model over merged categories, and the merging that spreads them again."""

    merging: Merging
    model: GraphicalModel

    def sample(self, count: int, stream: Stream) -> Iterator[list[NDArray[Any]]]:
        """Draw `count` rows, batch by batch, as one column of codes per variable."""
        sizes = [len(groups) for groups in self.merging.groups]
        for columns in draw_rows(self.model, count, stream):
            spread = self.merging.spread(columns, stream)
            yield [c.astype(np.min_scalar_type(size - 1)) for c, size in zip(spread, sizes, strict=True)]


def model_of(
    tables: Sequence[Table], domain: Domain, total: int, definition: PrivacyDefinition, room: Room
) -> RunModel:
    """Fit the model of a run to its tables; `total` is the public number of rows.

    The model's variables are those of the plan. Its codes are those of each variable's coarsest generalisation.
    """
    # The floor is set before tables are split, so that the parts' noise stays consistent with the whole table's.
    tables = [replace(table, variance=max(table.variance, _LEAST_VARIANCE)) for table in tables]
    found = {variable: _best_single(variable, tables, domain) for variable in range(domain.count)}
    known = {variable: table for variable, table in found.items() if table is not None}
    merging = Merging.of(domain, known, total)
    small = Domain.of_sizes(domain.coarse_sizes)
    evidence = _evidence(tables, domain, total, definition, room)
    weighted = [_weighted(table, table.variance, times) for table, times in evidence.parts(small)]
    weighted += [_weighted(*merging.merge(table), 1) for table in tables if _is_single_without_order(table, merging)]
    weighted += [_weighted(*merging.smoothed(variable), 1) for variable in merging.draws]
    return RunModel(merging, fit(merging.sizes, evidence.cliques, weighted, total, _shares(merging, known, total)))


def network_of(
    tables: Sequence[Table], domain: Domain, total: int, definition: PrivacyDefinition, room: Room
) -> Network:
    """Express the model's structure as a network.

    The variable that is eliminated first comes last, and its remaining neighbours are its parents.
    """
    graph = TableGraph(domain.coarse_sizes, _evidence(tables, domain, total, definition, room).cliques)
    families = [
        Family(variable, tuple(v for v in range(domain.count) if neighbours >> v & 1))
        for variable, neighbours in graph.elimination()
    ]
    return Network.of(reversed(families), domain)


def _evidence(
    tables: Sequence[Table], domain: Domain, total: int, definition: PrivacyDefinition, room: Room
) -> ModelEvidence:
    """Evidence from the tables of several variables, over merged categories."""
    small = Domain.of_sizes(domain.coarse_sizes)
    joint = [_rising(table, domain, small) for table in tables if len(table.variables) > 1]
    return select_evidence(joint, small, total, definition, room)


def _weighted(table: Table, variance: Array | float, times: int) -> Weighted:
    weights = times / np.asarray(variance)
    return Weighted(table.variables, table.counts, np.broadcast_to(weights, table.counts.shape))


def _is_single_without_order(table: Table, merging: Merging) -> bool:
    return len(table.variables) == 1 and table.variables[0] not in merging.draws


def _best_single(variable: int, tables: Sequence[Table], domain: Domain) -> Table | None:
    """A table of one variable: the average over all tables that count it, weighted by the inverse of their variance."""
    answers = [table.project((variable,), domain) for table in tables if variable in table.variables]
    if not answers:
        return None
    return averaged(answers)


def _shares(merging: Merging, known: Mapping[int, Table], total: int) -> list[Array]:
    """The shares of each variable's merged codes; equal shares for a variable that was not counted."""
    counted = {v: project_to_simplex(merging.merge(table)[0].counts, total) for v, table in known.items()}
    counted |= {v: merging.smoothed(v)[0].counts for v in merging.draws}
    return [counted[v] / total if v in known else np.full(size, 1 / size) for v, size in enumerate(merging.sizes)]


def _rising(table: Table, domain: Domain, small: Domain) -> Table:
    named = Table(tuple(map(domain.base, table.variables)), table.counts, table.variance)
    return named.project(tuple(sorted(named.variables)), small)
