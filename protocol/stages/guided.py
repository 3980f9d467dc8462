"""Method guided: each round counts the picked pairs, then picks those that the model reproduces worst.

It does not know how pairs are scored (`protocol.picks.by_model`).
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import chain, combinations

from protocol.messages.tasks import Place
from protocol.plan.plan import Plan
from protocol.plan.step import Step, lone_step, shared_step
from protocol.plan.terms import Terms
from protocol.stages.pick_pairs import PickPairs
from protocol.stages.picked_tables import CountPicked
from protocol.tables.domain import Variables


def picks_budget(plan: Plan) -> Fraction:
    """The budget of each party's picks in the tree, which equals that of its picks in every round."""
    return plan.split[1] / (1 + plan.guided_rounds)


def guided_steps(plan: Plan) -> list[Step]:
    """The rounds: a pass over what was picked, then further picks by every party."""
    found = []
    for round_ in range(plan.guided_rounds):
        budget = plan.split[2] / plan.guided_rounds
        found.append(shared_step(plan, f"tables/{round_ + 1}", "tables", budget))
        found += _further_steps(plan, round_, picks_budget(plan))
    return found


def _further_steps(plan: Plan, round_: int, budget: Fraction) -> list[Step]:
    return [
        lone_step(plan, f"further/{round_ * plan.parties + party + 1}", "further", (party,), budget)
        for party, picks in enumerate(plan.further)
        if picks
    ]


class Tables(CountPicked):
    name = "tables"
    label = "Tables of what was picked"


class Further(PickPairs):
    name = "further"
    label = "Further pairs"

    def offered(self, terms: Terms, _task: Place) -> Sequence[Variables]:
        """Every pair, and larger sets that matter."""
        variables = range(terms.domain.count)
        larger = chain.from_iterable(combinations(variables, ways) for ways in range(3, terms.plan.ways + 1))
        return [*combinations(variables, 2), *filter(terms.matters, larger)]
