"""The party at work: fetches tasks, has them answered, delivers the answers; it goes on where a kill left it.

It does not know how a task is answered (`party.answering.answering`) or how requests are signed
(`party.curator_link.client`).

Every state of waiting is one log line, and nothing that goes wrong ends the work: it is said, and tried again. The
one exception is a ledger that was set back: with it, nothing is answered until the data owner has acknowledged that.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from crypto.randomness import Stream
from party.answering.answering import Answering, Outgoing
from party.curator_link.client import Backoff, Curator
from party.errors import Declined, RolledBack
from party.home.home import OpenHome
from party.logs import Log, silent
from party.rollback import check_not_rolled_back
from protocol.errors import SubnError
from protocol.messages.http import ENDS, LONGEST_POLL

DECISION_SECONDS = 5  # how soon the data owner's word is noticed, and the end of a run


class Worker:
    """`trouble` says what stands in the way just now, if anything does."""

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
        """`heard` is told by how many milliseconds the curator's signed time differs from this machine's."""
        self._opened, self._ledger = opened, opened.ledger
        self._curator, self._answering = curator, answering
        self._sleep, self._log, self._heard = sleep, log, heard
        self._stream, self._backoff = stream or Stream.system(), backoff or Backoff()
        self._failures = 0
        self._said: tuple[str, ...] = ()
        self.trouble: str | None = "not started yet"

    async def run(self) -> None:
        """Until cancelled. RolledBack is raised before anything is answered."""
        while not await self._patiently(self.start):
            pass
        while True:
            await self._patiently(self.turn)

    async def start(self) -> None:
        """Compare the ledger with what the curator holds; then deliver what a kill kept back."""
        self._heard(await self._curator.clock_difference())
        receipts = await self._curator.receipts()
        check_not_rolled_back(self._opened, receipts)
        open_runs = await self._settle()
        self._answering.tidy()
        for outgoing in self._answering.undelivered(receipts, open_runs):
            with suppress(Declined):  # a curator that was set back asks for it again in its turn
                await self._deliver(outgoing)

    async def turn(self) -> None:
        """One task, or one long poll without any."""
        for outgoing in await asyncio.to_thread(self._answering.decided):
            await self._deliver(outgoing)
        asked = [request.run for request in self._ledger.requests("asked")]
        self._say_what_waits(asked)
        found = await self._curator.inbox(self._poll_seconds(), asked)
        if found is None:
            self._heard(await self._curator.clock_difference())
            await self._settle()
            return
        run, task = found
        self._log("task", run=run, bytes=len(task))
        answer = await asyncio.to_thread(self._answering.handle, run, task)
        self._say_answered(answer)
        if answer is not None:
            await self._deliver(answer)
        elif run in asked:  # a curator that does not skip what waits for the data owner would be asked without end
            await self._sleep(DECISION_SECONDS)

    def _say_answered(self, answer: Outgoing | None) -> None:
        if answer is not None:  # Privacy: how long it took might tell of the rows, and is not said
            what = {"run": answer.run, "step": answer.step, "bytes": len(answer.reply)}
            self._log("answered", **what, ciphertexts=answer.ciphertexts)

    async def _deliver(self, outgoing: Outgoing) -> None:
        run, step = outgoing.run, outgoing.step
        try:
            await self._curator.deliver(run, step, outgoing.reply, outgoing.receipt)
            self._log("delivered", run=run, step=step, bytes=len(outgoing.reply))
        except Declined as error:
            self._log("the curator does not take an answer", run=run, step=step, reason=str(error))
            await self._settle()
            if run in [request.run for request in self._ledger.requests("active")]:
                raise

    async def _settle(self) -> list[str]:
        """Close what the curator says is over; the runs that go on are returned."""
        known = {request.run for request in self._ledger.requests() if request.state != "ended"}
        found = await self._curator.my_runs()
        for run in found:
            if run.state in ENDS and run.run in known:
                reason = f"{run.culprit}: {run.reason}" if run.culprit and run.reason else run.reason or ""
                self._answering.settle(run.run, run.state, reason)
                self._log("run ended", run=run.run, outcome=run.state, reason=reason)
        return [run.run for run in found if run.state not in ENDS]

    def _poll_seconds(self) -> int:
        """Long, unless something may come that is no task: the data owner's word, or the end of a run."""
        is_open = any(request.state != "ended" for request in self._ledger.requests())
        return DECISION_SECONDS if is_open else LONGEST_POLL

    def _say_what_waits(self, asked: Sequence[str]) -> None:
        if tuple(asked) != self._said:
            self._said = tuple(asked)
            if asked:
                self._log("waiting for the data owner's word", runs=list(asked))

    async def _patiently(self, action: Callable[[], Awaitable[None]]) -> bool:
        """Whether it was done; if something stands in the way, say so and wait a while."""
        try:
            await action()
        except RolledBack:
            raise
        except (SubnError, OSError) as error:
            self.trouble = str(error)
            delay = self._backoff.seconds(self._failures, self._stream)
            self._failures += 1
            self._log("cannot go on", reason=str(error), kind=type(error).__name__, seconds=round(delay, 1))
            await self._sleep(delay)
            return False
        self._failures, self.trouble = 0, None
        return True
