"""A party's state machine of a run: acceptance of the plan, checks of tasks, and answers.

It does not know sockets, storage or clocks; rows are given as `Rows`, and randomness as a stream.

The caller is responsible for the order of effects (docs/protocol.md, section 6): `check` a task, charge its step, then
`answer` it. Store the new state before the reply leaves, and never answer twice from the same state
(`protocol/privacy/privacy.md` says what a second answer would reveal).
"""

from dataclasses import dataclass, replace

from crypto.errors import BrokenSeal
from crypto.randomness import Stream
from crypto.signing import sign, verify
from protocol.errors import CURATOR, DataError, FailedCheck, OutOfTurn, PlanError
from protocol.identity import Identity
from protocol.messages.signatures import ACCEPTANCE_CONTEXT
from protocol.messages.tasks import Acceptance, Invitation, Reply, Task
from protocol.plan.step import Step
from protocol.plan.terms import Terms
from protocol.secure_sum.keys import PairKeys, group_contributions
from protocol.secure_sum.plain import PlainSums
from protocol.secure_sum.sums import PartySums
from protocol.stages.party_state import PartyState
from protocol.stages.registry import stage_of
from protocol.tables.counting import Rows


def accept(
    terms: Terms, me: int, identity: Identity, rows: Rows, stream: Stream, sums: PartySums | None = None
) -> tuple[PartyState, Acceptance]:
    """Join a run whose terms this party has checked and wants. `sums` replaces the cryptography in experiments."""
    member = terms.plan.members[me]
    if rows.count != member.rows:
        raise DataError(f"{member.name} holds {rows.count} rows, the plan says {member.rows}: ask for a new plan")
    if (member.signing_key, member.exchange_key) != (identity.signing.public, identity.exchange.public):
        raise PlanError(f"the plan's roster does not hold the keys of {member.name}: ask for a new plan")
    state = PartyState(terms, me, identity, sums=sums)
    contributions: tuple[bytes, ...] = ()
    if sums is None and not terms.plan.noise_mode.uses_paillier:
        state = replace(state, sums=PlainSums(terms.plan, me, PairKeys(terms, me, identity)))
    elif sums is None and terms.plan.method != "independent":
        state = replace(state, share=stream.take(32))
        contributions = group_contributions(terms, me, state.share)
    signature = sign(identity.signing, ACCEPTANCE_CONTEXT, terms.plan_hash.encode())
    return state, Acceptance(plan=terms.plan_hash, step="joining", signature=signature, contributions=contributions)


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
    stage.check(state, step, task)
    return Checked(step, task)


def answer(state: PartyState, checked: Checked, rows: Rows, stream: Stream) -> tuple[PartyState, Reply]:
    """Answer a task whose step has been charged."""
    step = checked.step
    assert step == state.due, "checked in another state"
    state = replace(state, answered=state.terms.steps.index(step))
    return stage_of(state.terms, step).answer(state, step, checked.task, rows, stream)


def check_roster(terms: Terms, task: Task) -> None:
    """Refuse a task that does not show every member's signature under the plan.

    The plan holds the names and keys of all members, so the curator cannot invent a member that takes part.

    Privacy: a party's contribution relies on the others' masks and noise. A party therefore sends nothing about its
    rows before all members have verifiably joined.
    """
    members, signatures = terms.plan.members, getattr(task, "roster", ())
    if len(signatures) != len(members):
        raise FailedCheck(
            CURATOR, f"shows {len(signatures)} signatures under the plan before the first task, expected {len(members)}"
        )
    for member, signature in zip(members, signatures, strict=True):
        try:
            verify(member.signing_key, ACCEPTANCE_CONTEXT, terms.plan_hash.encode(), signature)
        except BrokenSeal:
            raise FailedCheck(CURATOR, f"cannot show that {member.name} has signed this plan") from None
