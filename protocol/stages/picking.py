"""Private picks by one party on its own rows: the task that shows it the network so far, and the rules for its answer.

It does not know in which stage a pick is made (`protocol.stages.initial`, `protocol.stages.updates.guided`).
"""

from collections.abc import Callable, Sequence
from fractions import Fraction

from crypto.randomness import Stream
from protocol.errors import CURATOR, FailedCheck
from protocol.messages.tasks import INDEX_BYTES, Learned, Place, Placed, Reply, Task
from protocol.network.limits import Limits
from protocol.network.network import Family, Network
from protocol.network.parent_sets import candidates
from protocol.picks.by_model import Judge
from protocol.picks.by_score import choose
from protocol.plan.plan import Plan
from protocol.plan.step import Step
from protocol.plan.terms import Terms
from protocol.secure_sum.sums import CuratorSums
from protocol.stages.knowledge import Knowledge, with_guide
from protocol.stages.party_state import PartyState
from protocol.stages.picked_tables import coming_noise
from protocol.stages.reference_rows import guide_problem, reference_of
from protocol.stages.stage import Stage
from protocol.stages.task_checks import check_merged
from protocol.tables.any_rows import AnyRows
from protocol.tables.domain import Variables

Options = Callable[[Sequence[Family]], Sequence[Variables]]  # the options that remain after these picks


class Picks(Stage):
    """A step in which one party picks privately on its own rows."""

    reply = Placed
    task = Place

    def mechanism(self, plan: Plan, _task: Task) -> str:
        return f"private choice by {plan.choice}"

    def enter(self, terms: Terms, known: Knowledge) -> Knowledge:
        return with_guide(terms, known) if terms.plan.picks_pairs else known

    def ask(self, terms: Terms, step: Step, known: Knowledge) -> dict[int, Task]:
        return dict.fromkeys(step.parties, placing_task(terms, step, known))

    def most_choices(self, terms: Terms, party: int) -> int:
        return self.most_picks(terms.plan, party)

    def most_picks(self, plan: Plan, party: int) -> int:
        """The number of families that a party picks at most."""
        return plan.picks[party]

    def largest_reply(self, terms: Terms, _step: Step, _known: Knowledge, party: int, _sums: CuratorSums) -> int:
        return self.most_picks(terms.plan, party) * family_bytes(terms, terms.limits)

    def check_reply(
        self, _terms: Terms, _step: Step, _known: Knowledge, _party: int, _reply: Reply, _sums: CuratorSums
    ) -> None:
        """Check nothing here: the step has a single answer, which is checked as the step is concluded."""


def family_bytes(terms: Terms, limits: Limits) -> int:
    """An upper bound on the bytes of one family in the header of an answer."""
    return INDEX_BYTES * (2 + min(terms.domain.count, limits.most_parents(terms.domain.sizes)))


def placing_task(terms: Terms, step: Step, known: Knowledge) -> Place:
    """The task that shows a party the network so far, and with score M the model of all tables."""
    families = tuple((family.child, family.parents) for family in known.families)
    place = Place(plan=terms.plan_hash, step=step.name, families=families, further=known.further)
    if known.guide is None:
        return place
    guide = known.guide
    shown = {"merged": known.merged, "cliques": guide.cliques, "parents": guide.parents, "blob": guide.blob}
    return place.model_copy(update=shown)


def check_place(state: PartyState, step: Step, task: Place, expected: int) -> None:
    """Refuse a task that does not show a network of `expected` placed variables."""
    families = families_of(task)
    if len(families) != expected:
        raise FailedCheck(CURATOR, f"sent {len(families)} placed variables for {step.name!r}, expected {expected}")
    try:
        Network.of(families, state.terms.domain)
    except ValueError as error:
        raise FailedCheck(CURATOR, f"sent families that make no network: {error}") from None
    _check_further(state.terms, step, task.further)
    _check_guide(state.terms, step, task)


def _check_further(terms: Terms, step: Step, sets: Sequence[Variables]) -> None:
    most = max(1, terms.plan.guided_rounds) * sum(terms.plan.further)
    if len(sets) > most or len(set(sets)) < len(sets):
        raise FailedCheck(
            CURATOR, f"sent {len(sets)} further sets in {step.name!r}, expected at most {most}, all different"
        )
    if any(not 1 < len(set(one)) == len(one) <= terms.plan.ways or max(one) >= terms.domain.count for one in sets):
        raise FailedCheck(CURATOR, f"sent further sets in {step.name!r} that are not sets of variables")


def _check_guide(terms: Terms, step: Step, task: Place) -> None:
    """Refuse a malformed model behind a choice. Any model would keep the choice private, but it has to be a model."""
    if not terms.plan.picks_pairs:
        if task.merged or task.cliques or task.parents or task.blob:
            raise FailedCheck(CURATOR, f"sent a model with {step.name!r}, which this plan's score does not use")
        return
    check_merged(terms, step, task.merged)
    problem = guide_problem(terms.domain.with_merged(task.merged), task, terms.model_room.numbers)
    if problem:
        raise FailedCheck(CURATOR, f"sent with {step.name!r} {problem}")


def families_of(task: Place) -> list[Family]:
    return [Family(child, parents) for child, parents in task.families]


def wire_families(families: Sequence[Family]) -> tuple[tuple[int, Variables], ...]:
    return tuple((family.child, family.parents) for family in families)


def checked_families(
    terms: Terms, party: int, reply: Reply, before: tuple[Family, ...], count: int, limits: Limits
) -> tuple[Family, ...]:
    """The families of an answer, if they extend the network and respect the limits."""
    assert isinstance(reply, Placed | Learned)
    culprit = terms.plan.members[party].name
    families = tuple(Family(child, parents) for child, parents in reply.families)
    if len(families) != count:
        raise FailedCheck(culprit, f"placed {len(families)} variables, expected {count}")
    try:
        in_order = Network.of((*before, *families), terms.domain).families
    except ValueError as error:
        raise FailedCheck(culprit, f"placed families that make no network: {error}") from None
    if in_order != (*before, *families):
        raise FailedCheck(culprit, "placed a variable before its parents")
    for family in families:
        if not limits.admits(terms.domain, family.child, family.parents):
            raise FailedCheck(culprit, f"placed variable {family.child} in a family larger than the plan allows")
    return families


def pick_by_score(
    terms: Terms,
    before: Sequence[Family],
    picks: int,
    budget: Fraction,
    limits: Limits,
    rows: AnyRows,
    stream: Stream,
) -> list[Family]:
    """Pick `picks` more families: the very first variable at random, every other family by a private choice."""
    plan, placed = terms.plan, [family.child for family in before]
    found = first_variable(terms, before, picks, stream)
    private_picks = picks - len(found)
    while len(found) < picks:
        inside = placed + [family.child for family in found]
        outside = [v for v in range(terms.domain.count) if v not in inside]
        options = candidates(terms.domain, inside, outside, limits)
        epsilon = plan.definition.choice_epsilon(budget / private_picks, plan.choice)
        found.append(Family(*choose(rows, options, plan.score, epsilon, plan.choice, stream)))
    return found


def judge_of(state: PartyState, step: Step, task: Place, rows: AnyRows) -> Judge:
    """The judge of score M, which compares the party's rows with rows of the model in the task."""
    terms = state.terms
    own = rows.over(terms.domain.with_merged(task.merged))
    return Judge(own, reference_of(terms, task), own_noise(terms, step, rows.count), terms.matters)


def own_noise(terms: Terms, step: Step, rows: int) -> float:
    """Mean size of the noise in a cell of the next pass, as much of it as falls to a party with so many rows."""
    return coming_noise(terms, step) * rows / terms.plan.total_rows


def pick_by_model(
    terms: Terms, judge: Judge, found: list[Family], picks: int, budget: Fraction, options: Options, stream: Stream
) -> list[Family]:
    """Pick until there are `picks` families: privately, those that the model reproduces worst (score M)."""
    plan, private_picks = terms.plan, picks - len(found)
    for _ in range(private_picks):
        choices = options(found)
        if choices:
            epsilon = plan.definition.choice_epsilon(budget / private_picks, plan.choice)
            child, *parents = judge.pick(choices, epsilon, plan.choice, stream)
            found.append(Family(child, tuple(parents)))
    return found


def first_variable(terms: Terms, before: Sequence[Family], picks: int, stream: Stream) -> list[Family]:
    """The very first variable of a network, drawn at random without reading rows; nothing if a network has begun."""
    return [] if before or not picks else [Family(stream.below(terms.domain.count))]
