"""Phase 3 with `update=accumulate`: one party after another adds its own tables, under its own noise.

It does not know how the frontier is searched. Every row is exposed once, so the budget is spent once (`updating.md`).
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from crypto.randomness import Stream
from protocol.errors import FailedCheck
from protocol.messages.tasks import Contribution, Count, Reply, Task
from protocol.plan.plan import Plan
from protocol.plan.step import Step, lone_step
from protocol.plan.terms import Terms
from protocol.privacy.layout import WORD_BYTES, Layout, words_from_bytes, words_to_bytes
from protocol.privacy.noise_modes import full_noise
from protocol.secure_sum.sums import CuratorSums
from protocol.stages.knowledge import Knowledge
from protocol.stages.party_state import PartyState
from protocol.stages.stage import Stage
from protocol.stages.sum_pass import counts_of
from protocol.stages.task_checks import check_range, check_tables, refuse_masked
from protocol.stages.updates.frontier import FrontierUpdate
from protocol.stages.updates.rule import UpdateRule
from protocol.tables.any_rows import AnyRows
from protocol.tables.marginal import Table


class Accumulate(UpdateRule):
    def steps(self, plan: Plan, everybody: tuple[int, ...]) -> list[Step]:
        return [lone_step(plan, f"update/{k + 1}", "update", (k,), plan.split[2]) for k in everybody]

    @property
    def stages(self) -> tuple[Stage, ...]:
        return (OwnUpdate(),)


class OwnUpdate(FrontierUpdate):
    """An update by one party: its own tables under a full share of its own noise, private against everybody."""

    def ask(self, terms: Terms, step: Step, known: Knowledge) -> dict[int, Task]:
        tables = self.tables(terms, step, known)
        return dict.fromkeys(step.parties, Count(plan=terms.plan_hash, step=step.name, tables=tables))

    def largest_reply(self, terms: Terms, step: Step, known: Knowledge, party: int, _sums: CuratorSums) -> int:
        task = self.ask(terms, step, known)[party]
        return WORD_BYTES * sum(map(terms.domain.cells, getattr(task, "tables", ())))

    def check_reply(
        self, terms: Terms, step: Step, known: Knowledge, party: int, reply: Reply, sums: CuratorSums
    ) -> None:
        expected = self.largest_reply(terms, step, known, party, sums)
        if len(reply.blob) != expected:
            name = terms.plan.members[party].name
            raise FailedCheck(name, f"sent {len(reply.blob)} bytes for {step.name!r}, expected {expected}")
        self.check_counts(terms, step, known, party, words_from_bytes(reply.blob))

    def check_counts(self, terms: Terms, step: Step, known: Knowledge, party: int, words: NDArray[np.uint64]) -> None:
        """Refuse counts that this party's rows cannot have, while it is known who sent them."""
        member = terms.plan.members[party]
        layout = self.layout(terms, step, self.tables(terms, step, known), member.rows)
        check_range(terms, step, member.name, layout, layout.split(words))

    def conclude(
        self, terms: Terms, step: Step, known: Knowledge, replies: Mapping[int, Reply], _sums: CuratorSums
    ) -> Knowledge:
        tables, rows = self.delivered(terms, step, known, replies), terms.plan.members[step.parties[-1]].rows
        return self.updated(terms, known, tables, rows).with_released(step, tables, rows)

    def delivered(self, terms: Terms, step: Step, known: Knowledge, replies: Mapping[int, Reply]) -> list[Table]:
        """The noisy tables of the step's newest party."""
        newest = step.parties[-1]
        layout = self.layout(terms, step, self.tables(terms, step, known), terms.plan.members[newest].rows)
        return self.read_tables(terms, step, known, layout, layout.split(words_from_bytes(replies[newest].blob)))

    def read_tables(
        self, terms: Terms, step: Step, known: Knowledge, layout: Layout, parts: Sequence[NDArray[np.uint64]]
    ) -> list[Table]:
        variance, tables = terms.plan.definition.variance, self.tables(terms, step, known)
        return [
            Table(variables, counts.view(np.int64).reshape(terms.domain.shape(variables)), variance(rate))
            for variables, counts, rate in zip(tables, parts, layout.rates, strict=True)
        ]

    def check(self, state: PartyState, step: Step, task: Task) -> None:
        assert isinstance(task, Count)
        check_tables(state.terms, step, task, self.limits(state.terms))
        refuse_masked(step, task)

    def answer(
        self, state: PartyState, step: Step, task: Task, rows: AnyRows, stream: Stream
    ) -> tuple[PartyState, Reply]:
        assert isinstance(task, Count)
        layout = self.layout(state.terms, step, task.tables, rows.count)
        noisy = counts_of(rows, task.tables) + full_noise(state.terms.plan.definition, layout, stream)
        blob = words_to_bytes(noisy.view(np.uint64))
        return state, Contribution(plan=state.terms.plan_hash, step=step.name, blob=blob)


RULE = Accumulate()
