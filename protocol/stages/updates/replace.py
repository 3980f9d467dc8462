"""Phase 3 with `update=replace`, as published: the newest party's noise takes the place of its predecessor's.

It does not know how the frontier is searched. The rule is offered for reproduction, at its true cost (`updating.md`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from crypto.masking import mask_words
from crypto.randomness import Stream
from protocol.errors import CURATOR, FailedCheck
from protocol.messages.tasks import Contribution, Count, Reply, TakeBack, Task
from protocol.plan.plan import Plan
from protocol.plan.step import Step
from protocol.plan.terms import Terms
from protocol.privacy.layout import joined, split_vector, words_from_bytes, words_to_bytes
from protocol.privacy.noise_modes import full_noise
from protocol.secure_sum.sums import CuratorSums
from protocol.stages.knowledge import Knowledge
from protocol.stages.party_state import PartyState
from protocol.stages.stage import Stage
from protocol.stages.sum_pass import asked, counts_of
from protocol.stages.task_checks import check_range, check_tables, refuse_masked
from protocol.stages.updates.accumulate import OwnUpdate
from protocol.stages.updates.rule import UpdateRule
from protocol.tables.any_rows import AnyRows
from protocol.tables.domain import Variables
from protocol.tables.marginal import Table


class Replace(UpdateRule):
    def steps(self, plan: Plan, everybody: tuple[int, ...]) -> list[Step]:
        # Privacy: the rows of party k are in S_k, ..., S_K, each under fresh noise, so theorem 5 of the paper does
        # not hold. All these exposures are charged when the first is made (protocol/papers.md, no. 5).
        budget = plan.split[2]
        return [
            Step(
                f"update/{k + 1}",
                "update",
                (k - 1, k) if k else (k,),
                plan.alone(budget),
                {k: (plan.parties - k) * budget},
                is_alone=True,
            )
            for k in everybody
        ]

    @property
    def stages(self) -> tuple[Stage, ...]:
        return (ReplacingUpdate(),)


class ReplacingUpdate(OwnUpdate):
    keeps_former_noise = False  # the newest party's share replaces the predecessor's noise

    def mechanism(self, plan: Plan, task: Task) -> str:
        return "own noise taken back" if isinstance(task, TakeBack) else super().mechanism(plan, task)

    def ask(self, terms: Terms, step: Step, known: Knowledge) -> dict[int, Task]:
        plan, name, newest = terms.plan_hash, step.name, step.parties[-1]
        tables = self.tables(terms, step, known)
        kept = _unchanged(known, tables)
        found: dict[int, Task] = {newest: Count(plan=plan, step=name, tables=tables, masked=kept)}
        for predecessor in step.parties[:-1]:
            found[predecessor] = TakeBack(plan=plan, step=name, tables=tuple(tables[i] for i in kept))
        return found

    def check_counts(
        self, _terms: Terms, _step: Step, _known: Knowledge, _party: int, _words: NDArray[np.uint64]
    ) -> None:
        """Check nothing here: tables that continue are masked until both answers are there."""

    def conclude(
        self, terms: Terms, step: Step, known: Knowledge, replies: Mapping[int, Reply], _sums: CuratorSums
    ) -> Knowledge:
        tables, rows = self.delivered(terms, step, known, replies), terms.plan.members[step.parties[-1]].rows
        return self.updated(terms, known, tables, rows)

    def delivered(self, terms: Terms, step: Step, known: Knowledge, replies: Mapping[int, Reply]) -> list[Table]:
        """The newest party's noisy tables; the predecessor's noise is taken out of tables that continue."""
        *predecessors, newest = step.parties
        tables = self.tables(terms, step, known)
        layout = self.layout(terms, step, tables, terms.plan.members[newest].rows)
        parts, kept = layout.split(words_from_bytes(replies[newest].blob)), _unchanged(known, tables)
        for predecessor in predecessors if kept else ():
            removed = split_vector(words_from_bytes(replies[predecessor].blob), [layout.cells[i] for i in kept])
            for index, part in zip(kept, removed, strict=True):
                parts[index] = parts[index] + part
        # The predecessor's noise came from an update whose tables may have had another rate.
        names = ", ".join(terms.plan.members[party].name for party in step.parties)
        definition = terms.plan.definition
        widest = definition.bound(definition.rate(step.budget / terms.domain.count)) if kept else 0
        check_range(terms, step, names, layout, parts, widest)
        return self.read_tables(terms, step, known, layout, parts)

    def expected(self, state: PartyState, step: Step) -> type[Task]:
        return Count if state.me == step.parties[-1] else TakeBack

    def check(self, state: PartyState, step: Step, task: Task) -> None:
        if isinstance(task, TakeBack):
            _check_take_back(state, task)
            return
        assert isinstance(task, Count)
        check_tables(state.terms, step, task, self.limits(state.terms))
        if len(step.parties) == 1:
            refuse_masked(step, task)
        if list(task.masked) != sorted(set(task.masked)) or any(i >= len(task.tables) for i in task.masked):
            raise FailedCheck(CURATOR, f"names tables to mask in {step.name!r} that cannot be masked")

    def answer(
        self, state: PartyState, step: Step, task: Task, rows: AnyRows, stream: Stream
    ) -> tuple[PartyState, Reply]:
        if isinstance(task, TakeBack):
            return _take_back(state, step, task)
        assert isinstance(task, Count)
        return self._deliver(state, step, task, rows, stream)

    def _deliver(
        self, state: PartyState, step: Step, task: Count, rows: AnyRows, stream: Stream
    ) -> tuple[PartyState, Reply]:
        """The party's own tables; tables that continue are masked until the predecessor's noise is taken out."""
        layout = self.layout(state.terms, step, task.tables, rows.count)
        noise = full_noise(state.terms.plan.definition, layout, stream)
        parts = layout.split((counts_of(rows, task.tables) + noise).view(np.uint64))
        if task.masked:
            masked = [layout.cells[index] for index in task.masked]
            going_on = [task.tables[index] for index in task.masked]
            masks = split_vector(handover_mask(state, step, going_on, sum(masked)), masked)
            for index, mask in zip(task.masked, masks, strict=True):
                parts[index] = parts[index] + mask
        kept = dict(zip(task.tables, layout.split(noise), strict=True))
        blob = b"".join(words_to_bytes(part) for part in parts)
        return replace(state, noise=kept), Contribution(plan=state.terms.plan_hash, step=step.name, blob=blob)


def _unchanged(known: Knowledge, tables: Sequence[Variables]) -> tuple[int, ...]:
    """Indices of the tables that continue from the update before; a changed family starts anew."""
    former = {statistic.table.variables for statistic in known.statistics.values()}
    return tuple(index for index, table in enumerate(tables) if table in former)


def _check_take_back(state: PartyState, task: TakeBack) -> None:
    if len(set(task.tables)) != len(task.tables) or any(table not in state.noise for table in task.tables):
        raise FailedCheck(CURATOR, f"asks in {task.step!r} for noise that was not in the last update")


def _take_back(state: PartyState, step: Step, task: TakeBack) -> tuple[PartyState, Reply]:
    """The negated noise of the update before, under a mask that cancels with the successor's."""
    noise = joined([state.noise[table] for table in task.tables])
    words = handover_mask(state, step, task.tables, noise.size) - noise.view(np.uint64)
    reply = Contribution(plan=state.terms.plan_hash, step=step.name, blob=words_to_bytes(words))
    return replace(state, noise={}), reply


def handover_mask(state: PartyState, step: Step, tables: Sequence[Variables], count: int) -> NDArray[np.uint64]:
    """The mask that the two parties of the update share."""
    keys = state.pair_keys(asked(step, tables))
    pair = {peer: key for peer, key in keys.items() if peer in step.parties}
    return mask_words(pair, state.me, count)


RULE = Replace()
