"""Figures for the analyst of a published table, computed from released data only, so they cost no privacy.

They are one-way marginals with noise bands, the error that noise leaves in every pair, the strength of the network's
edges, and the smallest group that the table can still show. It does not know files, HTML or any row.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curator.results.number_figures import number_figures
from protocol.model.rare_categories import Merging, spread_table
from protocol.network.mutual_information import mutual_information
from protocol.network.network import Family, Network, family_table
from protocol.plan.terms import Terms
from protocol.services.schema_words import about
from protocol.stages.knowledge import Knowledge, LocalModel, counted_domain
from protocol.tables.attributes import Ranged
from protocol.tables.marginal import Table, averaged, project_to_simplex

Json = dict[str, Any]
# 95 % of Laplace noise is within ln(20) / sqrt(2) standard deviations. Its sums and Gaussian noise need fewer.
_BAND = math.log(20) / math.sqrt(2)
# E|x| of Gaussian noise in standard deviations. Laplace noise, and sums of a few Laplace terms, have less.
_MEAN_ABSOLUTE = math.sqrt(2 / math.pi)
_TOLERABLE = 10  # a count of ten times its noise is right to within about ten percent


@dataclass(frozen=True)
class Edge:
    parent: str
    child: str
    bits: float  # mutual information in the noisy tables
    networks: int  # number of the run's networks with this edge: more than one only with method independent


@dataclass(frozen=True)
class _Source:
    """Independent noisy tables of the same rows: the rows of all parties together, or of one party."""

    tables: tuple[Table, ...]
    fitted: tuple[Table, ...]  # tables from which synthetic rows are drawn
    spread: tuple[Table, ...]  # tables over merged categories, expanded to all categories; rows are drawn from them too
    variances: tuple[float, ...]  # variance of a cell of each table from which rows are drawn
    network: Network
    rows: int


def analysis(terms: Terms, known: Knowledge, drawn: Sequence[NDArray[Any]]) -> Json:
    """Return all figures as JSON. `drawn` counts the categories of every attribute in the published table."""
    sources, places = _sources(terms, known), _Places(terms)
    marginals = [_marginal(terms, sources, number, drawn[number]) for number in range(len(terms.schema.attributes))]
    pairs = _pair_errors(terms, sources, places)
    return {
        "band": "95 % of the noise alone lies within it",
        "marginals": marginals,
        "numbers": _numbers(terms, sources, drawn),
        "pairs": {
            "attributes": list(terms.schema.names),
            "errors": pairs,
            "modelled": sorted(_modelled_pairs(sources, places)),
        },
        "edges": [vars(edge) for edge in _edges(terms, sources, places)],
        "merged": _merged(terms, known),
        "guidance": _guidance(terms, sources, marginals),
    }


class _Places:
    """Map between variables and attributes."""

    def __init__(self, terms: Terms) -> None:
        self._domain = terms.domain
        self._attribute = {v: number for number, block in enumerate(terms.blocks) for v in block.variables}
        self._blocks = [frozenset(block.variables) for block in terms.blocks]

    def of(self, variable: int) -> int:
        return self._attribute[self._domain.base(variable)]

    def whole(self, variables: Sequence[int]) -> list[int]:
        """Return the attributes whose variables are all among these."""
        own = set(variables)
        touched = {self._attribute[v] for v in variables if v in self._attribute}
        return sorted(number for number in touched if self._blocks[number] <= own)


def _sources(terms: Terms, known: Knowledge) -> list[_Source]:
    if known.models:
        return [_local_source(model) for model in known.models]
    rows = terms.plan.total_rows
    from_all = terms.plan.estimate == "graphical-model"
    whole = known.heard(rows)
    behind = whole if from_all else [one.table for one in known.released if one.step == "parameters"]
    own, fitted = (tuple(table for table in some if not _is_merged(terms, table)) for some in (whole, behind))
    variances = tuple(table.variance for table in behind)
    return [_Source(own, fitted, tuple(_spread(terms, known)), variances, known.network, rows)]


def _local_source(model: LocalModel) -> _Source:
    return _Source(model.tables, model.tables, (), tuple(t.variance for t in model.tables), model.network, model.rows)


def _is_merged(terms: Terms, table: Table) -> bool:
    return max(table.variables) >= len(terms.domain.variables)


def _spread(terms: Terms, known: Knowledge) -> Iterator[Table]:
    domain, tables = counted_domain(terms, known), known.heard(terms.plan.total_rows)
    alone = {table.variables[0]: table for table in tables if len(table.variables) == 1}
    merging = Merging.of(domain, alone, terms.plan.total_rows)
    for table in tables:
        if _is_merged(terms, table):
            yield spread_table(table, domain, merging)


def _merged(terms: Terms, known: Knowledge) -> list[Json]:
    """Return the categories hidden by noise, which tables of several attributes counted merged."""
    found = []
    for variable, groups in known.merged:
        attribute = terms.schema.attributes[variable]  # merging models attributes as they are: variables are attributes
        labelled = zip(attribute.labels_of_categories(), groups, strict=True)
        hidden = [label for label, group in labelled if groups.count(group) > 1]
        found.append({"attribute": attribute.name, "categories": hidden})
    return found


# One-way marginals


def _marginal(terms: Terms, sources: Sequence[_Source], number: int, drawn: NDArray[Any]) -> Json:
    attribute, variables = terms.schema.attributes[number], terms.blocks[number].variables
    drawn_from = [_least_variance(terms, source.fitted, variables) for source in sources]
    rows = sum(source.rows for source in sources)
    told = {
        "attribute": attribute.name,
        "kind": attribute.kind,
        **about(attribute),
        "categories": attribute.labels_of_categories(),
        "table": _rounded(drawn / max(1, int(drawn.sum()))),
        "model_band": None if math.isinf(sum(drawn_from)) else _band(sum(drawn_from), rows),
        "effective_rows": _effective_rows(rows, sum(drawn_from), terms.plan.rows),
    }
    measured = _measured(terms, sources, number)
    if measured is None:
        return told | {"estimate": None, "band": None}
    return told | {"estimate": _rounded(measured.counts / rows), "band": _band(measured.variance, rows)}


def _measured(terms: Terms, sources: Sequence[_Source], number: int) -> Table | None:
    """Return the best estimate of an attribute's counts over all rows, if tables of all sources hold it."""
    found = [_combined(terms, source.tables, terms.blocks[number].variables) for source in sources]
    measured = [one for one in found if one is not None]
    if len(measured) < len(found):
        return None
    counts = np.sum([_at_codes(terms, number, one.counts) for one in measured], axis=0)
    noise = measured[0].noise if len(measured) == 1 else None
    return Table((number,), counts, sum(one.variance for one in measured), noise)


def _numbers(terms: Terms, sources: Sequence[_Source], drawn: Sequence[NDArray[Any]]) -> list[Json]:
    rows = sum(source.rows for source in sources)
    return [
        number_figures(attribute, drawn[number], _measured(terms, sources, number), rows)
        for number, attribute in enumerate(terms.schema.attributes)
        if isinstance(attribute, Ranged)
    ]


def _band(variance: float, rows: int) -> float:
    return round(_BAND * math.sqrt(variance) / rows, 6)


def _least_variance(terms: Terms, tables: Sequence[Table], variables: tuple[int, ...]) -> float:
    """Return the smallest variance with which a table shows the attribute's cells, or infinity if none holds it."""
    fitting = [table for table in tables if set(variables) <= set(table.variables)]
    return min((table.project(variables, terms.domain).variance for table in fitting), default=math.inf)


def _combined(terms: Terms, tables: Sequence[Table], variables: tuple[int, ...]) -> Table | None:
    """Return the best estimate from all tables that hold these variables."""
    found = [table.project(variables, terms.domain) for table in tables if set(variables) <= set(table.variables)]
    return averaged(found) if found else None


def _at_codes(terms: Terms, number: int, counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turn counts of the attribute's variables into counts of its categories. Cells without a category are dropped."""
    sizes = [np.zeros(1, np.uint16)] * len(terms.schema.attributes)
    columns = list(sizes)
    columns[number] = np.arange(terms.schema.sizes[number], dtype=np.uint16)
    own = [terms.encoding.encode(columns)[v] for v in terms.blocks[number].variables]
    return np.asarray(counts[tuple(own)], dtype=np.float64)


def _effective_rows(rows: int, variance: float, synthetic: int) -> int | None:
    """Return the size of a real sample that would show a share of one half as precisely as the published table.

    The error of the published table comes from sampling, noise and drawing.
    """
    if math.isinf(variance):
        return None
    return int(1 / (1 / rows + 4 * variance / rows**2 + 1 / synthetic))


# Pairs


def _pair_errors(terms: Terms, sources: Sequence[_Source], places: _Places) -> list[list[float | None]]:
    """Return, for attribute 1, 2, ..., the expected total variation error of its pair with each attribute before it."""
    count = len(terms.schema.attributes)
    total = np.zeros((count, count))
    for source in sources:
        total += _pair_variances(terms, source.tables + source.spread, places)
    sizes = np.array([math.prod(terms.domain.sizes[v] for v in block.variables) for block in terms.blocks])
    rows = sum(source.rows for source in sources)
    errors = np.minimum(1, np.outer(sizes, sizes) * _MEAN_ABSOLUTE * np.sqrt(total) / (2 * rows))
    return [
        [None if math.isinf(total[i, j]) else round(float(errors[i, j]), 6) for j in range(i)] for i in range(1, count)
    ]


def _pair_variances(terms: Terms, tables: Sequence[Table], places: _Places) -> NDArray[np.float64]:
    """Return the smallest variance of a cell of each pair's table, or infinity where no table holds the pair."""
    count = len(terms.schema.attributes)
    sizes = [math.prod(terms.domain.sizes[v] for v in block.variables) for block in terms.blocks]
    best = np.full((count, count), np.inf)
    for table in tables:
        for i, j in combinations(places.whole(table.variables), 2):
            variance = table.variance * table.counts.size / (sizes[i] * sizes[j])
            best[i, j] = best[j, i] = min(best[i, j], variance)
    return best


def _modelled_pairs(sources: Sequence[_Source], places: _Places) -> set[tuple[int, int]]:
    """Return the pairs that share a family in every network: rows are drawn from a noisy joint table of the pair."""
    return set.intersection(*(set(_pairs_in_families(source, places)) for source in sources))


def _pairs_in_families(source: _Source, places: _Places) -> Iterator[tuple[int, int]]:
    """Yield the pairs in families that a table holds. A graphical model also links pairs without their own table."""
    tables = [sorted({*map(places.of, table.variables)}) for table in source.fitted + source.spread]
    told = {pair for attributes in tables for pair in combinations(attributes, 2)}
    for family in source.network.families:
        yield from told & set(combinations(sorted({places.of(v) for v in family.variables}), 2))


# The network


def _edges(terms: Terms, sources: Sequence[_Source], places: _Places) -> list[Edge]:
    found: dict[tuple[int, int], list[float]] = {}
    for source in sources:
        strongest: dict[tuple[int, int], float] = {}
        for parent, child in source.network.edges():
            ends = places.of(parent), places.of(child)
            if ends[0] != ends[1]:  # edges inside one attribute are not shown
                bits = _strength(terms, source, parent, child)
                strongest[ends] = max(strongest.get(ends, 0.0), bits)
        for ends, bits in strongest.items():
            found.setdefault(ends, []).append(bits)
    names = terms.schema.names
    return [Edge(names[i], names[j], round(sum(bits) / len(bits), 6), len(bits)) for (i, j), bits in found.items()]


def _strength(terms: Terms, source: _Source, parent: int, child: int) -> float:
    family = Family(child, (parent,))
    tables = source.fitted + source.spread
    if not any(table.covers(family.variables, terms.domain) for table in tables):
        return 0.0  # a graphical model also links pairs without a table of their own
    table = family_table(family, tables, terms.domain)
    counts = project_to_simplex(table.counts, source.rows)
    return max(0.0, mutual_information(counts) - _bits_of_noise(counts, table.variance))


def _bits_of_noise(counts: NDArray[np.float64], variance: float) -> float:
    """The mutual information that noise alone adds on average, to second order; at most that of cells as large as it.

    A cell in which e rows are expected adds variance / 2e to it, as share of the rows and in natural units.
    """
    levels = [counts.sum(axis=axis) for axis in (1, 0)]
    expected = np.outer(*levels) / counts.sum()
    free: float = math.prod(1 - 1 / size for size in counts.shape)
    added = float((variance / (2 * np.maximum(expected, math.sqrt(variance)))).sum())
    return free * added / (float(counts.sum()) * math.log(2))


# Guidance


def _guidance(terms: Terms, sources: Sequence[_Source], marginals: Sequence[Json]) -> Json:
    """Return, in rows, the noise of one cell of the model's tables, and the sizes of groups that stand out from it."""
    deviations = [math.sqrt(_cell_variance(terms, source)) for source in sources]
    band = _BAND * math.sqrt(sum(deviation**2 for deviation in deviations))
    effective = [one["effective_rows"] for one in marginals if one["effective_rows"] is not None]
    return {
        "rows": sum(source.rows for source in sources),
        "synthetic_rows": terms.plan.rows,
        "cell_band_rows": round(band, 3),
        "visible_group_rows": math.ceil(band),
        "reliable_group_rows": math.ceil(_TOLERABLE * band),
        "effective_rows_least": min(effective, default=None),
        "effective_rows_most": max(effective, default=None),
    }


def _cell_variance(terms: Terms, source: _Source) -> float:
    """Return the median variance of a cell of a family's table."""
    if terms.plan.estimate == "graphical-model":
        return float(np.median(source.variances))
    found = [family_table(family, source.fitted, terms.domain).variance for family in source.network.families]
    return float(np.median(found))


def _rounded(values: NDArray[Any]) -> list[float]:
    return [round(float(value), 6) for value in values]
