"""A pass over the pairs that were picked and not counted yet.

It does not know in which stage they were picked, or how.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction

from protocol.errors import CURATOR, FailedCheck
from protocol.messages.tasks import Count, Reply, Task
from protocol.plan.step import Step
from protocol.plan.terms import Terms
from protocol.secure_sum.sums import CuratorSums
from protocol.stages import picked_tables
from protocol.stages.knowledge import Knowledge
from protocol.stages.party_state import PartyState
from protocol.stages.picked_tables import most_tables, unmeasured
from protocol.stages.stage import Size
from protocol.stages.sum_pass import SumPass
from protocol.tables.domain import Variables


class CountPicked(SumPass):
    def weights(self, terms: Terms, cells: Sequence[int]) -> Sequence[int]:
        return picked_tables.weights(terms, cells)

    def narrowest_rate(self, terms: Terms, step: Step) -> Fraction | None:
        return picked_tables.narrowest_rate(terms, step)

    def size(self, terms: Terms, step: Step) -> Size:
        most = most_tables(terms, step)
        return Size(most, most * terms.limits.largest_family(terms.domain))

    def tables(self, terms: Terms, step: Step, known: Knowledge) -> tuple[Variables, ...]:
        return unmeasured(terms, step, known)

    def conclude(
        self, terms: Terms, step: Step, known: Knowledge, replies: Mapping[int, Reply], sums: CuratorSums
    ) -> Knowledge:
        return known.with_released(step, self.opened(terms, step, known, replies, sums), terms.plan.total_rows)

    def check(self, state: PartyState, step: Step, task: Task) -> None:
        assert isinstance(task, Count)
        most = most_tables(state.terms, step)
        if len(task.tables) > most:
            raise FailedCheck(CURATOR, f"asks for {len(task.tables)} tables in {step.name!r}, expected at most {most}")
        super().check(state, step, task)
