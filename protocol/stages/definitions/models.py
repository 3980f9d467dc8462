"""Method independent: every party models its own rows alone, by PrivBayes.

It does not know how the models are used.
"""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np

from crypto.randomness import Stream
from protocol.errors import FailedCheck
from protocol.messages.tasks import Learn, Learned, Reply, Task
from protocol.network.network import Network, counted_families
from protocol.plan.plan import Plan
from protocol.plan.step import Step
from protocol.plan.terms import Terms
from protocol.privacy.layout import WORD_BYTES, words_from_bytes, words_to_bytes
from protocol.privacy.noise_modes import full_noise
from protocol.secure_sum.sums import CuratorSums
from protocol.stages.knowledge import Knowledge, LocalModel
from protocol.stages.party_state import PartyState
from protocol.stages.picking import checked_families, family_bytes, pick_by_score, wire_families
from protocol.stages.stage import Stage
from protocol.stages.sum_pass import counts_of
from protocol.stages.task_checks import check_range
from protocol.tables.any_rows import AnyRows
from protocol.tables.marginal import Table


class Models(Stage):
    name = "models"
    label = "Models"
    reply = Learned
    task = Learn

    def budget(self, terms: Terms, _step: Step) -> Fraction:
        """The budget of the tables; the rest of the step's budget pays for the structure."""
        return terms.plan.alone(terms.plan.split[1])

    def narrowest_rate(self, terms: Terms, step: Step) -> Fraction | None:
        return terms.plan.definition.rate(self.budget(terms, step) / terms.domain.count)

    def mechanism(self, plan: Plan, _task: Task) -> str:
        return f"private choice by {plan.choice}, own noise"

    def ask(self, terms: Terms, step: Step, _known: Knowledge) -> dict[int, Task]:
        return {party: Learn(plan=terms.plan_hash, step=step.name) for party in step.parties}

    def largest_reply(self, terms: Terms, _step: Step, _known: Knowledge, party: int, _sums: CuratorSums) -> int:
        limits, count = terms.local_limits(party), terms.domain.count
        return count * (family_bytes(terms, limits) + WORD_BYTES * limits.largest_family(terms.domain))

    def check_reply(
        self, terms: Terms, step: Step, _known: Knowledge, party: int, reply: Reply, _sums: CuratorSums
    ) -> None:
        self._model(terms, step, party, reply)

    def conclude(
        self, terms: Terms, step: Step, known: Knowledge, replies: Mapping[int, Reply], _sums: CuratorSums
    ) -> Knowledge:
        models = tuple(self._model(terms, step, party, replies[party]) for party in step.parties)
        for model in models:
            known = known.with_released(step, model.tables, model.rows)
        return replace(known, models=models)

    def _model(self, terms: Terms, step: Step, party: int, reply: Reply) -> LocalModel:
        """The model in one party's answer, checked."""
        member, limits = terms.plan.members[party], terms.local_limits(party)
        network = Network(checked_families(terms, party, reply, (), terms.domain.count, limits))
        variables = tuple(counted_families(network, terms.domain, terms.plan.family_tables))
        layout = self.layout(terms, step, variables, member.rows)
        expected = WORD_BYTES * layout.size
        if len(reply.blob) != expected:
            raise FailedCheck(member.name, f"sent {len(reply.blob)} bytes of tables, expected {expected}")
        check_range(terms, step, member.name, layout, layout.split(words_from_bytes(reply.blob)))
        counts = layout.split(words_from_bytes(reply.blob).view(np.int64))
        tables = tuple(
            Table(table, part.reshape(terms.domain.shape(table)), terms.plan.definition.variance(rate))
            for table, part, rate in zip(variables, counts, layout.rates, strict=True)
        )
        return LocalModel(network, tables, member.rows)

    def check(self, _state: PartyState, _step: Step, _task: Task) -> None:
        """Accept every task: it holds nothing but the step, so there is nothing to refuse."""

    def answer(
        self, state: PartyState, step: Step, _task: Task, rows: AnyRows, stream: Stream
    ) -> tuple[PartyState, Reply]:
        terms, limits = state.terms, state.terms.local_limits(state.me)
        budget = terms.plan.alone(terms.plan.split[0])
        families = pick_by_score(terms, [], terms.domain.count, budget, limits, rows, stream)
        tables = counted_families(Network(tuple(families)), terms.domain, terms.plan.family_tables)
        layout = self.layout(terms, step, tables, rows.count)
        noisy = counts_of(rows, tables) + full_noise(terms.plan.definition, layout, stream)
        blob = words_to_bytes(noisy.view(np.uint64))
        return state, Learned(plan=terms.plan_hash, step=step.name, families=wire_families(families), blob=blob)
