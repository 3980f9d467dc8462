"""Method jtree: views tell which pairs depend, and one pass counts the cliques of a junction tree (`jtree.md`).

It does not know how views are constructed, or how cliques are merged into clusters.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import ClassVar

from protocol.model.clusters import clusters
from protocol.model.evidence import strength
from protocol.model.triangulation import TableGraph, cells, grown_cliques
from protocol.network.limits import Limits
from protocol.network.network import Family, Network, maximal_families
from protocol.plan.plan import Plan
from protocol.plan.step import StageName, Step, shared_step
from protocol.plan.terms import Terms
from protocol.stages.definitions.definition import Everybody, MethodDefinition, Order, families_alone, first_phase
from protocol.stages.knowledge import Knowledge
from protocol.stages.parameters import Parameters
from protocol.stages.stage import Size
from protocol.tables.domain import Variables
from protocol.tables.marginal import Table


class JTree(MethodDefinition):
    budgets = ("correlations", "parameters")
    order: ClassVar[Order] = {
        "joining": ("levels", "correlations", "clusters"),
        "levels": ("correlations",),
        "correlations": ("clusters",),
        "clusters": (),
    }

    def steps(self, plan: Plan, _everybody: Everybody, variables: int) -> list[Step]:
        views = first_phase(plan) if variables > 1 else []
        return [*views, shared_step(plan, "parameters", "clusters", plan.split[1])]


class Clusters(Parameters):
    name: StageName = "clusters"
    label = "Clusters of columns"

    def size(self, terms: Terms, _step: Step) -> Size:
        count, most = terms.domain.count, terms.cluster_cells
        useful = max(many * own for many, own in enumerate(most, start=1))
        return Size(count, useful + sum(terms.domain.sizes[:count]))  # columns alone are counted, useful or not

    def limits(self, terms: Terms) -> Limits:
        """A cluster may hold more columns than a clique, as long as its table is useful."""
        return Limits(terms.cluster_cells[0])

    def enter(self, terms: Terms, known: Knowledge) -> Knowledge:
        sizes = terms.domain.sizes[: terms.domain.count]
        pairs = [pair for pair in dependent_pairs(terms, known) if _fit(terms, [pair], len(sizes) - 1)]
        cliques = grown_cliques(sizes, pairs, lambda found: _fit(terms, found, len(found))) if pairs else []
        if not cliques:
            return replace(known, families=families_alone(terms))
        families = [
            Family(variable, tuple(v for v in range(terms.domain.count) if neighbours >> v & 1))
            for variable, neighbours in TableGraph(sizes, cliques).elimination()
        ]
        return replace(known, families=Network.of(reversed(families), terms.domain).families)

    def tables(self, terms: Terms, _step: Step, known: Knowledge) -> tuple[Variables, ...]:
        cliques = tuple(maximal_families(known.network, terms.domain))
        sizes = terms.domain.sizes[: terms.domain.count]
        return clusters(sizes, cliques, terms.plan.definition.grows_by_root, terms.cluster_cells)


def dependent_pairs(terms: Terms, known: Knowledge) -> list[Variables]:
    """Pairs whose noisy tables are further from independence than noise explains, the strongest first."""
    plan, tables = terms.plan, _pair_tables(terms, known)
    found = {pair: strength(table, plan.total_rows, plan.definition) for pair, table in tables.items()}
    return sorted((pair for pair, value in found.items() if value > 0), key=lambda pair: (-found[pair], pair))


def _pair_tables(terms: Terms, known: Knowledge) -> dict[Variables, Table]:
    domain = terms.domain.with_merged(known.halves)
    found = {}
    for released in known.released:
        if released.step == "correlations":
            for pair in combinations(released.table.variables, 2):
                found[tuple(sorted(map(domain.base, pair)))] = released.table.project(pair, domain)
    return found


def _fit(terms: Terms, cliques: Sequence[Variables], many: int) -> bool:
    """Whether the tables of these of `many` cliques carry theta times more information than noise."""
    degree, several = terms.plan.degree, [clique for clique in cliques if len(clique) > 1]
    if degree is not None and any(len(clique) > 1 + degree for clique in several):
        return False
    return all(cells(terms.domain.sizes, clique) <= terms.cluster_cells[many - 1] for clique in several)
