"""Phase 2: one party after another places its share of the variables, picking each privately on its own rows.

It does not know what the network is used for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

from crypto.randomness import Stream
from protocol.messages.tasks import Place, Placed, Reply, Task
from protocol.network.network import Family
from protocol.picks.by_model import tree_options
from protocol.plan.plan import Plan
from protocol.plan.step import StageName, Step, lone_step
from protocol.plan.terms import Terms
from protocol.secure_sum.sums import CuratorSums
from protocol.stages.knowledge import Knowledge
from protocol.stages.party_state import PartyState
from protocol.stages.picking import (
    Options,
    Picks,
    check_place,
    checked_families,
    families_of,
    first_variable,
    judge_of,
    pick_by_model,
    pick_by_score,
    wire_families,
)
from protocol.tables.any_rows import AnyRows
from protocol.tables.domain import Variables


def initial_steps(plan: Plan, budget: Fraction, stage: StageName = "initial") -> list[Step]:
    """A step of this stage for every party that places variables, in turn."""
    found = []
    for party, picks in enumerate(plan.picks):
        if picks:
            # The very first variable is drawn without reading rows, so it costs nothing (protocol/papers.md, no. 6).
            is_private = picks > 1 or any(plan.picks[:party])
            step = lone_step(plan, f"{stage}/{party + 1}", stage, (party,), budget)
            found.append(step if is_private else replace(step, spends={}))
    return found


class Initial(Picks):
    name: StageName = "initial"
    label = "First network"

    def conclude(
        self, terms: Terms, step: Step, known: Knowledge, replies: Mapping[int, Reply], _sums: CuratorSums
    ) -> Knowledge:
        (party,) = step.parties
        picks = terms.plan.picks[party]
        placed = checked_families(terms, party, replies[party], known.families, picks, terms.limits)
        return replace(known, families=known.families + placed)

    def check(self, state: PartyState, step: Step, task: Task) -> None:
        assert isinstance(task, Place)
        check_place(state, step, task, sum(state.terms.plan.picks[: state.me]))

    def answer(
        self, state: PartyState, step: Step, task: Task, rows: AnyRows, stream: Stream
    ) -> tuple[PartyState, Reply]:
        assert isinstance(task, Place)
        terms, before = state.terms, families_of(task)
        picks = terms.plan.picks[state.me]
        if terms.plan.picks_pairs:
            found = first_variable(terms, before, picks, stream)
            judge, options = judge_of(state, step, task, rows), _tree_options(terms, before)
            _expect_pairs(rows.over(terms.domain.with_merged(task.merged)), before, found)
            found = pick_by_model(terms, judge, found, picks, step.budget, options, stream)
        else:
            found = pick_by_score(terms, before, picks, step.budget, terms.limits, rows, stream)
        return state, Placed(plan=terms.plan_hash, step=step.name, families=wire_families(found))


def _expect_pairs(rows: AnyRows, before: Sequence[Family], found: Sequence[Family]) -> None:
    """Announce every pair that a pick of this step may offer: one of its variables is not placed yet."""
    placed, coarse = {family.child for family in (*before, *found)}, rows.domain.coarsest(range(rows.domain.count))
    pairs = [pair for pair in combinations(range(rows.domain.count), 2) if not placed.issuperset(pair)]
    rows.expect([(coarse[one], coarse[other]) for one, other in pairs])


def _tree_options(terms: Terms, before: Sequence[Family]) -> Options:
    def options(found: Sequence[Family]) -> list[Variables]:
        every = tree_options(terms.domain.count, [family.child for family in (*before, *found)])
        return [option for option in every if terms.limits.admits(terms.domain, option[0], option[1:])]

    return options
