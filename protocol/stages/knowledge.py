"""What the curator has learned so far in a run: nothing in it but differentially private answers.

It does not know who has answered, or any row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from protocol.model.run_model import model_of
from protocol.network.network import Family, Network
from protocol.plan.step import Step
from protocol.plan.terms import Terms
from protocol.stages.reference_rows import Guide
from protocol.tables.domain import Domain, Merged, Variables
from protocol.tables.marginal import Table


@dataclass(frozen=True, eq=False)
class Statistic:
    """A family's accumulated noisy table in phase 3, and how many rows are in it."""

    table: Table
    rows: int


@dataclass(frozen=True, eq=False)
class Released:
    """A noisy table that left the parties: already private, so that it may be published and used again."""

    step: str
    table: Table
    rows: int  # how many rows it counts


@dataclass(frozen=True, eq=False)
class LocalModel:
    """One party's network and noisy tables (method independent)."""

    network: Network
    tables: tuple[Table, ...]
    rows: int


@dataclass(frozen=True, eq=False)
class Knowledge:
    information: NDArray[np.float64]  # mutual information of every pair, zero before phase 1
    families: tuple[Family, ...] = ()  # the network so far
    frontier: Network = field(default=Network(()))  # where phase 3 looks for a better one
    statistics: Mapping[int, Statistic] = field(default_factory=dict)
    released: tuple[Released, ...] = ()
    models: tuple[LocalModel, ...] = ()
    further: tuple[Variables, ...] = ()  # pairs picked beside the network's (update=guided)
    merged: tuple[Merged, ...] = ()  # what becomes of categories that noise hides, where tables count several variables
    guide: Guide | None = None  # what parties compare their rows with before they pick (score M)

    @property
    def network(self) -> Network:
        return Network(self.families)

    def with_released(self, step: Step, tables: Sequence[Table], rows: int) -> "Knowledge":
        """This knowledge with noisy tables that count so many rows."""
        return replace(self, released=(*self.released, *(Released(step.name, table, rows) for table in tables)))


def counted_domain(terms: Terms, known: Knowledge) -> Domain:
    """The plan's variables, and behind them those that passes count instead."""
    return terms.domain.with_merged(known.merged)


def with_guide(terms: Terms, known: Knowledge) -> Knowledge:
    """Fit the model of all released tables, unless it is there already: fitting takes its time."""
    if known.guide is not None and known.guide.tables == len(known.released):
        return known
    tables, plan = [released.table for released in known.released], terms.plan
    fitted = model_of(tables, counted_domain(terms, known), plan.total_rows, plan.definition)
    return replace(known, guide=Guide.of(fitted.model, len(tables)))
