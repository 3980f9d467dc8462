"""What is counted in a step and in which layout: worked out alike by the curator and by every party.

It does not know answers or noise values.
"""

from collections.abc import Sequence
from dataclasses import replace

from protocol.network.network import Family
from protocol.network.parent_sets import candidates
from protocol.plan.schedule import Step
from protocol.plan.terms import Terms
from protocol.privacy.layout import Layout
from protocol.tables.domain import Merged, Variables


def layout_of(
    terms: Terms, step: Step, tables: Sequence[Variables], rows: int, merged: Sequence[Merged] = ()
) -> Layout:
    """These tables over that many rows, sharing the step's budget."""
    cells = tuple(map(terms.domain.with_merged(merged).cells, tables))
    return Layout(cells, terms.noise_rates(step, cells), rows)


def candidate_families(terms: Terms, placed: Sequence[Family]) -> list[Family]:
    """All that DP-CCBN compares in one iteration."""
    inside = [family.child for family in placed]
    outside = [v for v in range(terms.domain.count) if v not in inside]
    return [Family(*pair) for pair in candidates(terms.domain, inside, outside, terms.limits)]


def picked_pairs(families: Sequence[Family], further: Sequence[Variables]) -> list[Variables]:
    """What score M has picked so far: the pairs of a network with one parent at most, and those beside it."""
    return [*(tuple(sorted(family.variables)) for family in families if family.parents), *further]


def parameters_of_model(terms: Terms, step: Step) -> Step:
    """The part of method independent's single step that pays for the tables; the rest pays for the structure."""
    return replace(step, budget=terms.plan.split[1])


def is_sum_pass(terms: Terms, step: Step) -> bool:
    """Whether everybody answers and the curator learns only the total."""
    return step.stage in ("correlations", "candidates", "tables", "parameters") or (
        step.stage == "update" and terms.plan.update == "joint"
    )
