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
from protocol.tables.domain import Domain, FoundEdges, Merged, Variables
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
    is_halved: bool = False  # whether its variables are halves (`Knowledge.halves`), and not merged categories


@dataclass(frozen=True, eq=False)
class LocalModel:
    """One party's network and noisy tables (method independent)."""

    network: Network
    tables: tuple[Table, ...]
    rows: int


@dataclass(frozen=True)
class Station:
    """The network as a step left it, and the frontier out of which the step took it."""

    step: str
    pairs: tuple[Variables, ...]  # that depend on each other in the network, each in rising order
    frontier: tuple[Variables, ...] = ()


@dataclass(frozen=True, eq=False)
class Knowledge:
    information: NDArray[np.float64]  # mutual information of every pair, zero before phase 1
    families: tuple[Family, ...] = ()  # the network so far
    frontier: Network = field(default=Network(()))  # where phase 3 looks for a better network
    statistics: Mapping[int, Statistic] = field(default_factory=dict)
    released: tuple[Released, ...] = ()
    models: tuple[LocalModel, ...] = ()
    further: tuple[Variables, ...] = ()  # pairs picked in addition to the network's
    merged: tuple[Merged, ...] = ()  # merged categories, for rare categories in tables of several variables
    grids: tuple[Table, ...] = ()  # counts of the fine bins among which edges were found
    edges: FoundEdges = ()
    dependence: int | None = None  # the noisy number of rows by which columns depend on each other, if it was asked for
    halves: tuple[Merged, ...] = ()  # every variable as two halves of about as many rows, for views of halves
    stations: tuple[Station, ...] = ()  # every step that changed the network or was offered a frontier
    guide: Guide | None = None  # the model that parties compare their rows with before they pick (score M)

    @property
    def network(self) -> Network:
        return Network(self.families)

    def passing(self, step: Step, offered: Network) -> "Knowledge":
        """This knowledge, noting the network after a step that was offered a frontier."""
        pairs = {*map(_pair, self.network.edges()), *self.further}
        station = Station(step.name, tuple(sorted(pairs)), tuple(sorted(set(map(_pair, offered.edges())))))
        before = self.stations[-1].pairs if self.stations else ()
        is_news = station.frontier or station.pairs != before
        return replace(self, stations=(*self.stations, station)) if is_news else self

    def with_released(self, step: Step, tables: Sequence[Table], rows: int, is_halved: bool = False) -> "Knowledge":
        """This knowledge with more released tables, each of which counts `rows` rows."""
        new = (Released(step.name, table, rows, is_halved) for table in tables)
        return replace(self, released=(*self.released, *new))

    def heard(self, total: int) -> list[Table]:
        """The released tables that a model of all `total` rows can hear.

        Tables that some parties counted each for their own rows are added up; until all parties have counted them,
        nothing can be told from them about all rows. Tables of halves speak of other categories than the model.
        """
        found, parts = [], dict[Variables, list[Released]]()
        for one in self.released:
            if one.rows == total and not one.is_halved:
                found.append(one.table)
            elif not one.is_halved:
                parts.setdefault(one.table.variables, []).append(one)
        return found + [_added(own) for own in parts.values() if sum(one.rows for one in own) == total]


def _pair(edge: Variables) -> Variables:
    return tuple(sorted(edge))


def _added(parts: Sequence[Released]) -> Table:
    """The sum of tables of different rows."""
    tables = [one.table for one in parts]
    counts = np.sum([table.counts for table in tables], axis=0)
    return Table(tables[0].variables, counts, sum(table.variance for table in tables))


def counted_domain(terms: Terms, known: Knowledge) -> Domain:
    """The plan's variables, followed by their merged versions, which passes count instead."""
    return terms.domain.with_merged(known.merged)


def with_guide(terms: Terms, known: Knowledge) -> Knowledge:
    """This knowledge with the model of all released tables; fitting is slow, so an up-to-date model is kept."""
    if known.guide is not None and known.guide.tables == len(known.released):
        return known
    plan = terms.plan
    domain = counted_domain(terms, known).without_order()  # a guide is asked which pairs depend: order takes time there
    fitted = model_of(known.heard(plan.total_rows), domain, plan.total_rows, plan.definition, terms.model_room)
    return replace(known, guide=Guide.of(fitted.model, len(known.released)))
