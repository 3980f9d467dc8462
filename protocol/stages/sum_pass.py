"""A pass: every party counts the same tables and adds noise, and the curator learns only the totals.

It does not know which tables are counted, or the conclusions from them.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from crypto.errors import MalformedCiphertext
from crypto.masking import TAG_BYTES
from crypto.randomness import Stream
from protocol.errors import CURATOR, FailedCheck
from protocol.exact import canonical_json, digest
from protocol.messages.tasks import TAG_TEXT_BYTES, Contribution, Count, Reply, Task
from protocol.network.limits import Limits
from protocol.plan.plan import Plan
from protocol.plan.step import Step
from protocol.plan.terms import Terms
from protocol.privacy.layout import Layout, Vector, joined
from protocol.secure_sum.plain import PlainSums
from protocol.secure_sum.selected import selected_sums
from protocol.secure_sum.sums import CuratorSums
from protocol.stages.knowledge import Knowledge
from protocol.stages.party_state import PartyState
from protocol.stages.stage import Stage
from protocol.stages.task_checks import check_tables, refuse_masked
from protocol.tables.any_rows import AnyRows
from protocol.tables.domain import Domain, FoundEdges, Merged, Variables
from protocol.tables.marginal import Table


class SumPass(Stage):
    reply = Contribution
    task = Count
    is_sum = True

    @abstractmethod
    def tables(self, terms: Terms, step: Step, known: Knowledge) -> tuple[Variables, ...]:
        """The tables that the next pass counts."""

    def merged(self, known: Knowledge) -> tuple[Merged, ...]:
        """The merged categories that the tables count."""
        return known.merged

    def limits(self, terms: Terms) -> Limits:
        """Limits on the size of a table of the pass."""
        return terms.limits

    def narrowest_rate(self, terms: Terms, step: Step) -> Fraction | None:
        return terms.plan.definition.rate(step.budget / terms.domain.count)

    def ask(self, terms: Terms, step: Step, known: Knowledge) -> dict[int, Task]:
        tables = self.tables(terms, step, known)
        count = Count(plan=terms.plan_hash, step=step.name, tables=tables, merged=self.merged(known))
        return dict.fromkeys(step.parties, count)

    def largest_reply(self, terms: Terms, step: Step, known: Knowledge, _party: int, sums: CuratorSums) -> int:
        return sums.contribution_bytes(self._layout(terms, step, known)) + TAG_TEXT_BYTES * terms.plan.parties

    def check_reply(
        self, terms: Terms, step: Step, known: Knowledge, party: int, reply: Reply, sums: CuratorSums
    ) -> None:
        layout, name = self._layout(terms, step, known), terms.plan.members[party].name
        expected = sums.contribution_bytes(layout)
        if len(reply.blob) != expected:
            raise FailedCheck(name, f"sent {len(reply.blob)} bytes for {step.name!r}, expected {expected}")
        assert isinstance(reply, Contribution)
        lengths = [TAG_BYTES * (other != party) for other in step.parties]
        if list(map(len, reply.tags)) != lengths:
            raise FailedCheck(name, f"sent no tags for {step.name!r} that fit {terms.plan.parties} parties")
        try:
            sums.check(layout, reply.blob)
        except MalformedCiphertext as error:
            raise FailedCheck(name, f"sent no valid contribution to {step.name!r}: {error}") from error

    def with_reply(self, replies: Mapping[int, Reply], party: int, reply: Reply, sums: CuratorSums) -> dict[int, Reply]:
        """The answers so far. The latest holds the sum of all contributions, the others hold none.

        So a pass takes the curator memory for one contribution, whatever the number of parties.
        """
        if not replies:
            return {party: reply}
        latest = list(replies)[-1]
        total = sums.add(replies[latest].blob, reply.blob)
        emptied = replies[latest].model_copy(update={"blob": b""})
        return {**replies, latest: emptied, party: reply.model_copy(update={"blob": total})}

    def opened(
        self, terms: Terms, step: Step, known: Knowledge, replies: Mapping[int, Reply], sums: CuratorSums
    ) -> list[Table]:
        """The totals, as tables with the variance of the noise that they hold."""
        layout, domain = self._layout(terms, step, known), self.domain(terms).with_merged(self.merged(known))
        totals = sums.open(layout, [list(replies.values())[-1].blob])
        variances = {rate: terms.plan.noise_mode.retained_variance(rate) for rate in set(layout.rates)}
        parts = zip(layout.split(totals), (variances[rate] for rate in layout.rates), strict=True)
        return self.told(terms, self.tables(terms, step, known), domain, list(parts))

    def counted(self, _terms: Terms, rows: AnyRows, tables: Sequence[Variables]) -> Vector:
        """The numbers of a party's rows that the pass adds up, part after part of its layout."""
        return counts_of(rows, tables)

    def told(
        self, _terms: Terms, tables: Sequence[Variables], domain: Domain, parts: Sequence[tuple[Vector, float]]
    ) -> list[Table]:
        """The tables that the parts of a total tell, each part with the variance of its noise."""
        return [
            Table(variables, counts.reshape(domain.shape(variables)), variance)
            for variables, (counts, variance) in zip(tables, parts, strict=True)
        ]

    def check(self, state: PartyState, step: Step, task: Task) -> None:
        assert isinstance(task, Count)
        refuse_masked(step, task)
        check_tables(state.terms, step, task, self.limits(state.terms))

    def answer(
        self, state: PartyState, step: Step, task: Task, rows: AnyRows, stream: Stream
    ) -> tuple[PartyState, Reply]:
        assert isinstance(task, Count)
        terms, state = state.terms, _with_sums(state, step, task, stream)
        assert state.sums is not None
        layout = self.layout(terms, step, task.tables, terms.plan.total_rows, task.merged)
        counts = self.counted(terms, rows.over(self.domain(terms).with_merged(task.merged)), task.tables)
        context = asked(step, task.tables, task.merged, noise_of(terms.plan, layout), state.edges)
        sent = state.sums.contribute(layout, counts, context, stream)
        return state, Contribution(plan=terms.plan_hash, step=step.name, blob=sent.blob, tags=sent.tags)

    def _layout(self, terms: Terms, step: Step, known: Knowledge) -> Layout:
        return self.layout(terms, step, self.tables(terms, step, known), terms.plan.total_rows, self.merged(known))


def _with_sums(state: PartyState, step: Step, task: Count, stream: Stream) -> PartyState:
    """The state with this party's half of the secure sums, made from the keys that come with the first pass."""
    if state.sums is not None:
        return state
    if not state.terms.plan.uses_paillier:
        return replace(state, sums=PlainSums(state.terms.plan, state.me, state.pair_keys))
    if task.keys is None:
        raise FailedCheck(CURATOR, f"sent no keys with the first sum pass {step.name!r}")
    return replace(state, sums=selected_sums(state.pair_keys, state.share, task.keys, stream))


def counts_of(rows: AnyRows, tables: Sequence[Variables]) -> Vector:
    return joined([table.ravel() for table in rows.tables(tables)])


def noise_of(plan: Plan, layout: Layout) -> list[object]:
    """Everything that the noise of a pass depends on, as JSON."""
    return [plan.privacy, plan.noise, plan.parties, plan.insiders, list(map(str, layout.rates))]


def asked(
    step: Step,
    tables: Sequence[Variables],
    merged: Sequence[Merged] = (),
    noise: Sequence[object] = (),
    edges: FoundEdges = (),
) -> bytes:
    """The context of a pass, on which its masks depend besides the plan: tables, categories, noise and found edges.

    Privacy: a pass shares its budget over its tables. If parties were asked for different tables, a party asked for
    many could be covered only by the narrower noise of a party asked for few. The masks therefore depend on the
    tables: such a sum does not cancel. Nor does one in which parties reckon with different noise.
    """
    return f"{step.name} {digest(canonical_json([tables, merged, noise, *([edges] if edges else [])]))}".encode()
