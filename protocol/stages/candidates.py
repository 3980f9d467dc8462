"""A round of DP-CCBN: one pass counts every table that could join another variable; the strongest is taken.

It does not know budgets: every table of every round gets an equal share.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

from protocol.errors import CURATOR, FailedCheck
from protocol.messages.tasks import Count, Reply, Task
from protocol.network.limits import Limits
from protocol.network.mutual_information import mutual_information
from protocol.network.network import Family
from protocol.network.parent_sets import candidates
from protocol.network.workload import largest_choice
from protocol.plan.step import Step
from protocol.plan.terms import Terms
from protocol.secure_sum.sums import CuratorSums
from protocol.stages.knowledge import Knowledge
from protocol.stages.party_state import PartyState
from protocol.stages.stage import Size
from protocol.stages.sum_pass import SumPass
from protocol.stages.task_checks import check_merged, refuse_masked
from protocol.tables.domain import Domain, Variables
from protocol.tables.marginal import Table, project_to_simplex


class Candidates(SumPass):
    name = "candidates"
    label = "Candidates"

    def narrowest_rate(self, terms: Terms, step: Step) -> Fraction | None:
        # `largest_choice` is an estimate; a quarter of the share leaves room for networks with more candidates.
        return terms.plan.definition.rate(step.budget / (4 * largest_choice(terms.domain, terms.limits)))

    def size(self, terms: Terms, step: Step) -> Size:
        return _compared(terms.domain, terms.limits)[_round(step) - 1]

    def tables(self, terms: Terms, _step: Step, known: Knowledge) -> tuple[Variables, ...]:
        return _candidates(terms, [family.child for family in known.families])

    def conclude(
        self, terms: Terms, step: Step, known: Knowledge, replies: Mapping[int, Reply], sums: CuratorSums
    ) -> Knowledge:
        tables = self.opened(terms, step, known, replies, sums)
        informations = [_information(table, terms.plan.total_rows) for table in tables]
        best = tables[informations.index(max(informations))].variables
        return replace(known, families=(*known.families, Family(best[0], best[1:])))

    def check(self, state: PartyState, step: Step, task: Task) -> None:
        """Refuse tables other than the candidates, which follow from the variables that the task shows as placed."""
        assert isinstance(task, Count)
        terms = state.terms
        check_merged(terms, step, task.merged)
        unplaced = {table[0] for table in task.tables if table}
        placed = [variable for variable in range(terms.domain.count) if variable not in unplaced]
        if len(placed) != _round(step) or task.tables != _candidates(terms, placed):
            raise FailedCheck(
                CURATOR, f"asks in {step.name!r} for other tables than the candidates of {_round(step)} placed"
            )
        refuse_masked(step, task)


def _round(step: Step) -> int:
    """Number of variables placed before the step."""
    return int(step.name.rpartition("/")[2])


def _candidates(terms: Terms, placed: Sequence[int]) -> tuple[Variables, ...]:
    unplaced = [v for v in range(terms.domain.count) if v not in placed]
    return tuple((child, *parents) for child, parents in candidates(terms.domain, placed, unplaced, terms.limits))


def _information(table: Table, total: int) -> float:
    projected = project_to_simplex(table.counts, total)
    return mutual_information(projected.reshape(projected.shape[0], -1))


@lru_cache(maxsize=64)  # listing the families takes up to a second, and depends on neither rows nor parties
def _compared(domain: Domain, limits: Limits) -> tuple[Size, ...]:
    """Tables and cells compared in each round, by the number of variables placed.

    The first variables stand for any set of the same size, which has about as many candidates.
    """
    found = []
    for placed in range(1, domain.count):
        families = candidates(domain, range(placed), range(placed, domain.count), limits)
        found.append(Size(len(families), sum(domain.cells((child, *parents)) for child, parents in families)))
    return tuple(found)
