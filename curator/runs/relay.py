"""Asyncio layer over the orchestrator: long polls and event streams that wake on changes, and the regular ticks.

It does not know HTTP, or the contents of messages.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from types import TracebackType

from curator import interface
from curator.errors import Displaced
from curator.runs.orchestrator import Orchestrator

SILENCE_SECONDS = 15  # quiet seconds before an event stream sends a sign of life


class Relay:
    """Inside `async with`, runs are looked after: regularly, and at once when something has happened."""

    def __init__(self, orchestrator: Orchestrator) -> None:
        self._orchestrator = orchestrator
        self._tick_seconds = orchestrator.settings.tick_seconds
        self._something = asyncio.Event()  # anything has happened to any run
        self._moved = asyncio.Event()  # a run has come to another step, or to its end: only then are there new tasks
        self._places: dict[str, tuple[int, bool]] = {}  # of the active runs, when they changed last
        self._changes: Counter[str] = Counter()
        self._closed = False
        self.displaced: Displaced | None = None  # set when another process serves the database and this one must end
        self._at_work: dict[str, asyncio.Task[None]] = {}

    async def __aenter__(self) -> "Relay":
        self._loop = asyncio.get_running_loop()
        self._orchestrator.changed = self._changed
        self._advance_complete_runs()
        self._clockwork = asyncio.create_task(self._tend())
        return self

    async def __aexit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()
        # Threads that are at work may finish first: the store is closed after this.
        await self._clockwork
        await asyncio.gather(*self._at_work.values(), return_exceptions=True)
        self._orchestrator.changed = lambda _run: None

    def close(self) -> None:
        """Release every waiting request."""
        self._closed = True
        self._wake()

    async def inbox(self, party: str, wait: float, skip: tuple[str, ...] = ()) -> tuple[str, bytes] | None:
        """Return the oldest task of this party with its run. Wait at most `wait` seconds for a task.

        The end of a run of this party ends the wait too, so that the party asks how its runs stand.
        """
        deadline = asyncio.get_running_loop().time() + wait
        active = self._orchestrator.active_runs(party)
        while True:
            moved = self._moved
            found = self._orchestrator.inbox(party, skip)
            has_ended = not active <= self._orchestrator.active_runs(party)
            if found is not None or has_ended or not await self._woken(moved, deadline):
                return found

    async def events(self, run: str, after: int) -> AsyncIterator[interface.Event | None]:
        """Yield the events of a run after `after`, until the run ends, and None after each quiet period."""
        async for found in self.news(run, after):
            for event in found or (None,):
                yield event

    async def news(self, run: str, after: int) -> AsyncIterator[list[interface.Event]]:
        """Like `events`, but in batches: everything since the last batch, or an empty list after a quiet period."""
        loop = asyncio.get_running_loop()
        while not self._closed:
            something, changes = self._something, self._changes[run]
            is_active, found = await asyncio.to_thread(self._news, run, after)
            if found:
                yield found
                after = found[-1].seq
            if not is_active:
                return
            if not found and not await self._touched(run, changes, something, loop.time() + SILENCE_SECONDS):
                yield []

    async def _touched(self, run: str, changes: int, something: asyncio.Event, deadline: float) -> bool:
        """Wait until something happens to this run, or the deadline. Return whether something has happened."""
        while await self._woken(something, deadline):
            if self._changes[run] != changes:
                return True
            something = self._something
        return False

    def _news(self, run: str, after: int) -> tuple[bool, list[interface.Event]]:
        # The order matters: if the run had ended before the first read, the second read finds all its events.
        is_active = self._orchestrator.views.record(run).is_active
        return is_active, self._orchestrator.views.events(run, after)

    async def _tend(self) -> None:
        """Look at every run at each tick, and at once when a run has moved on."""
        while not self._closed:
            moved = self._moved
            try:
                await asyncio.to_thread(self._orchestrator.tick)
            except Displaced as error:
                self.displaced = error
                self.close()
            self._advance_complete_runs()
            await self._woken(moved, self._loop.time() + self._tick_seconds)

    async def _woken(self, something: asyncio.Event, deadline: float) -> bool:
        """Wait for a change until the deadline. Return whether one came and the relay is still open."""
        if self._closed:  # nothing wakes a request that begins to wait after closing
            return False
        try:
            async with asyncio.timeout_at(deadline):
                await something.wait()
        except TimeoutError:
            return False
        return not self._closed

    def _changed(self, run: str) -> None:
        self._loop.call_soon_threadsafe(self._note, run)

    def _note(self, run: str) -> None:
        self._changes[run] += 1
        live = self._orchestrator.live.get(run)
        place = None if live is None else live.place
        if self._places.pop(run, None) != place:
            self._moved = _after(self._moved)
        if place is not None:
            self._places[run] = place
        self._something = _after(self._something)
        self._advance_complete_runs()

    def _advance_complete_runs(self) -> None:
        """Advance each complete run in its own thread, so that neither requests nor other runs wait for it."""
        for run in self._orchestrator.complete_runs():
            if run not in self._at_work and not self._closed:
                self._at_work[run] = asyncio.create_task(self._advance(run))

    async def _advance(self, run: str) -> None:
        try:
            await asyncio.to_thread(self._orchestrator.advance, run)
        finally:
            del self._at_work[run]

    def _wake(self) -> None:
        self._something, self._moved = _after(self._something), _after(self._moved)


def _after(event: asyncio.Event) -> asyncio.Event:
    """Set an event, which releases all that wait for it, and return a new event for requests that wait from now on."""
    event.set()
    return asyncio.Event()
