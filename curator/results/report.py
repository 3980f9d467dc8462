"""Analyst's report: what was done and promised, how good each number is, what the table supports, how to cite it.

The report is one HTML file without scripts. Its style and pictures are in the file, so it loads nothing else.
It knows nothing beyond the report's JSON: both are made from the same dictionary.
"""

import base64
from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crypto.signing import fingerprint
from curator.rendering.templating import render
from curator.results import multiple_tables, phase_pictures, report_svg
from curator.results.number_figures import FIGURES
from curator.results.report_figures import analysis
from curator.store.run_records import ReplyRecord, spent, spent_delta
from protocol.forecast.costs import forecast
from protocol.forecast.error import predicted
from protocol.plan.promises import not_promised, odds_factor, promises
from protocol.plan.rationale import reasons
from protocol.plan.terms import Terms
from protocol.run.manifest import Cost, dependence, edges
from protocol.stages.knowledge import Knowledge, counted_domain
from protocol.tables.spreadsheets import formulas_in

Json = dict[str, Any]
STYLE = (files("curator.rendering") / "templates" / "report.css").read_text(encoding="utf-8")
_STYLE_HASH = base64.b64encode(sha256(STYLE.encode()).digest()).decode()
# The page may use this style and load nothing, whether it is served or opened from a disk.
POLICY = f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; form-action 'none'"
_MOST_LISTED = 60


def report_json(
    terms: Terms,
    known: Knowledge,
    replies: Sequence[ReplyRecord],
    costs: Sequence[Cost],
    drawn: Sequence[NDArray[Any]],
    curator_key: bytes,
    finished: str,
    by_phase: Json,
) -> Json:
    """Return the report as JSON. `drawn` counts every attribute's categories in the published table.

    `by_phase` is the run phase by phase (`curator.results.phases`).
    """
    return {
        **_of_plan(terms, curator_key, finished),
        "parties": _parties(terms, replies),
        "network": [edge.model_dump(mode="json") for edge in edges(terms, known)],
        "stages": [cost.model_dump(mode="json") for cost in costs],
        **_expectations(terms),
        "dependence": found.model_dump(mode="json") if (found := dependence(terms, known)) else None,
        "phases": by_phase,
        "released": _released(terms, known),
        "rows": terms.plan.rows,
        "analysis": analysis(terms, known, drawn),
    }


def _of_plan(terms: Terms, curator_key: bytes, finished: str) -> Json:
    """Return the facts that follow from the plan, with its promises."""
    plan = terms.plan
    return {
        "run": plan.run,
        "title": terms.schema.title,
        "finished": finished,
        "curator": fingerprint(curator_key),
        "plan_hash": terms.plan_hash,
        "schema_hash": plan.schema_hash,
        "method": plan.method,
        "preset": plan.preset,
        "privacy": plan.privacy,
        "epsilon": str(plan.epsilon),
        "delta": str(plan.delta),
        "odds_factor": odds_factor(plan.epsilon),
        "insiders": plan.insiders,
        "rows_per_person": plan.rows_per_person,
        "parties_per_person": plan.parties_per_person,
        "noise": plan.noise,
        "estimate": plan.estimate,
        "promises": [vars(promise) for promise in promises(plan)],
        "not_promised": list(not_promised()),
        "like_formulas": formulas_in(terms.schema),
    }


def _parties(terms: Terms, replies: Sequence[ReplyRecord]) -> list[Json]:
    """Return the rows and the spending of each party."""
    return [
        {
            "name": member.name,
            "rows": member.rows,
            "rows_per_person": member.rows_per_person,
            "spent": str(spent(replies, member.name)),
            "delta": str(spent_delta(replies, member.name)),
            "phases": _by_stage(terms, replies, member.name),
        }
        for member in terms.plan.members
    ]


def _expectations(terms: Terms) -> Json:
    """Return the errors that were predicted before the run, and the reasons for the plan."""
    return {
        "expected": [
            {"step": step.name, "error": step.error, "tables": step.tables, "cells": step.cells}
            for step in forecast(terms).steps
        ],
        "predicted": vars(predicted(terms)),
        "why": list(reasons(terms)),
        "against": list(terms.plan.against),
    }


def _released(terms: Terms, known: Knowledge) -> list[Json]:
    """Return the variables and the noise of every released table."""
    counted, halved = counted_domain(terms, known), terms.domain.with_merged(known.halves)
    return [
        {
            "step": one.step,
            "variables": (halved if one.is_halved else counted).names(one.table.variables),
            "variance": one.table.variance,
        }
        for one in known.released
    ]


def _by_stage(terms: Terms, replies: Sequence[ReplyRecord], party: str) -> dict[str, str]:
    """Return the cost of each stage for this party."""
    stages: dict[str, list[str]] = {}
    for step in terms.steps:
        stages.setdefault(step.stage, []).append(step.name)
    return {
        stage: str(spent([reply for reply in replies if reply.step in names], party)) for stage, names in stages.items()
    }


def report_html(report: Mapping[str, Any]) -> str:
    found, names = report["analysis"], report["analysis"]["pairs"]["attributes"]
    by_phase = report["phases"]
    modelled = len(found["pairs"]["modelled"])
    return render(
        "report.html",
        style=STYLE,
        policy=POLICY,
        report=report,
        rows=sum(party["rows"] for party in report["parties"]),
        stages=[stage for stage in report["parties"][0]["phases"] if stage != "joining"],
        bars=[(one, report_svg.marginal(one)) for one in found["marginals"]],
        heat_map=report_svg.heat_map(found["pairs"]),
        classes=report_svg.CLASSES,
        network=report_svg.network(names, found["edges"]),
        views=by_phase["views"] and phase_pictures.views(names, by_phase["views"]),
        most_views=phase_pictures.MOST_VIEWS,
        networks=[
            (one, phase_pictures.network(names, one)) for one in phase_pictures.drawn_networks(by_phase["networks"])
        ],
        strongest=sorted(found["edges"], key=lambda edge: -float(edge["bits"]))[:_MOST_LISTED],
        modelled=modelled,
        implied=len(names) * (len(names) - 1) // 2 - modelled,
        guidance=found["guidance"],
        good_for={figure: _named(found["numbers"], figure) for figure in FIGURES},
        unsure=[one["attribute"] for one in found["numbers"] if "mean" not in one["good_for"]],
        copies_purpose=multiple_tables.PURPOSE,
        copies_rule=multiple_tables.rule(found["guidance"]["rows"], report["rows"]),
        copies_condition=multiple_tables.CONDITION,
    )


def _named(numbers: Sequence[Json], figure: str) -> list[str]:
    return [one["attribute"] for one in numbers if figure in one["good_for"]]


class Tally:
    """Count of every attribute's categories, kept while the table is written."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.counts: list[NDArray[Any]] = [np.zeros(size, dtype=np.int64) for size in sizes]

    def add(self, codes: Sequence[NDArray[Any]]) -> None:
        for counts, column in zip(self.counts, codes, strict=True):
            counts += np.bincount(column, minlength=len(counts))
