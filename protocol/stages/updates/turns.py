"""Phase 3 with `update=turns`: in its turn, each party picks from the frontier what its rows need; then all count it.

It does not know how the frontier is searched (`protocol.network.frontier`) or how pairs are scored
(`protocol.picks.by_model`). The argument is in `updating.md`.
"""

from collections.abc import Sequence
from fractions import Fraction

from protocol.errors import CURATOR, FailedCheck
from protocol.exact import allocate
from protocol.messages.tasks import Place, Task
from protocol.plan.plan import Plan
from protocol.plan.step import Step, lone_step, shared_step
from protocol.plan.terms import Terms
from protocol.stages.knowledge import Knowledge
from protocol.stages.party_state import PartyState
from protocol.stages.pick_pairs import PickPairs
from protocol.stages.picked_tables import CountPicked, counts_network
from protocol.stages.stage import Stage
from protocol.stages.updates.frontier_of_model import frontier_of_model
from protocol.stages.updates.rule import UpdateRule
from protocol.tables.domain import Variables

OF_PICKS = Fraction(1, 10)  # of the updates' budget: each party's picks in its turn


class Turns(UpdateRule):
    def steps(self, plan: Plan, everybody: tuple[int, ...]) -> list[Step]:
        """A pass over the first network; then turn by turn picks, and a pass over them: the last is 'parameters'."""
        picking = [party for party in everybody if plan.further[party]]
        pairs = sum(plan.picks) - 1  # of the first network
        tables = [pairs] if counts_network(plan) and pairs > 0 else []
        tables += [plan.further[party] for party in picking[:-1]]
        picks, passes = plan.split[2] * OF_PICKS, plan.split[2] * (1 - OF_PICKS)
        budgets = allocate(passes, tables) if tables else ()
        counting = [
            shared_step(plan, f"update/{number + 1}", "update", budget, most)
            for number, (budget, most) in enumerate(zip(budgets, tables, strict=True))
        ]
        turns = [lone_step(plan, f"frontier/{party + 1}", "frontier", (party,), picks) for party in picking]
        found = counting[: len(counting) - len(picking) + 1] if picking else counting
        for turn, following in zip(turns, [*counting[len(found) :], None], strict=True):
            found += [turn] if following is None else [turn, following]
        return found

    @property
    def stages(self) -> tuple[Stage, ...]:
        return (Frontier(), TurnUpdate())


class TurnUpdate(CountPicked):
    name = "update"
    label = "Updates"


class Frontier(PickPairs):
    name = "frontier"
    label = "Picks in the frontier"
    takes_from_frontier = True

    def enter(self, terms: Terms, known: Knowledge) -> Knowledge:
        return frontier_of_model(terms, super().enter(terms, known))

    def ask(self, terms: Terms, step: Step, known: Knowledge) -> dict[int, Task]:
        pairs = tuple(sorted(tuple(sorted(edge)) for edge in known.frontier.edges()))
        asked = super().ask(terms, step, known)
        return {party: task.model_copy(update={"frontier": pairs}) for party, task in asked.items()}

    def check(self, state: PartyState, step: Step, task: Task) -> None:
        assert isinstance(task, Place)
        super().check(state, step, task)
        count = state.terms.domain.count
        if any(len(pair) != 2 or not pair[0] < pair[1] < count for pair in task.frontier):
            raise FailedCheck(CURATOR, f"sent a frontier in {step.name!r} that does not consist of pairs of variables")
        if list(task.frontier) != sorted(set(task.frontier)):
            raise FailedCheck(CURATOR, f"sent a frontier in {step.name!r} whose pairs do not rise")

    def offered(self, _terms: Terms, task: Place) -> Sequence[Variables]:
        return task.frontier


RULE = Turns()
