"""A run phase by phase, for its analyst: the views, the network as each step left it, and what each phase brought.

All of it follows from the plan and from released tables, so it costs no privacy. It does not know HTML or any row.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protocol.model.run_model import RunModel
from protocol.plan.step import StageName
from protocol.plan.terms import Terms
from protocol.run.synthesis import fitted
from protocol.stages.dependence import counts_alone
from protocol.stages.knowledge import Knowledge, Released
from protocol.stages.reference_rows import Guide, reference_of_guide
from protocol.tables.counting import Rows
from protocol.tables.domain import Variables

Json = dict[str, Any]
_ROWS = 1 << 15  # rows of a model that are compared: they show its shares to within a few thousandths
_MOST_COMPARED = 60  # attributes; with more, a model for each phase takes minutes


def phases(terms: Terms, known: Knowledge, model: RunModel | None) -> Json:
    """`model` is fitted to all tables (`protocol.run.synthesis.fitted`)."""
    return {
        "views": _views(terms, known),
        "networks": networks(terms, known),
        "distances": list(_distances(terms, known, model)),
    }


def _views(terms: Terms, known: Knowledge) -> Json | None:
    """Return the attributes of every view that the parties counted, and whether it counts halves of them."""
    if not any(one.step == "correlations" for one in known.released):
        return None
    has_views = terms.plan.views != "single" and not counts_alone(terms, known)
    cover = terms.cover if has_views else None
    if cover is None:
        return None
    held = [sorted({_attribute(terms)[variable] for variable in view}) for view in cover.views]
    return {
        "halves": terms.plan.views == "halves",
        "attributes": [[terms.schema.names[number] for number in view] for view in held],
        "cells": list(cover.view_cells),
    }


def networks(terms: Terms, known: Knowledge) -> list[Json]:
    """Return, for each step that changed the network, its pairs of attributes, and the frontier they came from."""
    found, before = [], set[Variables]()
    for station in known.stations:
        step = next(step for step in terms.steps if step.name == station.step)
        pairs, frontier = _of_attributes(terms, station.pairs), _of_attributes(terms, station.frontier)
        found.append(
            {
                "step": step.name,
                "stage": step.stage,
                "parties": [terms.plan.members[party].name for party in step.parties],
                "pairs": _named(terms, pairs),
                "new": _named(terms, pairs - before),
                "frontier": _named(terms, frontier),
                "dropped": _named(terms, frontier - pairs),
            }
        )
        before = pairs
    return found


def _attribute(terms: Terms) -> dict[int, int]:
    return {variable: number for number, block in enumerate(terms.blocks) for variable in block.variables}


def _of_attributes(terms: Terms, pairs: Sequence[Variables]) -> set[Variables]:
    """Return the pairs of attributes behind pairs of variables. Pairs inside one attribute are left out."""
    attribute = _attribute(terms)
    ends = ({attribute[terms.domain.base(variable)] for variable in pair} for pair in pairs)
    return {tuple(sorted(both)) for both in ends if len(both) == 2}


def _named(terms: Terms, pairs: set[Variables]) -> list[list[str]]:
    return [[terms.schema.names[number] for number in pair] for pair in sorted(pairs)]


# What each phase brought


def _distances(terms: Terms, known: Knowledge, model: RunModel | None) -> Iterator[Json]:
    """Yield, for each stage with tables, how far a model of all tables so far is from the model of all tables.

    The distance is the share of rows that would have to change, on average over all pairs of attributes.
    """
    if model is None or not 1 < terms.domain.count <= _MOST_COMPARED:
        return
    stage_of_step = {step.name: step.stage for step in terms.steps}
    stages: list[StageName] = list(dict.fromkeys(stage_of_step[one.step] for one in known.released))
    last = _pairs_in_model(terms, known, Guide.of(model.model, len(known.released)))
    for number, stage in enumerate(stages):
        so_far = tuple(one for one in known.released if stage_of_step[one.step] in stages[: number + 1])
        own = [one for one in so_far if stage_of_step[one.step] == stage]
        is_last = len(so_far) == len(known.released)
        found = last if is_last else _pairs_in_model(terms, known, _guide(terms, known, so_far, model))
        distance = float(np.mean([np.abs(one - other).sum() / 2 for one, other in zip(found, last, strict=True)]))
        yield {
            "stage": stage,
            "tables": len(own),
            "cells": sum(one.table.counts.size for one in own),
            "only_guides": all(one.is_halved for one in own),
            "distance": round(distance, 6),
        }


def _guide(terms: Terms, known: Knowledge, released: tuple[Released, ...], last: RunModel) -> Guide:
    """Return a model of these tables: the one that parties were sent, if it knew the same and the last one is like it.

    Models that parties are sent leave the order of categories out.
    """
    if known.guide is not None and known.guide.tables == len(released) and not last.merging.draws:
        return known.guide
    model = fitted(terms, replace(known, released=released))
    assert model is not None
    return Guide.of(model.model, len(released))


def _pairs_in_model(terms: Terms, known: Knowledge, guide: Guide) -> list[NDArray[np.float64]]:
    """Return the shares of every pair of attributes in a model."""
    rows: Rows = reference_of_guide(terms, known.merged, guide, _ROWS)
    pairs = list(combinations(range(terms.domain.count), 2))
    return [counts / rows.count for counts in rows.tables(pairs)]
