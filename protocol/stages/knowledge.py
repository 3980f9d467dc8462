"""Knowledge of the curator in a run so far: only differentially private answers and what follows from them.

It does not know which parties have answered, or any row.
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
    """A family's accumulated noisy table in phase 3, and the number of rows in it."""

    table: Table
    rows: int


@dataclass(frozen=True, eq=False)
class Released:
    """A noisy table that left the parties: already private, so it may be published and used again."""

    step: str
    table: Table
    rows: int  # that the table counts


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
    frontier: Network = field(default=Network(()))  # where phase 3 looks for a better network
    statistics: Mapping[int, Statistic] = field(default_factory=dict)
    released: tuple[Released, ...] = ()
    models: tuple[LocalModel, ...] = ()
    further: tuple[Variables, ...] = ()  # pairs picked in addition to the network's (update=guided)
    merged: tuple[Merged, ...] = ()  # merged categories, for rare categories in tables of several variables
    guide: Guide | None = None  # the model that parties compare their rows with before they pick (score M)

    @property
    def network(self) -> Network:
        return Network(self.families)

    def with_released(self, step: Step, tables: Sequence[Table], rows: int) -> "Knowledge":
        """This knowledge with more released tables, each of which counts `rows` rows."""
        return replace(self, released=(*self.released, *(Released(step.name, table, rows) for table in tables)))


def counted_domain(terms: Terms, known: Knowledge) -> Domain:
    """The plan's variables, followed by their merged versions, which passes count instead."""
    return terms.domain.with_merged(known.merged)


def with_guide(terms: Terms, known: Knowledge) -> Knowledge:
    """This knowledge with the model of all released tables; fitting is slow, so an up-to-date model is kept."""
    if known.guide is not None and known.guide.tables == len(known.released):
        return known
    tables, plan = [released.table for released in known.released], terms.plan
    fitted = model_of(tables, counted_domain(terms, known), plan.total_rows, plan.definition)
    return replace(known, guide=Guide.of(fitted.model, len(tables)))
