"""Phase 3 with `update=guided`: each round counts the picked pairs, then picks those that the model reproduces worst.

It does not know how pairs are scored (`protocol.picks.by_model`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from crypto.randomness import Stream
from protocol.errors import FailedCheck
from protocol.messages.tasks import Place, Placed, Reply, Task
from protocol.network.network import Family
from protocol.picks.by_model import admissible_pairs
from protocol.plan.plan import Plan
from protocol.plan.step import Step, shared_step
from protocol.plan.terms import Terms
from protocol.secure_sum.sums import CuratorSums
from protocol.stages import picked_tables
from protocol.stages.knowledge import Knowledge
from protocol.stages.party_state import PartyState
from protocol.stages.picked_tables import picked_pairs, unmeasured
from protocol.stages.picking import Picks, check_place, families_of, judge_of, pick_by_model, wire_families
from protocol.stages.stage import Size, Stage
from protocol.stages.sum_pass import SumPass
from protocol.stages.updates.rule import UpdateRule
from protocol.tables.counting import Rows
from protocol.tables.domain import Variables


class Guided(UpdateRule):
    def initial_budget(self, plan: Plan, budget: Fraction) -> Fraction:
        """The first network's part of the budget for picks, which equals that of every round."""
        return budget / (1 + plan.guided_rounds)

    def steps(self, plan: Plan, everybody: tuple[int, ...]) -> list[Step]:
        found = []
        for round_ in range(plan.guided_rounds):
            budget = plan.split[2] / plan.guided_rounds
            found.append(shared_step(f"tables/{round_ + 1}", "tables", everybody, budget))
            found += _further_steps(plan, round_, self.initial_budget(plan, plan.split[1]))
        return found

    @property
    def stages(self) -> tuple[Stage, ...]:
        return Tables(), Further()


def _further_steps(plan: Plan, round_: int, budget: Fraction) -> list[Step]:
    return [
        Step(f"further/{round_ * plan.parties + party + 1}", "further", (party,), budget, {party: budget})
        for party, picks in enumerate(plan.further)
        if picks
    ]


class Tables(SumPass):
    """A pass over the pairs that were picked before."""

    name = "tables"
    label = "Tables of what was picked"

    def weights(self, terms: Terms, cells: Sequence[int]) -> Sequence[int]:
        return picked_tables.weights(terms, cells)

    def narrowest_rate(self, terms: Terms, step: Step) -> Fraction | None:
        return picked_tables.narrowest_rate(terms, step)

    def size(self, terms: Terms, _step: Step) -> Size:
        return Size(terms.domain.count, terms.domain.count * terms.limits.largest_family(terms.domain))

    def tables(self, terms: Terms, known: Knowledge) -> tuple[Variables, ...]:
        return unmeasured(terms, known)

    def conclude(
        self, terms: Terms, step: Step, known: Knowledge, replies: Mapping[int, Reply], sums: CuratorSums
    ) -> Knowledge:
        return known.with_released(step, self.opened(terms, step, known, replies, sums), terms.plan.total_rows)


class Further(Picks):
    """Picks of one party: pairs in addition to the network's."""

    name = "further"
    label = "Further pairs"

    def conclude(
        self, terms: Terms, step: Step, known: Knowledge, replies: Mapping[int, Reply], _sums: CuratorSums
    ) -> Knowledge:
        (party,) = step.parties
        reply, culprit = replies[party], terms.plan.members[party].name
        assert isinstance(reply, Placed)
        found = tuple(tuple(sorted((child, *parents))) for child, parents in reply.families)
        taken = picked_pairs(known.families, known.further)
        if len(found) > terms.plan.further[party]:
            raise FailedCheck(culprit, f"picked {len(found)} pairs, expected at most {terms.plan.further[party]}")
        for pair in found:
            if len(set(pair)) != 2 or max(pair) >= terms.domain.count or pair in taken or found.count(pair) > 1:
                raise FailedCheck(culprit, f"picked {pair}, which is not a new pair of variables")
        return replace(known, further=(*known.further, *found))

    def check(self, state: PartyState, step: Step, task: Task) -> None:
        assert isinstance(task, Place)
        check_place(state, step, task, state.terms.domain.count)

    def answer(self, state: PartyState, step: Step, task: Task, rows: Rows, stream: Stream) -> tuple[PartyState, Reply]:
        assert isinstance(task, Place)
        terms, judge = state.terms, judge_of(state, step, task, rows)
        sizes = terms.domain.with_merged(task.merged).coarse_sizes
        taken = picked_pairs(families_of(task), task.further)

        def options(found: Sequence[Family]) -> list[Variables]:
            return admissible_pairs(sizes, [*taken, *(family.variables for family in found)])

        picks = terms.plan.further[state.me]
        found = pick_by_model(terms, judge, [], picks, step.budget, options, stream)
        return state, Placed(plan=terms.plan_hash, step=step.name, families=wire_families(found))


RULE = Guided()
