"""A step in which one party privately picks pairs in addition to the network's: those that the model answers worst.

Where no pair is worth the noise of its table, nothing is picked.

It does not know which pairs are offered to it (`protocol.stages.guided`, `protocol.stages.updates.turns`).
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace

from crypto.randomness import Stream
from protocol.errors import FailedCheck
from protocol.messages.tasks import Place, Placed, Reply, Task
from protocol.network.network import Family
from protocol.picks.by_model import NOTHING, admissible, worth_offering
from protocol.plan.plan import Plan
from protocol.plan.step import Step
from protocol.plan.terms import Terms
from protocol.secure_sum.sums import CuratorSums
from protocol.stages.knowledge import Knowledge
from protocol.stages.party_state import PartyState
from protocol.stages.picked_tables import counts_network, picked_pairs
from protocol.stages.picking import (
    Options,
    Picks,
    check_place,
    families_of,
    judge_of,
    own_noise,
    pick_by_model,
    wire_families,
)
from protocol.tables.any_rows import AnyRows
from protocol.tables.domain import Variables


class PickPairs(Picks):
    @abstractmethod
    def offered(self, terms: Terms, task: Place) -> Sequence[Variables]:
        """The pairs or larger sets among which the party picks, whether or not they were picked before."""

    def most_picks(self, plan: Plan, party: int) -> int:
        return plan.further[party]

    def conclude(
        self, terms: Terms, step: Step, known: Knowledge, replies: Mapping[int, Reply], _sums: CuratorSums
    ) -> Knowledge:
        (party,) = step.parties
        reply, culprit = replies[party], terms.plan.members[party].name
        assert isinstance(reply, Placed)
        found = tuple(tuple(sorted((child, *parents))) for child, parents in reply.families)
        taken = picked_pairs(known.families if counts_network(terms.plan) else (), known.further)
        if len(found) > terms.plan.further[party]:
            raise FailedCheck(culprit, f"picked {len(found)} sets, expected at most {terms.plan.further[party]}")
        sets = tuple(one for one in found if one != NOTHING)
        for one in sets:
            if not 1 < len(set(one)) == len(one) <= terms.plan.ways or max(one) >= terms.domain.count:
                raise FailedCheck(culprit, f"picked {one}, which is no set of at most {terms.plan.ways} variables")
            if one in taken or sets.count(one) > 1:
                raise FailedCheck(culprit, f"picked {one}, which is picked already")
        return replace(known, further=(*known.further, *sets))

    def check(self, state: PartyState, step: Step, task: Task) -> None:
        assert isinstance(task, Place)
        check_place(state, step, task, state.terms.domain.count)

    def answer(
        self, state: PartyState, step: Step, task: Task, rows: AnyRows, stream: Stream
    ) -> tuple[PartyState, Reply]:
        assert isinstance(task, Place)
        judge, options = judge_of(state, step, task, rows), self.options(state.terms, step, task, rows.count)
        picks = state.terms.plan.further[state.me]
        found = pick_by_model(state.terms, judge, [], picks, step.budget, options, stream)
        return state, Placed(plan=state.terms.plan_hash, step=step.name, families=wire_families(found))

    def options(self, terms: Terms, step: Step, task: Place, rows: int) -> Options:
        """What a party with so many rows picks from: nothing, and the sets that are worth it and find room."""
        sizes = terms.domain.with_merged(task.merged).coarse_sizes
        taken = picked_pairs(families_of(task) if counts_network(terms.plan) else (), task.further)
        among = worth_offering(sizes, self.offered(terms, task), rows, own_noise(terms, step, rows))

        def options(found: Sequence[Family]) -> list[Variables]:
            chosen = [*taken, *(family.variables for family in found)]
            return [NOTHING, *admissible(sizes, chosen, among, terms.model_room.numbers)]

        return options
