"""What the curator asks in each stage of a run, and what it concludes from the answers (docs/protocol.md, section 5).

It does not know in which order stages come (`protocol.plan.schedule`), who has answered (`protocol.run.curator`), or
any row.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from protocol.errors import FailedCheck
from protocol.messages.tasks import Count, Learn, Learned, Place, Placed, Reply, TakeBack, Task
from protocol.model.rare_categories import merged_by
from protocol.model.run_model import model_of, network_of
from protocol.network.frontier import search_frontier
from protocol.network.mutual_information import mutual_information, mutual_information_matrix, pair_tables
from protocol.network.network import Family, Network, best_network, maximal_families
from protocol.plan.passes import candidate_families, layout_of, parameters_of_model, picked_pairs
from protocol.plan.schedule import Step
from protocol.plan.terms import Terms
from protocol.privacy.layout import WORD_BYTES, Layout, split_vector, words_from_bytes
from protocol.secure_sum.plain import CuratorSums, retained_variance
from protocol.stages.reference_rows import Guide
from protocol.tables.domain import Domain, Merged, Variables
from protocol.tables.marginal import Table, project_to_simplex


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
    """Method independent: one party's network and noisy tables."""

    network: Network
    tables: tuple[Table, ...]
    rows: int


@dataclass(frozen=True, eq=False)
class Knowledge:
    """All that the curator has learned so far; nothing in it but differentially private answers."""

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


def counted_domain(terms: Terms, known: Knowledge) -> Domain:
    """The plan's variables, and behind them those that passes count instead."""
    return terms.domain.with_merged(known.merged)


def beginning(terms: Terms, first_variable: int) -> Knowledge:
    """Before any answer. DP-CCBN's first variable is chosen blindly; without phase 2 nothing has parents yet."""
    count = terms.domain.count
    families: tuple[Family, ...] = ()
    if terms.plan.method == "dp-ccbn":
        families = (Family(first_variable),)
    elif terms.plan.method == "dp-subn" and not terms.plan.split[1]:
        families = tuple(Family(v) for v in range(count))
    return Knowledge(np.zeros((count, count)), families)


def entering(terms: Terms, step: Step | None, known: Knowledge) -> Knowledge:
    """What the curator works out before it asks the next step's question."""
    if step is not None and step.stage == "update":
        frontier = search_frontier(known.network, known.information, terms.frontier_limits, terms.domain)
        return replace(known, frontier=frontier)
    if step is not None and step.stage == "parameters" and _chooses_openly(terms):
        # All pairs are known already, so that the network costs nothing.
        network = search_frontier(known.network, known.information, terms.limits, terms.domain)
        return replace(known, families=network.families)
    if step is not None and step.stage == "parameters" and len(known.families) < terms.domain.count:
        # DP-CCBN without a budget for structure: what has no family yet stands alone.
        placed = {family.child for family in known.families}
        alone = tuple(Family(v) for v in range(terms.domain.count) if v not in placed)
        return replace(known, families=known.families + alone)
    if step is not None and step.stage in ("initial", "further") and terms.plan.score == "M":
        return _with_guide(terms, known)
    return known


def _with_guide(terms: Terms, known: Knowledge) -> Knowledge:
    """The model of all that was released, unless it is there already: fitting takes its time."""
    if known.guide is not None and known.guide.tables == len(known.released):
        return known
    tables, plan = [released.table for released in known.released], terms.plan
    fitted = model_of(tables, counted_domain(terms, known), plan.total_rows, plan.law)
    return replace(known, guide=Guide.of(fitted.model, len(tables)))


def _chooses_openly(terms: Terms) -> bool:
    plan = terms.plan
    return plan.method == "dp-subn" and plan.views == "pairs" and bool(plan.split[0]) and not any(plan.split[1:3])


def tables_of(terms: Terms, step: Step, known: Knowledge) -> tuple[Variables, ...]:
    """The tables that this step's pass counts."""
    if step.stage == "correlations":
        return terms.cover.views
    if step.stage == "update":
        return tuple(family.variables for family in known.frontier.families if family.parents)
    if step.stage == "candidates":
        return tuple(family.variables for family in candidate_families(terms, known.families))
    if terms.plan.score == "M":
        return unmeasured(terms, known)
    return tuple(maximal_families(known.network, terms.domain))


def unmeasured(terms: Terms, known: Knowledge) -> tuple[Variables, ...]:
    """The picked pairs that no pass has counted; where nothing was worth picking, every variable alone once more."""
    domain, counted = counted_domain(terms, known), {released.table.variables for released in known.released}
    picked = map(domain.coarsest, picked_pairs(known.families, known.further))
    new = tuple(pair for pair in picked if pair not in counted)
    return new or tuple((variable,) for variable in range(terms.domain.count))


def questions(terms: Terms, step: Step, known: Knowledge) -> dict[int, Task]:
    """What every party of the step is asked."""
    plan, name = terms.plan_hash, step.name
    if step.stage in ("initial", "further"):
        return dict.fromkeys(step.parties, _placing_question(terms, step, known))
    if step.stage == "models":
        return {party: Learn(plan=plan, step=name) for party in step.parties}
    tables = tables_of(terms, step, known)
    if step.stage == "update" and terms.plan.update == "replace":
        return _replacing_questions(terms, step, known, tables)
    return {party: Count(plan=plan, step=name, tables=tables, merged=known.merged) for party in step.parties}


def _placing_question(terms: Terms, step: Step, known: Knowledge) -> Place:
    families = tuple((family.child, family.parents) for family in known.families)
    place = Place(plan=terms.plan_hash, step=step.name, families=families, further=known.further)
    if known.guide is None:
        return place
    guide = known.guide
    shown = {"merged": known.merged, "cliques": guide.cliques, "parents": guide.parents, "blob": guide.blob}
    return place.model_copy(update=shown)


def _replacing_questions(terms: Terms, step: Step, known: Knowledge, tables: tuple[Variables, ...]) -> dict[int, Task]:
    plan, name, newest = terms.plan_hash, step.name, step.parties[-1]
    kept = _unchanged(known, tables)
    asked: dict[int, Task] = {newest: Count(plan=plan, step=name, tables=tables, masked=kept)}
    for predecessor in step.parties[:-1]:
        asked[predecessor] = TakeBack(plan=plan, step=name, tables=tuple(tables[i] for i in kept))
    return asked


def _unchanged(known: Knowledge, tables: Sequence[Variables]) -> tuple[int, ...]:
    """Which tables go on from the update before; a changed family starts anew."""
    former = {statistic.table.variables for statistic in known.statistics.values()}
    return tuple(index for index, table in enumerate(tables) if table in former)


def conclude(terms: Terms, step: Step, known: Knowledge, replies: Mapping[int, Reply], sums: CuratorSums) -> Knowledge:
    """What the curator knows after a step's answers."""
    conclusions: dict[str, Callable[..., Knowledge]] = {
        "correlations": _correlations,
        "initial": _initial,
        "tables": _parameters,
        "further": _further,
        "update": _update,
        "candidates": _candidates,
        "models": _models,
        "parameters": _parameters,
    }
    return conclusions[step.stage](terms, step, known, replies, sums)


def pass_layout(terms: Terms, step: Step, known: Knowledge) -> Layout:
    """Of a pass in which everybody answers."""
    return layout_of(terms, step, tables_of(terms, step, known), terms.plan.total_rows, known.merged)


def _opened(terms: Terms, step: Step, known: Knowledge, replies: Mapping[int, Reply], sums: CuratorSums) -> list[Table]:
    """The totals of a pass, as tables with the variance of the noise that stayed in them."""
    tables = tables_of(terms, step, known)
    layout, domain = pass_layout(terms, step, known), counted_domain(terms, known)
    totals = sums.open(layout, [replies[party].blob for party in step.parties])
    variances = {rate: retained_variance(terms.plan, rate) for rate in set(layout.rates)}
    return [
        Table(variables, counts.reshape(domain.shape(variables)), variances[rate])
        for variables, counts, rate in zip(tables, layout.split(totals), layout.rates, strict=True)
    ]


def _release(known: Knowledge, step: Step, tables: Sequence[Table], rows: int) -> Knowledge:
    return replace(known, released=(*known.released, *(Released(step.name, table, rows) for table in tables)))


def _correlations(
    terms: Terms, step: Step, known: Knowledge, replies: Mapping[int, Reply], sums: CuratorSums
) -> Knowledge:
    views = _opened(terms, step, known, replies, sums)
    if terms.plan.views == "single":
        merged = merged_by(views, terms.table_noise(step)) if terms.plan.merging else ()
        return replace(_release(known, step, views, terms.plan.total_rows), merged=merged)
    pairs = pair_tables(terms.cover, views, terms.domain)
    information = mutual_information_matrix(pairs, terms.domain, terms.plan.total_rows)
    return replace(_release(known, step, views, terms.plan.total_rows), information=information)


def _initial(terms: Terms, step: Step, known: Knowledge, replies: Mapping[int, Reply], _sums: CuratorSums) -> Knowledge:
    (party,) = step.parties
    placed = checked_families(terms, party, replies[party], known.families, terms.plan.picks[party])
    return replace(known, families=known.families + placed)


def checked_families(
    terms: Terms, party: int, reply: Reply, before: tuple[Family, ...], count: int
) -> tuple[Family, ...]:
    """The families of an answer, if they go on with the network and keep the plan's limits."""
    assert isinstance(reply, Placed | Learned)
    culprit = terms.plan.members[party].name
    families = tuple(Family(child, parents) for child, parents in reply.families)
    limits = terms.limits if isinstance(reply, Placed) else terms.local_limits(party)
    if len(families) != count:
        raise FailedCheck(culprit, f"was to place {count} variables and placed {len(families)}")
    try:
        in_order = Network.of((*before, *families), terms.domain).families
    except ValueError as error:
        raise FailedCheck(culprit, f"placed families that make no network: {error}") from None
    if in_order != (*before, *families):
        raise FailedCheck(culprit, "placed a variable before its parents")
    for family in families:
        if not limits.admits(terms.domain, family.child, family.parents):
            raise FailedCheck(culprit, f"placed variable {family.child} in a family larger than the plan allows")
    return families


def _update(terms: Terms, step: Step, known: Knowledge, replies: Mapping[int, Reply], sums: CuratorSums) -> Knowledge:
    if terms.plan.update == "joint":
        tables, rows = _opened(terms, step, known, replies, sums), terms.plan.total_rows
    else:
        tables, rows = _delivered(terms, step, known, replies), terms.plan.members[step.parties[-1]].rows
    statistics = {table.variables[0]: _merged(terms, known, table, rows) for table in tables}
    network = best_network(
        known.frontier,
        {child: statistic.table for child, statistic in statistics.items()},
        {child: statistic.rows for child, statistic in statistics.items()},
        terms.limits,
        terms.domain,
    )
    known = known if terms.plan.update == "replace" else _release(known, step, tables, rows)
    return replace(known, statistics=statistics, families=network.families)


def _delivered(terms: Terms, step: Step, known: Knowledge, replies: Mapping[int, Reply]) -> list[Table]:
    """One party's noisy tables; with `replace`, those that go on have the predecessor's noise taken out."""
    *predecessors, newest = step.parties
    tables = tables_of(terms, step, known)
    layout = layout_of(terms, step, tables, terms.plan.members[newest].rows)
    parts = layout.split(words_from_bytes(replies[newest].blob))
    kept = _unchanged(known, tables)
    for predecessor in predecessors if kept else ():
        removed = replies[predecessor].blob
        for index, part in zip(
            kept, split_vector(words_from_bytes(removed), [layout.cells[i] for i in kept]), strict=True
        ):
            parts[index] = parts[index] + part
    return [
        Table(variables, counts.view(np.int64).reshape(terms.domain.shape(variables)), terms.plan.law.variance(rate))
        for variables, counts, rate in zip(tables, parts, layout.rates, strict=True)
    ]


def _merged(terms: Terms, known: Knowledge, table: Table, rows: int) -> Statistic:
    """The family's statistic with one more delivery: added up while the family is the same, else begun anew."""
    former = known.statistics.get(table.variables[0])
    if former is None or former.table.variables != table.variables:
        return Statistic(table, rows)
    # With `replace`, the predecessor's noise has gone and the newest share has taken its place.
    variance = table.variance + (0.0 if terms.plan.update == "replace" else former.table.variance)
    return Statistic(Table(table.variables, former.table.counts + table.counts, variance), former.rows + rows)


def _candidates(
    terms: Terms, step: Step, known: Knowledge, replies: Mapping[int, Reply], sums: CuratorSums
) -> Knowledge:
    tables = _opened(terms, step, known, replies, sums)
    informations = [_information(table, terms.plan.total_rows) for table in tables]
    best = tables[informations.index(max(informations))].variables
    return replace(known, families=(*known.families, Family(best[0], best[1:])))


def _information(table: Table, total: int) -> float:
    projected = project_to_simplex(table.counts, total)
    return mutual_information(projected.reshape(projected.shape[0], -1))


def _parameters(
    terms: Terms, step: Step, known: Knowledge, replies: Mapping[int, Reply], sums: CuratorSums
) -> Knowledge:
    known = _release(known, step, _opened(terms, step, known, replies, sums), terms.plan.total_rows)
    if step.stage == "parameters" and terms.plan.estimate == "graphical-model":
        tables = [released.table for released in known.released]
        network = network_of(tables, counted_domain(terms, known), terms.plan.total_rows, terms.plan.law)
        return replace(known, families=network.families)
    return known


def _further(terms: Terms, step: Step, known: Knowledge, replies: Mapping[int, Reply], _sums: CuratorSums) -> Knowledge:
    (party,) = step.parties
    reply, culprit = replies[party], terms.plan.members[party].name
    assert isinstance(reply, Placed)
    found = tuple(tuple(sorted((child, *parents))) for child, parents in reply.families)
    taken = picked_pairs(known.families, known.further)
    if len(found) > terms.plan.further[party]:
        raise FailedCheck(culprit, f"was to pick {terms.plan.further[party]} pairs and picked {len(found)}")
    for pair in found:
        if len(set(pair)) != 2 or max(pair) >= terms.domain.count or pair in taken or found.count(pair) > 1:
            raise FailedCheck(culprit, f"picked {pair}, which is no new pair of variables")
    return replace(known, further=(*known.further, *found))


def _models(terms: Terms, step: Step, known: Knowledge, replies: Mapping[int, Reply], _sums: CuratorSums) -> Knowledge:
    models = tuple(local_model(terms, step, party, replies[party]) for party in step.parties)
    for model in models:
        known = _release(known, step, model.tables, model.rows)
    return replace(known, models=models)


def local_model(terms: Terms, step: Step, party: int, reply: Reply) -> LocalModel:
    """What one party's answer says; it is checked on the way."""
    families = checked_families(terms, party, reply, (), terms.domain.count)
    network = Network(families)
    member = terms.plan.members[party]
    variables = tuple(maximal_families(network, terms.domain))
    layout = layout_of(terms, parameters_of_model(terms, step), variables, member.rows)
    if len(reply.blob) != WORD_BYTES * layout.size:
        raise FailedCheck(member.name, f"sent {len(reply.blob)} bytes of tables, {WORD_BYTES * layout.size} expected")
    counts = layout.split(words_from_bytes(reply.blob).view(np.int64))
    tables = tuple(
        Table(table, part.reshape(terms.domain.shape(table)), terms.plan.law.variance(rate))
        for table, part, rate in zip(variables, counts, layout.rates, strict=True)
    )
    return LocalModel(network, tables, member.rows)
