"""Phase 3 with `update=joint`: rounds in which every party counts the frontier's tables in one pass.

It does not know how the frontier is searched.
"""

from collections.abc import Mapping

from protocol.messages.tasks import Reply
from protocol.plan.plan import Plan
from protocol.plan.step import Step, shared_step
from protocol.plan.terms import Terms
from protocol.secure_sum.sums import CuratorSums
from protocol.stages.knowledge import Knowledge
from protocol.stages.stage import Stage
from protocol.stages.sum_pass import SumPass
from protocol.stages.updates.frontier import FrontierUpdate
from protocol.stages.updates.rule import UpdateRule


class Joint(UpdateRule):
    def steps(self, plan: Plan, _everybody: tuple[int, ...]) -> list[Step]:
        share = plan.split[2] / plan.rounds
        return [shared_step(plan, f"update/{r + 1}", "update", share) for r in range(plan.rounds)]

    @property
    def stages(self) -> tuple[Stage, ...]:
        return (JointUpdate(),)


class JointUpdate(FrontierUpdate, SumPass):
    def conclude(
        self, terms: Terms, step: Step, known: Knowledge, replies: Mapping[int, Reply], sums: CuratorSums
    ) -> Knowledge:
        tables, rows = self.opened(terms, step, known, replies, sums), terms.plan.total_rows
        return self.updated(terms, known, tables, rows).with_released(step, tables, rows)


RULE = Joint()
