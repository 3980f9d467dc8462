"""A pass whose tables follow from the plan alone: views of one variable or of several.

It does not know which views these are.
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from fractions import Fraction

from protocol.errors import CURATOR, FailedCheck
from protocol.messages.tasks import Count, Task
from protocol.plan.step import Step
from protocol.plan.terms import Terms
from protocol.stages.party_state import PartyState
from protocol.stages.stage import Size
from protocol.stages.sum_pass import SumPass
from protocol.stages.task_checks import refuse_masked, refuse_merged
from protocol.views.cover import Cover


class PlannedPass(SumPass):
    @abstractmethod
    def cover(self, terms: Terms) -> Cover:
        """The views that the pass counts."""

    def weights(self, terms: Terms, _cells: Sequence[int]) -> Sequence[int]:
        return self.cover(terms).weights

    def parts(self, terms: Terms, step: Step) -> Iterator[tuple[int, Fraction]]:
        """The cells that hold noise of one rate, and the rate, in the order in which they are sent."""
        sizes = self.cover(terms).view_cells
        return zip(sizes, self.noise_rates(terms, step, sizes), strict=True)

    def narrowest_rate(self, terms: Terms, step: Step) -> Fraction | None:
        return min(rate for _, rate in self.parts(terms, step))

    def size(self, terms: Terms, step: Step) -> Size:
        return Size(len(self.cover(terms).views), sum(cells for cells, _ in self.parts(terms, step)))

    def cells_by_rate(self, terms: Terms, step: Step) -> dict[Fraction, int]:
        found: dict[Fraction, int] = {}
        for cells, rate in self.parts(terms, step):
            found[rate] = found.get(rate, 0) + cells
        return found

    def check(self, state: PartyState, step: Step, task: Task) -> None:
        assert isinstance(task, Count)
        refuse_merged(step, task.merged)
        if task.tables != self.cover(state.terms).views:
            raise FailedCheck(CURATOR, f"asks for other views than the plan's in {step.name!r}")
        refuse_masked(step, task)
