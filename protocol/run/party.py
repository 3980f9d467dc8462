"""A run as one party sees it: what it accepts, what it answers, what it keeps to itself.

It does not know sockets, storage or clocks; rows are given as `Rows`, and randomness as a stream.

The order of effects is the caller's (docs/protocol.md, section 6): `check` a task, charge its step, then `answer` it;
store the new state before the reply leaves, and never answer from one that has answered
(`protocol/privacy/privacy.md` says what that would show).
"""

from dataclasses import replace

from crypto.randomness import Stream
from crypto.signing import sign
from protocol.errors import CURATOR, DataError, OutOfTurn, PlanError
from protocol.identity import Identity
from protocol.messages.signatures import ACCEPTANCE_CONTEXT
from protocol.messages.tasks import Acceptance, Count, Invitation, Learn, Place, Reply, TakeBack, Task
from protocol.plan.passes import is_sum_pass
from protocol.plan.schedule import Step
from protocol.plan.terms import Terms
from protocol.secure_sum.plain import PartySums, PlainSums
from protocol.secure_sum.selected import PairKeys, group_contributions
from protocol.stages.answers import contribute, deliver, learn, place, take_back
from protocol.stages.party_state import PartyState
from protocol.stages.requests import check_count, check_place, check_roster, check_take_back
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
    if sums is None and terms.plan.noise != "selected":
        state = replace(state, sums=PlainSums(terms.plan, me, PairKeys(terms, me, identity)))
    elif sums is None and terms.plan.method != "independent":
        state = replace(state, share=stream.take(32))
        contributions = group_contributions(terms, me, state.share)
    signature = sign(identity.signing, ACCEPTANCE_CONTEXT, terms.plan_hash.encode())
    return state, Acceptance(plan=terms.plan_hash, step="joining", signature=signature, contributions=contributions)


def check(state: PartyState, task: Task) -> Step:
    """The step that a task belongs to, if it is the next one for this party and asks only what the plan allows."""
    step = state.due
    if isinstance(task, Invitation) or step is None:
        raise OutOfTurn(CURATOR, f"sent {task.kind!r}, nothing of that kind is due")
    if task.plan != state.terms.plan_hash or task.step != step.name:
        raise OutOfTurn(CURATOR, f"asks for {task.step!r} of another plan or step, {step.name!r} is due")
    if not isinstance(task, _expected_kind(state, step)):
        raise OutOfTurn(CURATOR, f"sent {task.kind!r} for {step.name!r}")
    if not state.answered:
        check_roster(state.terms, task)
    if isinstance(task, Count):
        check_count(state, step, task)
    elif isinstance(task, TakeBack):
        check_take_back(state, task)
    elif isinstance(task, Place):
        check_place(state, step, task)
    return step


def answer(state: PartyState, task: Task, rows: Rows, stream: Stream) -> tuple[PartyState, Reply]:
    """The answer to a task that `check` has passed and whose step has been charged."""
    step = check(state, task)
    state = replace(state, answered=state.terms.steps.index(step))
    if isinstance(task, Count) and is_sum_pass(state.terms, step):
        return contribute(state, step, task, rows, stream)
    if isinstance(task, Count):
        return deliver(state, step, task, rows, stream)
    if isinstance(task, TakeBack):
        return take_back(state, step, task)
    if isinstance(task, Place):
        return state, place(state, step, task, rows, stream)
    return state, learn(state, step, rows, stream)


def _expected_kind(state: PartyState, step: Step) -> type[Task]:
    if step.stage in ("initial", "further"):
        return Place
    if step.stage == "models":
        return Learn
    if step.stage == "update" and state.terms.plan.update == "replace" and state.me != step.parties[-1]:
        return TakeBack
    return Count
