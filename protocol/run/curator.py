"""The curator's state machine of a run: the tasks of each step, and the conclusions from their answers.

It does not know sockets, storage or clocks, and it cannot decrypt: the opening of a sum is an argument.

Every function is pure: (state, message, arguments) -> next state. The legal order is `Terms.steps`, which follow the
method's order (`protocol.stages.methods`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from crypto.errors import BrokenSeal, BrokenSum, MalformedKey
from crypto.sealing import check_public, check_sealed
from crypto.signing import verify
from protocol.errors import PARTIES, FailedCheck, MalformedMessage, OutOfTurn
from protocol.messages.signatures import ACCEPTANCE_CONTEXT, acceptance_text
from protocol.messages.tasks import (
    ENVELOPE_BYTES,
    SEALED_BYTES,
    Acceptance,
    Contribution,
    Count,
    Invitation,
    Joined,
    Keys,
    Reply,
    Task,
)
from protocol.network.network import Network
from protocol.plan.step import Step
from protocol.plan.terms import Terms
from protocol.secure_sum.blame import at_fault, disagreeing, in_words
from protocol.secure_sum.keys import SHARE_BYTES
from protocol.secure_sum.sums import CuratorSums
from protocol.stages.knowledge import Knowledge
from protocol.stages.methods import beginning
from protocol.stages.registry import stage_of


@dataclass(frozen=True)
class RunKeys:
    """The public half of a run's Paillier key with its proof, and the encrypted indicator (noise mode `selected`)."""

    public_key: bytes
    modulus_proof: bytes
    indicator: bytes


@dataclass(frozen=True)
class RunState:
    """Position of a run, the curator's knowledge, and the answers to the current step."""

    terms: Terms
    position: int
    knowledge: Knowledge
    keys: RunKeys | None = None
    acceptances: Mapping[int, Acceptance] = field(default_factory=dict)
    replies: Mapping[int, Reply] = field(default_factory=dict)

    @property
    def step(self) -> Step | None:
        """The step that waits for answers; None when the parties have answered every step."""
        return self.terms.steps[self.position] if self.position < len(self.terms.steps) else None

    @property
    def is_complete(self) -> bool:
        """Whether all parties of the step have answered, so that `move_on` is next."""
        return self.step is not None and not self.waiting_for

    @property
    def waiting_for(self) -> tuple[int, ...]:
        return tuple(party for party in self.step.parties if party not in self.replies) if self.step else ()


def begin(terms: Terms, first_variable: int, keys: RunKeys | None) -> RunState:
    """The first state; the curator draws `first_variable` at random, and only DP-CCBN uses it."""
    return RunState(terms, 0, beginning(terms, first_variable), keys)


def tasks(state: RunState) -> dict[int, Task]:
    """The task of each party of the current step, answered or not; repeated calls return the same tasks."""
    step, terms = state.step, state.terms
    if step is None:
        return {}
    if step.stage == "joining":
        schema = terms.agreed.to_json()
        invitation = Invitation(plan=terms.plan_hash, step=step.name, proposal=terms.plan, schema_text=schema)
        return dict.fromkeys(step.parties, invitation)
    found = stage_of(terms, step).ask(terms, step, state.knowledge)
    asked = _completed(state, found)
    if state.keys is not None and step == _first_sum_pass(terms):
        return {party: _with_keys(state, party, task) for party, task in asked.items()}
    return asked


def receive(state: RunState, party: int, reply: Reply, sums: CuratorSums) -> RunState:
    """The state after one answer; the step's last answer moves the run on to the next step."""
    taken = take(state, party, reply, sums)
    return move_on(taken, sums) if taken.is_complete else taken


def placed(state: RunState, step: str, known: Knowledge) -> RunState:
    """The state at the beginning of a step (or, without a name, of the end), with what the curator knew by then."""
    names = [one.name for one in state.terms.steps]
    return replace(state, position=names.index(step) if step else len(names), knowledge=known, replies={})


def largest_reply(state: RunState, party: int, sums: CuratorSums) -> int:
    """An upper bound on the bytes of a party's answer to the present step, whatever it answers."""
    step, terms = state.step, state.terms
    assert step is not None
    if step.stage == "joining":
        return ENVELOPE_BYTES + (SEALED_BYTES * terms.plan.parties if state.keys is not None else 0)
    return ENVELOPE_BYTES + stage_of(terms, step).largest_reply(terms, step, state.knowledge, party, sums)


def take(state: RunState, party: int, reply: Reply, sums: CuratorSums) -> RunState:
    """The state with one more answer, after all checks of that answer alone; quick."""
    step = state.step
    name = state.terms.plan.members[party].name
    if step is None or party not in step.parties:
        raise OutOfTurn(name, f"answered {reply.step!r}, but no answer of this party is due")
    if reply.plan != state.terms.plan_hash or reply.step != step.name:
        raise OutOfTurn(name, f"answered {reply.step!r} of another plan or step, {step.name!r} is due")
    if party in state.replies:
        raise OutOfTurn(name, f"answered {step.name!r} twice")
    _check_reply(state, step, party, reply, sums)
    if step.stage == "joining":
        return replace(state, replies={**state.replies, party: reply})
    return replace(state, replies=stage_of(state.terms, step).with_reply(state.replies, party, reply, sums))


def move_on(state: RunState, sums: CuratorSums) -> RunState:
    """The state after a complete step: opens the sum and learns from it, which may take long."""
    step, known = state.step, state.knowledge
    assert step is not None
    following = replace(state, position=state.position + 1, replies={})
    if step.stage == "joining":
        accepted = {p: reply for p, reply in state.replies.items() if isinstance(reply, Acceptance)}
        following = replace(following, acceptances=accepted)
    else:
        try:
            stage = stage_of(state.terms, step)
            learned = stage.conclude(state.terms, step, known, state.replies, sums)
            known = learned.passing(step, known.frontier if stage.takes_from_frontier else Network(()))
        except BrokenSum as error:
            raise _blamed(state, step, error) from error
    if following.step is not None:
        known = stage_of(state.terms, following.step).enter(state.terms, known)
    return replace(following, knowledge=known)


def _blamed(state: RunState, step: Step, error: BrokenSum) -> FailedCheck:
    """The refusal of contributions that do not add up, with the parties at fault as far as their tags tell."""
    names = [member.name for member in state.terms.plan.members]
    tags = {party: reply.tags for party, reply in state.replies.items() if isinstance(reply, Contribution)}
    pairs = disagreeing(tags) if all(tags.values()) else []
    culprit = ", ".join(names[party] for party in at_fault(pairs)) or PARTIES
    what = f"the contributions to {step.name!r} do not add up: {error}; {in_words(names, pairs)}"
    return FailedCheck(culprit, what)


def _check_reply(state: RunState, step: Step, party: int, reply: Reply, sums: CuratorSums) -> None:
    expected = Acceptance if step.stage == "joining" else stage_of(state.terms, step).reply
    if not isinstance(reply, expected):
        name = state.terms.plan.members[party].name
        raise MalformedMessage(name, f"answered {step.name!r} with a message of kind {reply.kind!r}")
    if isinstance(reply, Acceptance):
        _check_acceptance(state, party, reply)
    else:
        stage_of(state.terms, step).check_reply(state.terms, step, state.knowledge, party, reply, sums)


def _check_acceptance(state: RunState, party: int, acceptance: Acceptance) -> None:
    member = state.terms.plan.members[party]
    expected = state.terms.plan.parties if state.keys is not None else 0
    if len(acceptance.contributions) != expected:
        raise FailedCheck(member.name, f"sent {len(acceptance.contributions)} key contributions, expected {expected}")
    _check_seals(party, member.name, acceptance)
    try:
        text = acceptance_text(state.terms.plan_hash, acceptance.exchange_key)
        verify(member.signing_key, ACCEPTANCE_CONTEXT, text, acceptance.signature)
        check_public(acceptance.exchange_key)
    except BrokenSeal as error:
        raise FailedCheck(member.name, f"did not sign this plan: {error}") from error
    except MalformedKey as error:
        raise FailedCheck(member.name, f"joins with an exchange key that hides nothing: {error}") from error


def _check_seals(party: int, name: str, acceptance: Acceptance) -> None:
    """Refuse shares of the group key that nobody can open, while it is known who sent them."""
    for recipient, sealed in enumerate(acceptance.contributions):
        try:
            if recipient != party:
                check_sealed(sealed, SHARE_BYTES)
        except BrokenSeal as error:
            raise FailedCheck(name, f"sent a share of the group key that nobody can open: {error}") from error


def _first_sum_pass(terms: Terms) -> Step | None:
    return next((step for step in terms.steps[1:] if stage_of(terms, step).is_sum), None)


def _completed(state: RunState, found: Mapping[int, Task]) -> dict[int, Task]:
    """The tasks with all that they bring beside their stage's part; parties that share a task still share it."""
    before = {party for step in state.terms.steps[1 : state.position] for party in step.parties}
    same: dict[tuple[int, bool], Task] = {}
    asked: dict[int, Task] = {}
    for party, task in found.items():
        kind = id(task), party not in before
        if kind not in same:
            same[kind] = _with_edges(state, _with_roster(state, task) if kind[1] else task)
        asked[party] = same[kind]
    return asked


def _with_roster(state: RunState, task: Task) -> Task:
    """The task as a party's first about its rows, with every member's key of this run and signature."""
    accepted = [state.acceptances[one] for one in sorted(state.acceptances)]
    roster = tuple(Joined(exchange_key=one.exchange_key, signature=one.signature) for one in accepted)
    return task.model_copy(update={"roster": roster})


def _with_edges(state: RunState, task: Task) -> Task:
    """The task, with the edges if the step before has found them."""
    if state.terms.steps[state.position - 1].stage != "edges":
        return task
    return task.model_copy(update={"edges": state.knowledge.edges})


def _with_keys(state: RunState, party: int, task: Task) -> Task:
    assert isinstance(task, Count)
    assert state.keys is not None
    contributions = tuple(state.acceptances[sender].contributions[party] for sender in sorted(state.acceptances))
    keys = Keys(
        public_key=state.keys.public_key,
        modulus_proof=state.keys.modulus_proof,
        indicator=state.keys.indicator,
        contributions=contributions,
    )
    return task.model_copy(update={"keys": keys})
