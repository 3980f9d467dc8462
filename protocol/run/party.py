"""A party's state machine of a run: acceptance of the plan, checks of tasks, and answers.

It does not know sockets, storage or clocks; rows are given as `AnyRows`, and randomness as a stream.

The caller is responsible for the order of effects (docs/protocol.md, section 6): `check` a task, charge its step, then
`answer` it. Store the new state before the reply leaves, and never answer twice from the same state
(`protocol/privacy/privacy.md` says what a second answer would reveal).
"""

from dataclasses import dataclass, replace

from crypto.errors import BrokenSeal, MalformedKey
from crypto.randomness import Stream
from crypto.sealing import KEY_BYTES, ExchangeKey, check_public
from crypto.signing import sign, verify
from protocol.errors import CURATOR, DataError, FailedCheck, OutOfTurn, PlanError
from protocol.identity import Identity
from protocol.messages.signatures import ACCEPTANCE_CONTEXT, acceptance_text
from protocol.messages.tasks import Acceptance, Count, Invitation, Joined, Reply, TakeBack, Task
from protocol.plan.step import Step
from protocol.plan.terms import Terms
from protocol.secure_sum.keys import group_contributions
from protocol.secure_sum.sums import PartySums
from protocol.stages.party_state import PartyState
from protocol.stages.registry import stage_of
from protocol.tables.any_rows import AnyRows
from protocol.tables.found_edges import problem_of


def accept(
    terms: Terms, me: int, identity: Identity, rows: AnyRows, stream: Stream, sums: PartySums | None = None
) -> tuple[PartyState, Acceptance]:
    """Join a run whose terms this party has checked and wants. `sums` replaces the cryptography in experiments."""
    member = terms.plan.members[me]
    if rows.count != member.rows:
        raise DataError(f"{member.name} holds {rows.count} rows, the plan says {member.rows}: ask for a new plan")
    if (member.signing_key, member.exchange_key) != (identity.signing.public, identity.exchange.public):
        raise PlanError(f"the plan's roster does not hold the keys of {member.name}: ask for a new plan")
    state = PartyState(terms, me, identity, ExchangeKey.from_bytes(stream.take(KEY_BYTES)), sums=sums)
    contributions: tuple[bytes, ...] = ()
    if sums is None and terms.plan.uses_paillier:
        state = replace(state, share=stream.take(32))
        contributions = group_contributions(terms, me, state.share)
    key = state.run_key.public
    signature = sign(identity.signing, ACCEPTANCE_CONTEXT, acceptance_text(terms.plan_hash, key))
    return state, Acceptance(
        plan=terms.plan_hash,
        step="joining",
        exchange_key=key,
        signature=signature,
        contributions=contributions,
        engine=rows.engine,
    )


@dataclass(frozen=True)
class Checked:
    """A task that `check` has passed, with its step; nothing else is answered."""

    step: Step
    task: Task


def check(state: PartyState, task: Task) -> Checked:
    """Pass a task if it is the next task for this party and asks only for what the plan allows."""
    step, terms = state.due, state.terms
    if isinstance(task, Invitation) or step is None:
        raise OutOfTurn(CURATOR, f"sent {task.kind!r}, nothing of that kind is due")
    if task.plan != terms.plan_hash or task.step != step.name:
        raise OutOfTurn(CURATOR, f"asks for {task.step!r} of another plan or step, {step.name!r} is due")
    stage = stage_of(terms, step)
    if not isinstance(task, stage.expected(state, step)):
        raise OutOfTurn(CURATOR, f"sent {task.kind!r} for {step.name!r}, which has tasks of another kind")
    if not state.answered:
        check_roster(terms, task)
    elif _roster(task):
        raise FailedCheck(CURATOR, f"shows signatures again in {step.name!r}: keys stay as they were at joining")
    _check_keys(state, step, task)
    _check_edges(state, step, task)
    stage.check(state, step, task)
    return Checked(step, task)


def answer(state: PartyState, checked: Checked, rows: AnyRows, stream: Stream) -> tuple[PartyState, Reply]:
    """Answer a task whose step has been charged."""
    step = checked.step
    assert step == state.due, "checked in another state"
    if not state.answered:
        state = replace(state, run_keys=tuple(member.exchange_key for member in _roster(checked.task)))
    state = replace(state, answered=state.terms.steps.index(step))
    if isinstance(checked.task, Count) and checked.task.edges:
        state = replace(state, edges=checked.task.edges)
    rows = rows.divided(state.terms.domain, state.edges) if state.edges else rows
    return stage_of(state.terms, step).answer(state, step, checked.task, rows, stream)


def check_roster(terms: Terms, task: Task) -> None:
    """Refuse a task that does not show every member's signature under the plan.

    The plan holds the names and keys of all members, so the curator cannot invent a member that takes part.

    Privacy: a party's contribution relies on the others' masks and noise. A party therefore sends nothing about its
    rows before all members have verifiably joined. The keys of this run, from which masks are made, are the members'
    own: no other key stands under their signatures.
    """
    members, roster = terms.plan.members, _roster(task)
    if len(roster) != len(members):
        raise FailedCheck(
            CURATOR, f"shows {len(roster)} signatures under the plan before the first task, expected {len(members)}"
        )
    for member, joined in zip(members, roster, strict=True):
        try:
            text = acceptance_text(terms.plan_hash, joined.exchange_key)
            verify(member.signing_key, ACCEPTANCE_CONTEXT, text, joined.signature)
        except BrokenSeal:
            raise FailedCheck(CURATOR, f"cannot show that {member.name} has signed this plan") from None
        try:
            check_public(joined.exchange_key)
        except MalformedKey as error:
            raise FailedCheck(member.name, f"has joined with an exchange key that hides nothing: {error}") from None


def _check_keys(state: PartyState, step: Step, task: Task) -> None:
    """Privacy: the indicator, once checked, stays. Later keys would be kept and stand in its place after a restart."""
    if isinstance(task, Count) and task.keys is not None:
        needed = state.terms.plan.uses_paillier and stage_of(state.terms, step).is_sum and state.sums is None
        if not needed:
            raise FailedCheck(CURATOR, f"sends keys with {step.name!r}, which only the first encrypted pass brings")


def _check_edges(state: PartyState, step: Step, task: Task) -> None:
    """Refuse edges that make no sense, or come at another time. Privacy holds wherever a grid is divided."""
    terms, told = state.terms, task.edges if isinstance(task, Count) else ()
    if terms.steps[state.answered].stage != "edges":
        if told:
            raise FailedCheck(CURATOR, f"tells edges of bins with {step.name!r}, before which none were looked for")
    elif (problem := problem_of(terms.agreed, told)) is not None:
        raise FailedCheck(CURATOR, f"tells edges of bins with {step.name!r} that cannot be: {problem}")


def _roster(task: Task) -> tuple[Joined, ...]:
    """What the task shows of every member's acceptance; nothing in tasks that carry no roster."""
    return () if isinstance(task, Invitation | TakeBack) else task.roster
