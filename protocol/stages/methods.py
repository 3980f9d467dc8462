"""The methods: the steps of each in their order, with parties and costs, from the plan alone.

It does not know tables, messages or noise.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar

import numpy as np

from protocol.network.network import Family
from protocol.options import Method
from protocol.plan.plan import Plan
from protocol.plan.step import StageName, Step, lone_step, shared_step
from protocol.plan.terms import Terms
from protocol.plan.tuning import OF_HALVES
from protocol.stages.guided import guided_steps, picks_budget
from protocol.stages.initial import initial_steps
from protocol.stages.knowledge import Knowledge
from protocol.stages.registry import UPDATES
from protocol.tables.encoding import Encoding
from protocol.tables.found_edges import counted
from protocol.tables.schema import Schema

Everybody = tuple[int, ...]
Order = Mapping[StageName, tuple[StageName, ...]]


class MethodDefinition(ABC):
    budgets: tuple[str, ...]  # the purpose of each part of a plan's split
    order: ClassVar[Order]  # the stages that may follow each stage; after a stage without any, the run may end

    @abstractmethod
    def steps(self, plan: Plan, everybody: Everybody, variables: int) -> list[Step]:
        """The steps after joining."""

    def first_families(self, _terms: Terms, _first_variable: int) -> tuple[Family, ...]:
        """The network before any answer."""
        return ()


class DpSubn(MethodDefinition):
    """The five phases of DP-SUBN; the fifth, synthesis, needs no answers."""

    budgets = ("correlations", "initial network", "frontier and updates", "parameters")
    order: ClassVar[Order] = {
        "joining": ("edges", "levels", "correlations", "initial", "parameters"),
        "edges": ("levels", "correlations"),
        "levels": ("correlations", "parameters"),
        "correlations": ("initial", "update", "frontier", "parameters"),
        "initial": ("initial", "update", "frontier", "parameters"),
        "update": ("update", "frontier", "parameters"),
        "frontier": ("update", "parameters"),
        "parameters": (),
    }

    def steps(self, plan: Plan, everybody: Everybody, _variables: int) -> list[Step]:
        _, e2, e3, e4 = plan.split
        found = first_phase(plan)
        if e2:
            found += initial_steps(plan, e2)
        if e3 and plan.rule:
            found += UPDATES[plan.rule].steps(plan, everybody)
        last = plan.last_picks if plan.picks_pairs else 0
        return [*found, shared_step(plan, "parameters", "parameters", e4, last)]

    def first_families(self, terms: Terms, _first_variable: int) -> tuple[Family, ...]:
        """Without phase 2, every variable as a family without parents; otherwise nothing."""
        return () if terms.plan.split[1] else tuple(Family(v) for v in range(terms.domain.count))


class Guided(MethodDefinition):
    """Single columns or views, a tree of pairs and further pairs: each picked because the model answers it worst."""

    budgets = ("columns or views", "picks", "tables of the first picks", "tables of the last picks")
    order: ClassVar[Order] = {
        "joining": ("edges", "levels", "correlations"),
        "edges": ("levels", "correlations"),
        "levels": ("initial", "parameters"),
        "correlations": ("initial", "parameters"),
        "initial": ("initial", "tables", "parameters"),
        "tables": ("further",),
        "further": ("further", "tables", "parameters"),
        "parameters": (),
    }

    def steps(self, plan: Plan, _everybody: Everybody, _variables: int) -> list[Step]:
        found = first_phase(plan)
        if plan.split[1]:
            found += initial_steps(plan, picks_budget(plan))
        if plan.split[2]:
            found += guided_steps(plan)
        return [*found, shared_step(plan, "parameters", "parameters", plan.split[3])]

    def first_families(self, terms: Terms, first_variable: int) -> tuple[Family, ...]:
        return METHODS["dp-subn"].first_families(terms, first_variable)


class DpCcbn(MethodDefinition):
    budgets = ("structure", "parameters")
    order: ClassVar[Order] = {
        "joining": ("candidates", "parameters"),
        "candidates": ("candidates", "parameters"),
        "parameters": (),
    }

    def steps(self, plan: Plan, _everybody: Everybody, variables: int) -> list[Step]:
        e1, e2 = plan.split
        rounds = variables - 1 if e1 else 0
        found = [shared_step(plan, f"candidates/{i + 1}", "candidates", e1 / rounds) for i in range(rounds)]
        return [*found, shared_step(plan, "parameters", "parameters", e2)]

    def first_families(self, _terms: Terms, first_variable: int) -> tuple[Family, ...]:
        """The first variable, which was drawn at random without reading rows."""
        return (Family(first_variable),)


class Independent(MethodDefinition):
    budgets = ("structure", "parameters")
    order: ClassVar[Order] = {"joining": ("models",), "models": ()}

    def steps(self, plan: Plan, everybody: Everybody, _variables: int) -> list[Step]:
        return [lone_step(plan, "models", "models", everybody, sum(plan.split, Fraction(0)))]


METHODS: Mapping[Method, MethodDefinition] = {
    "dp-subn": DpSubn(),
    "guided": Guided(),
    "dp-ccbn": DpCcbn(),
    "independent": Independent(),
}


def first_phase(plan: Plan) -> list[Step]:
    """The passes before any pick: edges of bins; then views of every pair, every variable alone, or both of halves."""
    budget = plan.split[0]
    found: list[Step] = []
    if plan.edges:
        found.append(shared_step(plan, "edges", "edges", plan.edges_budget))
    if not budget:
        return found
    for_views = budget * (OF_HALVES if plan.views == "halves" else 1)
    if plan.views != "pairs":
        alone = budget - for_views if plan.views == "halves" else budget
        found.append(shared_step(plan, "levels", "levels", alone))
    if plan.views != "single":
        found.append(shared_step(plan, "correlations", "correlations", for_views))
    return found


def terms_of(plan: Plan, schema: Schema) -> Terms:
    """The terms of a plan, whether or not it can be run (`protocol.run.agreement` refuses plans that cannot)."""
    found = counted(schema, plan.edges)
    encoding = Encoding.of(found, plan.encoding)
    return Terms(plan, found, encoding, steps(plan, encoding.domain.count), schema)


def steps(plan: Plan, variables: int) -> tuple[Step, ...]:
    """All steps of a run over `variables` variables."""
    everybody, method = tuple(range(plan.parties)), METHODS[plan.method]
    found = [Step("joining", "joining", everybody), *method.steps(plan, everybody, variables)]
    assert all(after.stage in method.order[before.stage] for before, after in pairwise(found)), found
    return tuple(_priced(plan, _with_others(plan, found)))


def beginning(terms: Terms, first_variable: int) -> Knowledge:
    """The curator's knowledge before any answer."""
    count = terms.domain.count
    families = METHODS[terms.plan.method].first_families(terms, first_variable)
    return Knowledge(np.zeros((count, count)), families)


def _with_others(plan: Plan, found: Sequence[Step]) -> Iterator[Step]:
    """The steps, each party's first answer with what other parties' own releases cost the persons in its table.

    Privacy: a person with rows at m parties also pays for what m - 1 others release alone, at worst the dearest. This
    party does not see these releases, so they are spent before any answer of its own counts (`people.md`).
    """
    alone = dict.fromkeys(found[0].parties, Fraction(0))
    for step in found:
        alone = _added(alone, step.spends) if step.is_alone else alone
    waiting = {party: _dearest(plan.parties_per_person - 1, alone, party) for party in alone}
    yield found[0]
    for step in found[1:]:
        first = {party: others for party in step.parties if (others := waiting.pop(party, Fraction(0)))}
        yield replace(step, spends=_added(step.spends, first))


def _added(one: Mapping[int, Fraction], other: Mapping[int, Fraction]) -> dict[int, Fraction]:
    return {party: one.get(party, Fraction(0)) + other.get(party, Fraction(0)) for party in {**one, **other}}


def _dearest(count: int, alone: Mapping[int, Fraction], party: int) -> Fraction:
    """The sum of the largest `count` of what the parties spend alone, `party` left out."""
    others = sorted((spend for other, spend in alone.items() if other != party), reverse=True)
    return sum(others[:count], Fraction(0))


def _priced(plan: Plan, found: Iterable[Step]) -> Iterator[Step]:
    """The steps with their charges.

    Privacy: rho adds up and epsilon(rho) is concave. With zcdp a step is therefore charged the epsilon that it adds
    to all steps before it. A run that ends early has cost the epsilon of the steps that were answered.
    """
    spent = dict.fromkeys(range(plan.parties), Fraction(0))
    for step in found:
        charges = {}
        for party, spend in step.spends.items():
            before, after = spent[party], spent[party] + spend
            epsilon = _worth(plan, after) - _worth(plan, before)
            charges[party] = (epsilon, Fraction(0) if before else plan.delta)
            spent[party] = after
        yield replace(step, charges=charges)


def _worth(plan: Plan, spent: Fraction) -> Fraction:
    return plan.definition.epsilon_spent(spent, plan.epsilon, plan.delta)
