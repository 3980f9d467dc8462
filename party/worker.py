"""The worker: it fetches tasks, has them answered and delivers the answers, and resumes after a kill.

It does not know how a task is answered (`party.answering.answering`) or how requests are signed
(`party.curator_link.client`).

Each wait is logged once. Errors are logged and retried; none of them stops the worker. The one exception are books that
were set back, and another copy of this home that answers too: nothing is answered until the data owner has acknowledged
it. Before every task the worker looks whether the curator holds a receipt that the ledger does not know.

Answers that cost nothing are followed by a pause, which grows while the curator goes on so.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from crypto.randomness import Stream
from party.answering.answering import Answering
from party.answering.outgoing import Outgoing
from party.curator_link.client import Backoff, Curator
from party.errors import Declined, RolledBack, Unreachable
from party.home.home import OpenHome
from party.logs import Log, silent
from party.rollback import check_own_books, check_receipts, stop_for_other_bytes
from protocol.errors import MalformedMessage, OutOfTurn, PeerError, PlanError, SubnError
from protocol.messages.http import LONGEST_POLL, OTHER_BYTES, SentReceipt
from protocol.messages.run_states import ENDS

# Failures that count while nobody answers: a curator that was started anew is seen within four seconds.
_AWAY = 3
DECISION_SECONDS = 5  # at most until the data owner's decision, or the end of a run, is noticed


class Worker:
    """The worker of one party; `trouble` is what keeps it from working at the moment, or None."""

    def __init__(
        self,
        opened: OpenHome,
        curator: Curator,
        answering: Answering,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        stream: Stream | None = None,
        backoff: Backoff | None = None,
        log: Log = silent,
        heard: Callable[[int], None] = lambda _difference: None,
    ) -> None:
        """Make a worker. It tells `heard` by how many milliseconds the curator's signed time is ahead."""
        self._opened, self._ledger = opened, opened.ledger
        self._curator, self._answering = curator, answering
        self._sleep, self._log, self._heard = sleep, log, heard
        self._stream, self._backoff = stream or Stream.system(), backoff or Backoff()
        self._failures = self._fruitless = 0
        self._is_behind = True  # whether runs may have ended since the worker last asked
        self._held: set[tuple[str, str]] = set()  # run and step of every receipt that the curator is known to hold
        self._said: tuple[str, ...] = ()
        self._left_alone: set[str] = set()  # runs whose tasks cannot be read, until the next start
        self.trouble: str | None = "not started yet"

    async def run(self) -> None:
        """Work until cancelled. RolledBack is raised before anything is answered."""
        while not await self._patiently(self.start):
            pass
        while True:
            await self._patiently(self.turn)

    async def start(self) -> None:
        """Compare the ledger with the log and the curator's receipts, then deliver what a kill kept back."""
        check_own_books(self._opened)
        self._answering.tidy()  # at once: rows of runs that are over wait for no curator
        self._heard(await self._curator.clock_difference())
        receipts = await self._look_at_receipts()
        open_runs = await self._settle()
        for outgoing in self._answering.undelivered(receipts, open_runs):
            with suppress(Declined):  # a curator that was set back will ask for the answer again
                await self._deliver(outgoing)

    async def turn(self) -> None:
        """Handle one task, or one long poll that brings none."""
        for outgoing in await asyncio.to_thread(self._answering.decided):
            await self._deliver(outgoing)
        asked = [request.run for request in self._ledger.requests("asked")]
        self._say_what_waits(asked)
        found = await self._curator.inbox(self._poll_seconds(), [*asked, *self._left_alone])
        if found is None:
            self._heard(await self._curator.clock_difference())
            before = self._fruitless
            await self._settle()
            self._is_behind = False
            await self._pause(before)
            return
        self._is_behind = True
        if found.held != len(self._held):
            await self._look_at_receipts()
        self._log("task", run=found.run, bytes=len(found.task))
        try:
            answer = await asyncio.to_thread(self._answering.handle, found.run, found.task)
        except (MalformedMessage, OutOfTurn, PlanError) as error:
            answer = await self._unread(found.run, error)
        self._say_answered(answer)
        if answer is not None:
            before, self._fruitless = self._fruitless, self._fruitless + 1 if answer.kind != "answer" else 0
            await self._deliver(answer)
            await self._pause(before)
        elif found.run in asked:  # a curator that does not skip the run would be polled without a pause
            await self._sleep(DECISION_SECONDS)

    async def _unread(self, run: str, error: PeerError | PlanError) -> Outgoing | None:
        """Refuse an invitation that cannot be read. A run that cannot even be refused is left alone from now on."""
        self._log("cannot read a task", run=run, reason=str(error))
        own = next((one for one in await self._curator.my_runs() if one.run == run), None)
        if own is None:
            raise error
        if own.state == "joining":
            return self._answering.refuse_unread(run, own.plan, error)
        self._left_alone.add(run)
        return None

    async def _look_at_receipts(self) -> list[SentReceipt]:
        """Stop the party if the curator holds a receipt that the ledger does not know.

        Privacy: a copy of this home that is behind would answer again what another copy has answered, under the same
        masks and with fresh noise.
        """
        receipts = await self._curator.receipts()
        check_receipts(self._opened, receipts)
        self._held = {(receipt.run, receipt.step) for receipt in receipts}
        return receipts

    async def _pause(self, before: int) -> None:
        """Pause after answers and runs that came to nothing, ever longer while they follow each other."""
        if self._fruitless > before:
            await self._sleep(self._backoff.seconds(self._fruitless, self._stream))

    def _say_answered(self, answer: Outgoing | None) -> None:
        if answer is not None:  # Privacy: the time it took might tell something about the rows, and is not logged
            what = {"run": answer.run, "step": answer.step, "bytes": len(answer.reply)}
            self._log("answered", **what, ciphertexts=answer.ciphertexts)

    async def _deliver(self, outgoing: Outgoing) -> None:
        run, step = outgoing.run, outgoing.step
        try:
            await self._curator.deliver(run, step, outgoing.reply, outgoing.receipt)
            self._held.add((run, step))
            self._log("delivered", run=run, step=step, bytes=len(outgoing.reply))
        except Declined as error:
            self._log("the curator does not take an answer", run=run, step=step, reason=str(error))
            if error.kind == OTHER_BYTES and outgoing.kind != "refusal":
                await self._look_at_receipts()  # tells which answers are missing here
                stop_for_other_bytes(self._opened, run, step)
            await self._settle()
            if run in [request.run for request in self._ledger.requests("active")]:
                raise

    async def _settle(self) -> list[str]:
        """End the runs that the curator says are over; return the runs that go on."""
        known = {request.run for request in self._ledger.requests() if request.state != "ended"}
        found = await self._curator.my_runs()
        over = [run for run in found if run.state in ENDS and run.run in known]
        if over:
            await self._look_at_receipts()  # another copy of this home may have answered them to their end
        for run in over:
            reason = f"{run.culprit}: {run.reason}" if run.culprit and run.reason else run.reason or ""
            settled = self._answering.settle(run.run, run.state, reason)
            self._fruitless += not settled.spent
            self._log("run ended", run=run.run, outcome=run.state, reason=reason)
        return [run.run for run in found if run.state not in ENDS]

    def _poll_seconds(self) -> int:
        """Seconds of a poll: short while the data owner may decide, and until it is known which runs go on.

        The end of a run during a poll ends the poll by itself.
        """
        states = {request.state for request in self._ledger.requests()}
        is_open = states - {"ended"} if self._is_behind else states - {"active", "ended"}
        return DECISION_SECONDS if is_open else LONGEST_POLL

    def _say_what_waits(self, asked: Sequence[str]) -> None:
        if tuple(asked) != self._said:
            self._said = tuple(asked)
            if asked:
                self._log("waiting for the data owner's word", runs=list(asked))

    async def _patiently(self, action: Callable[[], Awaitable[None]]) -> bool:
        """Return whether the action succeeded; log an error and wait for a while."""
        try:
            await action()
        except RolledBack:
            raise
        except (SubnError, OSError) as error:
            self.trouble = str(error)
            counted = min(self._failures, _AWAY) if isinstance(error, Unreachable) else self._failures
            delay = self._backoff.seconds(counted, self._stream)
            self._failures += 1
            self._log("cannot go on", reason=str(error), kind=type(error).__name__, seconds=round(delay, 1))
            await self._sleep(delay)
            return False
        self._failures, self.trouble = 0, None
        return True
