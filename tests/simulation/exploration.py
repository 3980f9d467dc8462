"""Every state that a run of three parties can be in, found by trying every move from every state, breadth first.

It does not know how many there are, or which plans are tried.

The moves run the protocol's own code: a party's `accept`, `check` and `answer`, the curator's `take`, and its
`protocol.run.curator.move_on`, which `judged` and `concluded` call as the service does. Two states count as one if
curator and parties stand at the same place in them; what tables hold is left out. An answer is computed once, by a
party that was restored from its saved state.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from crypto.paillier_secret import SecretKey
from crypto.randomness import Stream
from curator.runs.live_run import Ending, LiveRun, Standing, concluded, judged, replayed, too_late
from curator.runs.run_crypto import public_half
from party.answering import saved_state
from party.answering.saved_state import Kept
from protocol.messages.tasks import Count, Refusal, Task, decode, encode
from protocol.plan.terms import Terms
from protocol.run.curator import RunState, begin, take
from protocol.run.party import accept, answer, check
from protocol.secure_sum.plain import PlainOpening
from protocol.secure_sum.selected import SelectedOpening
from protocol.tables.counting import Rows
from tests.support.small_runs import identity

JOINING = 0
Key = tuple[Any, ...]


@dataclass(frozen=True)
class Party:
    """Where a party stands: the step that it answered last, and whether that answer has yet to be delivered."""

    answered: int | None = None  # position of the step; None before it has joined
    is_on_its_way: bool = False
    has_refused: bool = False


@dataclass(frozen=True)
class Situation:
    standing: Standing = field(repr=False)
    parties: tuple[Party, ...]
    ending: Ending | None = None

    @property
    def key(self) -> Key:
        state = self.standing.state
        ended = None if self.ending is None else (self.ending.state, self.ending.culprit)
        return state.position, tuple(sorted(state.replies)), self.parties, ended

    @property
    def is_over(self) -> bool:
        return self.ending is not None or self.standing.state.step is None


class Exploration:
    """The graph of a run's states: `moves` holds what every state leads to, by the name of the move."""

    def __init__(self, terms: Terms, codes: Sequence[Sequence[Any]], secret: SecretKey | None) -> None:
        self.terms = terms
        self._rows = [Rows(terms.finest.domain, terms.finest.encode(list(own))) for own in codes]
        plan, keys, self._opening = terms.plan, None, PlainOpening(terms.plan)
        if plan.uses_paillier:
            assert secret is not None
            keys = public_half(secret, plan, Stream.keyed(b"indicator"))
            self._opening = SelectedOpening(plan.noise_mode, secret.public, secret.decrypt)
        self._beginning = begin(terms, 0, keys)
        self._answers: dict[tuple[int, int], bytes] = {}  # by party and position
        self._kept: dict[tuple[int, int], bytes] = {}  # the party's state after it
        self._asked: dict[tuple[int, int], bytes] = {}
        self._concluded: dict[int, Standing | Ending] = {}
        self._restored: dict[tuple[int, int], Kept] = {}
        self.moves: dict[Key, dict[str, Key]] = {}
        self.situations: dict[Key, Situation] = {}
        self._explore()

    def _explore(self) -> None:
        first = Situation(Standing.of(self._beginning), (Party(),) * len(self._rows))
        waiting, self.situations[first.key] = deque([first]), first
        while waiting:
            here = waiting.popleft()
            self.moves[here.key] = {}
            for name, there in self._moves(here):
                self.moves[here.key][name] = there.key
                if there.key not in self.situations:
                    self.situations[there.key] = there
                    waiting.append(there)

    # Moves that change something

    def _moves(self, here: Situation) -> Iterator[tuple[str, Situation]]:
        if here.is_over:
            return
        live, state = self._live(here), here.standing.state
        if live.is_complete:
            yield "move on", self._moved_on(here)
        for me, party in enumerate(here.parties):
            if party.is_on_its_way:
                yield f"{me} delivers", self._delivered(here, me)
            elif me in state.waiting_for and not party.has_refused:
                yield f"{me} answers", self._answered(here, me)
                yield f"{me} refuses", _with(here, me, Party(party.answered, True, True))
        yield "cancel", replace(here, ending=Ending("cancelled", "operator"))
        if live.missing:
            yield "deadline", replace(here, ending=too_late(live))

    def _answered(self, here: Situation, me: int) -> Situation:
        state = here.standing.state
        task, where = encode(here.standing.tasks[me]), (me, state.position)
        assert self._asked.setdefault(where, task) == task, "one step is asked for in two ways"
        if where not in self._answers:
            self._answers[where] = self._compute(me, state.position, decode(task, "curator"))
        return _with(here, me, Party(state.position, True))

    def _delivered(self, here: Situation, me: int) -> Situation:
        found = self._taken(here, me, self._mail(here, me))
        parties = _with(here, me, replace(here.parties[me], is_on_its_way=False)).parties
        if isinstance(found, Ending):
            return replace(here, parties=parties, ending=found)
        return replace(here, standing=found, parties=parties)

    def _moved_on(self, here: Situation) -> Situation:
        position = here.standing.state.position
        if position not in self._concluded:
            self._concluded[position] = concluded(self._live(here), Stream.keyed(b"reference"))
        found = self._concluded[position]
        if isinstance(found, Ending):
            return replace(here, ending=found)
        return replace(here, standing=found)

    # Moves out of turn

    def out_of_turn(self) -> Iterator[tuple[str, Callable[[], object]]]:
        """Everything that may not be done where curator and parties stand: each must raise OutOfTurn.

        What the curator takes depends on where the curator stands, and what a party answers on where the party stands.
        """
        for here in {one.key[:2]: one for one in self.situations.values()}.values():
            yield from self._answers_out_of_turn(here.standing.state)
        for me, answered in self._kept:
            yield from self._questions_out_of_turn(me, answered)

    def _answers_out_of_turn(self, state: RunState) -> Iterator[tuple[str, Callable[[], object]]]:
        for (me, position), body in self._answers.items():
            if position != state.position or me not in state.waiting_for:
                reply: Any = decode(body, self.terms.plan.members[me].name)
                where = f"{me} delivers {reply.step} at {state.position} after {sorted(state.replies)}"
                yield where, partial(take, state, me, reply, self._opening)

    def _questions_out_of_turn(self, me: int, answered: int) -> Iterator[tuple[str, Callable[[], object]]]:
        state = self._thawed(me, answered).state
        for (asked, position), body in self._asked.items():
            if asked == me and position != self._next(me, answered):
                task: Any = decode(body, "curator")
                yield f"{me} is asked for {task.step} after {answered}", partial(check, state, task)

    # A party

    def _compute(self, me: int, position: int, task: Task) -> bytes:
        stream = Stream.keyed(b"party", f"{me} {position}")
        if position == JOINING:
            following, reply = accept(self.terms, me, identity(me), self._rows[me], stream)
            keys = None
        else:
            former = self._former(me, position)
            kept = self._thawed(me, former)
            following, reply = answer(kept.state, check(kept.state, task), self._rows[me], stream)
            keys = task.keys if isinstance(task, Count) and task.keys is not None else kept.keys
        self._kept[me, position] = saved_state.to_bytes(Kept(following, keys))
        return encode(reply)

    def _thawed(self, me: int, position: int) -> Kept:
        """The party as it is after a restart, when it has answered the step at this position."""
        where, stream = (me, position), Stream.keyed(b"restart", f"{me} {position}")
        if where not in self._restored:
            kept = self._kept[where]
            self._restored[where] = saved_state.from_bytes(kept, self.terms, me, identity(me), stream)
        return self._restored[where]

    def _former(self, me: int, position: int) -> int:
        return max(where for who, where in self._kept if who == me and where < position)

    def _next(self, me: int, answered: int) -> int | None:
        later = range(answered + 1, len(self.terms.steps))
        return next((position for position in later if me in self.terms.steps[position].parties), None)

    # The curator

    def rebuilt(self, here: Situation) -> Standing:
        """What a restarted curator makes of the answers that it has stored."""
        state = here.standing.state
        stored = [
            (me, self._answers[me, position])
            for position in range(state.position + 1)
            for me in (self.terms.steps[position].parties if position < len(self.terms.steps) else ())
            if position < state.position or me in state.replies
        ]
        step = "" if state.step is None else state.step.name
        return replayed(self._beginning, stored, step, self._opening)

    def _live(self, here: Situation) -> LiveRun:
        return LiveRun(self.terms.plan.run, here.standing, self._opening, 0, 0, 0, ended=here.ending is not None)

    def _mail(self, here: Situation, me: int) -> bytes:
        party, position = here.parties[me], here.standing.state.position
        if not party.has_refused:
            assert party.answered is not None
            return self._answers[me, party.answered]
        step = self.terms.steps[position].name
        return encode(Refusal(plan=self.terms.plan_hash, step=step, reason="not today"))

    def _taken(self, here: Situation, me: int, body: bytes) -> Standing | Ending:
        step = here.standing.state.step
        assert step is not None
        return judged(self._live(here), here.standing, me, step, body, Stream.keyed(b"reference"))


def _with(here: Situation, me: int, party: Party) -> Situation:
    return replace(here, parties=tuple(party if k == me else other for k, other in enumerate(here.parties)))
