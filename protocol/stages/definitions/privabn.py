"""Method privabn: a network whose families grow parent by parent, and one pass over its tables (`privabn.md`).

It does not know how a family is scored or which tables a network needs.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import ClassVar

from crypto.randomness import Stream
from protocol.messages.tasks import Place, Placed, Reply, Task
from protocol.network.network import Family
from protocol.network.parent_sets import Candidate
from protocol.picks.by_score import choose
from protocol.plan.plan import Plan
from protocol.plan.step import Step
from protocol.plan.terms import Terms
from protocol.stages.definitions.definition import Order
from protocol.stages.definitions.privbayes import PrivBayes
from protocol.stages.initial import Initial, initial_steps
from protocol.stages.party_state import PartyState
from protocol.stages.picking import families_of, first_variable, wire_families
from protocol.tables.any_rows import AnyRows


class PrivAbn(PrivBayes):
    order: ClassVar[Order] = {
        "joining": ("growth", "parameters"),
        "growth": ("growth", "parameters"),
        "parameters": (),
    }

    def placing_steps(self, plan: Plan, budget: Fraction) -> list[Step]:
        return initial_steps(plan, budget, "growth")


class Growth(Initial):
    """Each party in turn places its share of the variables; each gets as many parents as seem worth their noise."""

    name = "growth"
    label = "Growing families"

    def most_choices(self, terms: Terms, party: int) -> int:
        return most_choices(terms, party)

    def answer(
        self, state: PartyState, step: Step, task: Task, rows: AnyRows, stream: Stream
    ) -> tuple[PartyState, Reply]:
        assert isinstance(task, Place)
        terms, before = state.terms, families_of(task)
        picks = terms.plan.picks[state.me]
        found = first_variable(terms, before, picks, stream)
        choices = max(1, most_choices(terms, state.me))
        epsilon = terms.plan.definition.choice_epsilon(step.budget / choices, terms.plan.choice)
        while len(found) < picks:
            placed = [family.child for family in (*before, *found)]
            found.append(Family(*_grown(terms, placed, rows, epsilon, stream)))
        return state, Placed(plan=terms.plan_hash, step=step.name, families=wire_families(found))


def most_choices(terms: Terms, party: int) -> int:
    """The number of private choices that a party makes at most: one for each parent that a variable may have."""
    first, most = sum(terms.plan.picks[:party]), _most_parents(terms)
    return sum(min(placed, most) for placed in range(first, first + terms.plan.picks[party]))


def options(terms: Terms, placed: Sequence[int], family: Candidate | None) -> list[Candidate]:
    """The choices at a moment: which variable to place, with one parent or none; then to stop, or one parent more."""
    if family is not None:
        return [family, *_one_more(terms, placed, family)]
    alone = [(child, ()) for child in range(terms.domain.count) if child not in placed]
    return [found for one in alone for found in (one, *_one_more(terms, placed, one))]


def noise_of_cell(terms: Terms) -> float:
    """Mean size of the noise in a cell of the pass to come, as a share of all rows, if it counts every family."""
    plan = terms.plan
    rate = plan.definition.rate(plan.in_sums(plan.split[-1]) / terms.domain.count)
    return plan.definition.mean_size(plan.noise_mode.retained_variance(rate)) / plan.total_rows


def _grown(terms: Terms, placed: Sequence[int], rows: AnyRows, epsilon: Fraction, stream: Stream) -> Candidate:
    """Place one variable, and add parents to it until to stop is chosen or nothing more is admitted.

    Where no family may have a parent, the next variable is placed without reading rows.
    """
    plan, family = terms.plan, None
    for _ in range(min(len(placed), _most_parents(terms))):
        among = options(terms, placed, family)
        chosen = choose(rows, among, plan.score, epsilon, plan.choice, stream, noise_of_cell(terms))
        if chosen == family or not chosen[1]:
            return chosen
        family = chosen
    return family or options(terms, placed, None)[0]


def _one_more(terms: Terms, placed: Sequence[int], family: Candidate) -> Iterator[Candidate]:
    domain, (child, parents) = terms.domain, family
    taken = {domain.base(parent) for parent in parents}
    for base in placed:
        if base not in taken:
            for variant in domain.variants[base]:
                longer = tuple(sorted((*parents, variant)))
                if terms.limits.admits(domain, child, longer):
                    yield child, longer


def _most_parents(terms: Terms) -> int:
    return terms.limits.most_parents(terms.domain.sizes)
