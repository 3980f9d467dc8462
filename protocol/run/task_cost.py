"""Size of the answer to a task: counted here for the curator, the parties and experiments alike.

It does not know prices: the plan has them.
"""

from dataclasses import dataclass

from protocol.messages.tasks import Count, Task
from protocol.plan.step import Step
from protocol.plan.terms import Terms
from protocol.stages.registry import stage_of


@dataclass(frozen=True)
class TaskCost:
    tables: int = 0
    cells: int = 0
    ciphertexts: int = 0


def task_cost(terms: Terms, step: Step, task: Task) -> TaskCost:
    """Size of an answer to `task`; all zero for tasks that do not count tables."""
    if not isinstance(task, Count):
        return TaskCost()
    stage = stage_of(terms, step)
    layout = stage.layout(terms, step, task.tables, terms.plan.total_rows, task.merged)
    return TaskCost(len(task.tables), layout.size, terms.plan.noise_mode.ciphertexts(layout) if stage.is_sum else 0)
