"""What a party lets the curator ask in a step: the plan's own questions and nothing else.

It does not know rows: a request is judged before anything is read.
"""

from collections.abc import Sequence

from crypto.errors import BrokenSeal
from crypto.signing import verify
from protocol.errors import CURATOR, FailedCheck
from protocol.messages.signatures import ACCEPTANCE_CONTEXT
from protocol.messages.tasks import Count, Place, TakeBack, Task
from protocol.network.network import Family, Network
from protocol.plan.passes import candidate_families, is_sum_pass
from protocol.plan.schedule import Step
from protocol.plan.terms import Terms
from protocol.stages.party_state import PartyState
from protocol.stages.reference_rows import guide_problem
from protocol.tables.domain import Merged, Variables


def check_roster(terms: Terms, task: Task) -> None:
    """Every member of the plan has signed it, and with it the names and keys of all: nobody is only said to take part.

    Privacy: what a party says counts on the others' masks and noise, so it says nothing before they are all in.
    """
    members, signatures = terms.plan.members, getattr(task, "roster", ())
    if len(signatures) != len(members):
        raise FailedCheck(
            CURATOR, f"shows {len(signatures)} signatures under the plan before the first task, {len(members)} expected"
        )
    for member, signature in zip(members, signatures, strict=True):
        try:
            verify(member.signing_key, ACCEPTANCE_CONTEXT, terms.plan_hash.encode(), signature)
        except BrokenSeal:
            raise FailedCheck(CURATOR, f"cannot show that {member.name} has signed this plan") from None


def check_count(state: PartyState, step: Step, task: Count) -> None:
    _check_merged(state.terms, step, task.merged)
    _check_tables(state.terms, step, task.tables, task.merged)
    _check_masked(state, step, task)


def _check_tables(terms: Terms, step: Step, tables: Sequence[Variables], merged: Sequence[Merged]) -> None:
    """Privacy holds whichever tables are asked, for they share the step's budget; sense is another matter."""
    if step.stage == "correlations":
        if tuple(tables) != terms.cover.views:
            raise FailedCheck(CURATOR, "asks for other views than the plan's in 'correlations'")
        return
    if step.stage == "candidates":
        _check_candidates(terms, step, tables)
        return
    limits = terms.frontier_limits if step.stage == "update" else terms.limits
    domain = terms.domain.with_merged(merged)
    if len(set(tables)) != len(tables):
        raise FailedCheck(CURATOR, f"asks for a table twice in {step.name!r}")
    if len(tables) > terms.domain.count:
        raise FailedCheck(
            CURATOR, f"asks for {len(tables)} tables in {step.name!r}, at most {terms.domain.count} expected"
        )
    for table in tables:
        known = all(v < len(domain.variables) for v in table)
        if not known or len({domain.base(v) for v in table}) != len(table) or not table:
            raise FailedCheck(CURATOR, f"asks for a table over {table} in {step.name!r}, which is no set of variables")
        if not limits.admits(domain, table[0], table[1:]):
            raise FailedCheck(CURATOR, f"asks for a table over {table} in {step.name!r}, larger than the plan allows")


def _check_candidates(terms: Terms, step: Step, tables: Sequence[Variables]) -> None:
    """Which variables are placed shows in what is asked; from them every candidate follows."""
    unplaced = {table[0] for table in tables if table}
    placed = [Family(variable) for variable in range(terms.domain.count) if variable not in unplaced]
    iteration = int(step.name.rpartition("/")[2])
    if len(placed) != iteration or list(tables) != [f.variables for f in candidate_families(terms, placed)]:
        raise FailedCheck(CURATOR, f"asks in {step.name!r} for other tables than the candidates of {iteration} placed")


def _check_masked(state: PartyState, step: Step, task: Count) -> None:
    allowed = len(task.tables) if len(step.parties) > 1 and not is_sum_pass(state.terms, step) else 0
    if list(task.masked) != sorted(set(task.masked)) or any(index >= allowed for index in task.masked):
        raise FailedCheck(CURATOR, f"names tables to mask in {step.name!r} that cannot be masked")


def check_take_back(state: PartyState, task: TakeBack) -> None:
    if len(set(task.tables)) != len(task.tables) or any(table not in state.noise for table in task.tables):
        raise FailedCheck(CURATOR, f"asks in {task.step!r} for noise that was not in the last update")


def check_place(state: PartyState, step: Step, task: Place) -> None:
    expected = sum(state.terms.plan.picks[: state.me]) if step.stage == "initial" else state.terms.domain.count
    families = families_of(task)
    if len(families) != expected:
        raise FailedCheck(CURATOR, f"sent {len(families)} placed variables for {step.name!r}, {expected} expected")
    try:
        Network.of(families, state.terms.domain)
    except ValueError as error:
        raise FailedCheck(CURATOR, f"sent families that make no network: {error}") from None
    _check_further(state.terms, step, task.further)
    _check_guide(state.terms, step, task)


def _check_further(terms: Terms, step: Step, pairs: Sequence[Variables]) -> None:
    most = terms.plan.rounds * sum(terms.plan.further)
    if len(pairs) > most or len(set(pairs)) < len(pairs):
        raise FailedCheck(
            CURATOR, f"sent in {step.name!r} {len(pairs)} further pairs, at most {most} different ones expected"
        )
    if any(len(pair) != 2 or pair[0] == pair[1] or max(pair) >= terms.domain.count for pair in pairs):
        raise FailedCheck(CURATOR, f"sent in {step.name!r} further pairs that are no pairs of variables")


def _check_guide(terms: Terms, step: Step, task: Place) -> None:
    """The model behind a choice: any would be private, but it has to be one."""
    if terms.plan.score != "M":
        if task.merged or task.cliques or task.parents or task.blob:
            raise FailedCheck(CURATOR, f"sent a model with {step.name!r}, which this plan's score does not ask for")
        return
    _check_merged(terms, step, task.merged)
    problem = guide_problem(terms.domain.with_merged(task.merged), task)
    if problem:
        raise FailedCheck(CURATOR, f"sent with {step.name!r} {problem}")


def _check_merged(terms: Terms, step: Step, merged: Sequence[Merged]) -> None:
    """Privacy holds however categories are merged; sense is another matter."""
    if merged and (not terms.plan.merging or step.stage == "correlations"):
        raise FailedCheck(CURATOR, f"merges categories in {step.name!r}, where the plan does not")
    bases = [base for base, _ in merged]
    if bases != sorted(set(bases)) or any(base >= terms.domain.count for base in bases):
        raise FailedCheck(
            CURATOR, f"merges in {step.name!r} categories of {bases}, which is no rising list of variables"
        )
    for base, groups in merged:
        size = terms.domain.sizes[base]
        if len(groups) != size or set(groups) != set(range(max(groups) + 1)) or not 1 <= max(groups) < size - 1:
            raise FailedCheck(CURATOR, f"merges {size} categories of variable {base} in {step.name!r} not into fewer")


def families_of(task: Place) -> list[Family]:
    return [Family(child, parents) for child, parents in task.families]
