"""Answers and promises that have come for a run: judged one after the other, so that they can be stored together.

It does not know the store's transactions, or in which thread it works.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection

from crypto.randomness import Stream
from curator.runs.live_run import Ending, LiveRun, Standing, judged, said
from curator.runs.receipts import accepted, agrees, promised
from curator.runs.transitions import write_answer, write_end
from curator.store import run_records as records
from curator.store.run_records import ClaimRecord, Place, ReplyRecord
from curator.store.turns import Queued


@dataclass(frozen=True)
class Arrival:
    """A party's answer to a step, or without its bytes the promise of one."""

    step: str
    party: str
    digest: str
    receipt: bytes = field(repr=False)
    body: bytes | None = field(repr=False, default=None)


class Batch:
    """What is to be stored of some arrivals, and the run's state after them: nothing of it has happened yet."""

    def __init__(self, live: LiveRun, known: Mapping[Place, ReplyRecord | ClaimRecord], now: int) -> None:
        """Begin with what the store knows of the steps in question."""
        self._live, self._known, self.now = live, dict(known), now
        self.outcome: Standing | Ending = live.at
        self._answers: list[tuple[ReplyRecord, bytes]] = []
        self._claims: list[ClaimRecord] = []

    @property
    def is_empty(self) -> bool:
        return not self._answers and not self._claims

    def add(self, one: Arrival, stream: Stream) -> bool:
        """Judge one more arrival, and return False if the run is over by then.

        What is known already changes nothing, and what is refused raises.
        """
        place = one.step, one.party
        found = self._known.get(place)
        if agrees(found, one.step, one.party, one.digest) and (isinstance(found, ReplyRecord) or one.body is None):
            return True
        if self._live.ended or isinstance(self.outcome, Ending):
            return False
        at, terms = self.outcome, self.outcome.state.terms
        number, due = self._live.expect(one.party, one.step, at)
        if one.body is None:
            claim = promised(terms, number, due, one.digest, one.receipt, self.now)
            self._claims.append(claim)
            self._known[place] = claim
            return True
        answer = accepted(terms, number, due, one.body, one.digest, one.receipt, self.now)
        self.outcome = judged(self._live, at, number, due, one.body, stream)
        self._answers.append((answer, one.body))
        self._known[place] = answer
        return True

    def write(self, db: Connection) -> None:
        """Write everything, and the end of the run if the last answer ends it."""
        for claim in self._claims:
            records.add_claim(db, claim)
        for answer, body in self._answers:
            write_answer(db, answer, body)
        if isinstance(self.outcome, Ending):
            write_end(db, self._live.run, self.outcome, self.now)
        elif self._answers:
            records.change_run(db, self._live.run, updated=self.now)

    def tell(self) -> None:
        """Log the answers that have been stored."""
        for answer, _ in self._answers:
            said(self._live.run, "answered", step=answer.step, party=answer.party, bytes=answer.size)


def steps_of(waiting: Sequence[Queued]) -> set[str]:
    return {one.what.step for one in waiting}
