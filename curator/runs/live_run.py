"""A run in memory: its state and everything needed to take the next answer. It can be rebuilt from the store.

It does not know what is stored. Only the holder of `lock` may change a run; everybody may read it.
"""

import logging
import traceback
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any, cast

from crypto.randomness import Stream
from curator.errors import NotAsked, TooLarge
from curator.store.turns import Turns
from protocol.errors import CURATOR, OutOfTurn, PeerError
from protocol.messages.tasks import Refusal, Reply, Task, decode, encode
from protocol.plan.step import Step
from protocol.run.curator import RunState, largest_reply, move_on, placed, take, tasks
from protocol.run.task_cost import task_cost
from protocol.secure_sum.sums import CuratorSums
from protocol.stages.knowledge import Knowledge

_log = logging.getLogger("curator.run")
Answers = Iterable[tuple[int, bytes]]  # numbers of parties with their answers, in the order of arrival
_REFERENCE_BYTES = 6
_LONGEST_PAUSE_MS = 60_000


@dataclass(frozen=True)
class Ending:
    """The final state of a run, the side at fault, and the reason."""

    state: str
    culprit: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Standing:
    """The state of a run, the task for each party of the current step, and what the tasks amount to."""

    state: RunState
    # By the party's number. The tasks share their large parts, so they become bytes only on their way to a party.
    tasks: Mapping[int, Task] = field(repr=False)
    amounts: Mapping[str, Any]  # that the current step asks for, in public numbers
    shared: Mapping[int, bytes] = field(repr=False)  # the bytes of each task that several parties have, by its identity

    @classmethod
    def of(cls, state: RunState) -> "Standing":
        asked = tasks(state)
        step, times = state.step, Counter(map(id, asked.values()))
        if step is None:
            return cls(state, asked, {"step": "", "stage": "finished"}, {})
        cells = ciphertexts = size = 0
        shared: dict[int, bytes] = {}
        for task in {id(task): task for task in asked.values()}.values():
            count, data, cost = times[id(task)], encode(task), task_cost(state.terms, step, task)
            cells, ciphertexts = cells + count * cost.cells, ciphertexts + count * cost.ciphertexts
            size += count * len(data)
            shared |= {id(task): data} if count > 1 else {}
        amounts = {"cells": cells, "ciphertexts": ciphertexts, "bytes": size}
        return cls(state, asked, {"step": step.name, "stage": step.stage, **amounts}, shared)

    def task_of(self, party: int) -> bytes:
        """Return the task of a party of the current step, in bytes."""
        task = self.tasks[party]
        return self.shared.get(id(task)) or encode(task)


@dataclass
class Pause:
    """A pause because the store or a disk is not available: its beginning, its reason, and the time of the next try."""

    since: int
    reason: str
    noted: bool = False  # whether the store has recorded the pause
    until: int = 0
    tries: int = 0

    def wait_longer(self, now: int) -> None:
        """Set the next try: after twice the previous wait, up to a minute."""
        self.until = now + min(1000 << self.tries, _LONGEST_PAUSE_MS)
        self.tries = min(self.tries + 1, 10)


@dataclass
class LiveRun:
    run: str
    at: Standing
    opening: CuratorSums = field(repr=False)
    since: int  # when its step began
    deadline: int | None
    step_ms: int
    ended: bool = False
    pause: Pause | None = None
    lock: Lock = field(repr=False, default_factory=Lock)
    at_work: Lock = field(repr=False, default_factory=Lock)  # held while the result of a complete step is computed
    arrivals: Turns = field(repr=False, default_factory=Turns)  # of answers and promises that wait to be taken together

    @property
    def step(self) -> Step | None:
        return self.at.state.step

    @property
    def place(self) -> tuple[int, bool]:
        """The run's position, which changes with every step and every pause, and with nothing else."""
        return self.at.state.position, self.pause is None

    @property
    def is_complete(self) -> bool:
        """Whether all parties have answered the step and its result has yet to be computed."""
        return not self.ended and self.pause is None and self.at.state.is_complete

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(member.name for member in self.at.state.terms.plan.members)

    @property
    def missing(self) -> list[str]:
        """Names of the parties that have not answered yet."""
        return [self.names[party] for party in self.at.state.waiting_for]

    def task_for(self, party: str) -> bytes | None:
        """Return the task that this party has not answered, or None."""
        at = self.at
        if self.ended or party not in self.names:
            return None
        number = self.names.index(party)
        return at.task_of(number) if number in at.state.waiting_for else None

    def expect(self, party: str, step: str, at: Standing | None = None) -> tuple[int, Step]:
        """Return the party's number and the step. Raise NotAsked unless the run waits for this party's answer to it.

        With `at`, the run is looked at as it will be.
        """
        state = (at or self.at).state
        due, number = state.step, self.names.index(party)
        if due is None or due.name != step or number not in state.waiting_for:
            missing = [self.names[other] for other in state.waiting_for]
            waits = f"for {due.name!r} of {', '.join(missing)}" if due and missing else "for nobody"
            raise NotAsked(f"the run waits {waits}, not for {step!r} of {party}: fetch the inbox")
        return number, due

    def largest_answer(self, party: str, step: str) -> int:
        """Return an upper bound on the bytes of this party's answer to the step. Raise NotAsked as `expect` does."""
        number, _ = self.expect(party, step)
        return largest_reply(self.at.state, number, self.opening)

    def check_size(self, party: str, step: str, size: int, largest: int) -> None:
        """Refuse an answer that is larger than any can be, or than the curator's setting."""
        most = self.largest_answer(party, step)
        if size > min(most, largest):
            raise TooLarge(
                f"{party}'s answer to {step!r} has {size:,} bytes: at most {most:,} are expected, and this curator "
                f"takes at most {largest:,} (setting largest_body)"
            )

    def move_to(self, following: Standing, now: int) -> None:
        if following.state.position != self.at.state.position:
            self.since = now
            self.deadline = None if following.state.step is None else now + self.step_ms
            said(self.run, "step", **following.amounts)
        self.at = following

    def end(self, ending: Ending) -> None:
        self.ended = True
        said(self.run, "ended", **vars(ending))


def replayed(state: RunState, answers: Answers, step: str, opening: CuratorSums) -> Standing:
    """Rebuild the state of a run from its answers. `step` is the last step that the store names.

    Recovery: nothing here draws randomness, so the run has its former state again and sends the same tasks, byte for
    byte. But models are fitted anew, as other versions and machines may fit them otherwise: see `resumed`.
    """
    for party, body in answers:
        state = move_on(state, opening) if state.is_complete else state
        state = _with_answer(state, party, body, opening)
    # The curator may have been killed between storing a step's last answer and storing its result.
    was_left = state.step is not None and state.step.name != step
    return Standing.of(move_on(state, opening) if state.is_complete and was_left else state)


def resumed(
    begun: RunState, joined: Answers, step: str, known: Knowledge, answers: Answers, opening: CuratorSums
) -> Standing:
    """Rebuild the state of a run from what was kept with its present step, the answers to joining, and to that step.

    Recovery: a curator of another version asks parties what the one before asked them, byte for byte, as nothing that
    they were told is worked out again.
    """
    for party, body in joined:
        begun = _with_answer(begun, party, body, opening)
    state = placed(move_on(begun, opening), step, known)
    for party, body in answers:
        state = _with_answer(state, party, body, opening)
    return Standing.of(state)


def _with_answer(state: RunState, party: int, body: bytes, opening: CuratorSums) -> RunState:
    reply = cast(Reply, decode(body, state.terms.plan.members[party].name))
    return take(state, party, reply, opening)


def judged(live: LiveRun, at: Standing, party: int, step: Step, body: bytes, stream: Stream) -> Standing | Ending:
    """Return the run's state after one more answer than in `at`, or its ending."""
    name = live.names[party]
    try:
        reply = cast(Reply, decode(body, name))
        if reply.plan != at.state.terms.plan_hash or reply.step != step.name:
            # Its receipt says that these bytes are the answer to this step: nothing else will come.
            raise OutOfTurn(name, f"answered {reply.step!r} of another plan or step, {step.name!r} is due")
        if isinstance(reply, Refusal):
            return _refused(live, name, step, reply)
        return replace(at, state=take(at.state, party, reply, live.opening))
    except PeerError as error:
        return Ending("failed", error.culprit, str(error))
    except Exception as error:  # an unforeseen failure ends this run, not the service
        return internal(error, live.run, stream)


def _refused(live: LiveRun, name: str, step: Step, refusal: Refusal) -> Ending:
    """End a run that a party refuses. A party that accuses another one is named beside it: which of them is right?"""
    state = "refused" if step.stage == "joining" else "failed"
    reason = refusal.reason.replace("\0", "\ufffd")  # PostgreSQL stores no text with it; the party's bytes are kept
    if refusal.culprit in live.names and refusal.culprit != name:
        both = ", ".join(one for one in live.names if one in (name, refusal.culprit))
        return Ending(state, both, f"{name} says: {reason}; one of the two is at fault, and nothing tells which")
    return Ending(state, name, reason)


def concluded(live: LiveRun, stream: Stream) -> Standing | Ending:
    """Return the run's state after a complete step, or its ending."""
    try:
        return Standing.of(move_on(live.at.state, live.opening))
    except PeerError as error:
        return Ending("failed", error.culprit, str(error))
    except Exception as error:  # an unforeseen failure ends this run, not the service
        return internal(error, live.run, stream)


def too_late(live: LiveRun) -> Ending:
    assert live.step is not None
    names = ", ".join(live.missing)
    return Ending("timed_out", names, f"no answer to {live.step.name!r} before its deadline from {names}")


def said(run: str, event: str, **fields: Any) -> None:
    """Log an event that has been stored."""
    _log.info(event, extra={"fields": {"run": run, **fields}})


def internal(error: Exception, run: str, stream: Stream) -> Ending:
    """End a run by the curator's own failure. Privacy: neither log nor reason repeats the error's text or any value."""
    reference = stream.take(_REFERENCE_BYTES).hex()
    places = [f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)]
    _log.error("run %s, reference %s: %s at %s", run, reference, type(error).__name__, " < ".join(reversed(places)))
    return Ending("failed", CURATOR, f"an internal error; the curator's log says where, under reference {reference}")


def trouble_of(error: Exception) -> str:
    """Say what holds a run up: the store, or the disk for its results."""
    if isinstance(error, OSError):
        return f"results cannot be written: {error.strerror or type(error).__name__}"
    return str(error)
