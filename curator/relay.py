"""The mailbox as asyncio sees it: long polls that wake when something happens, and heavy work in threads.

It does not know HTTP, or what is said in a run.
"""

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from curator import wire
from curator.orchestrator import Orchestrator
from curator.run_views import RunViews

P = ParamSpec("P")
T = TypeVar("T")


class Relay:
    """Made inside a running loop; `work` is its clockwork, to be run as a task as long as the service lives."""

    def __init__(self, orchestrator: Orchestrator, views: RunViews, tick_seconds: float) -> None:
        self.orchestrator, self.views = orchestrator, views
        self._tick_seconds = tick_seconds
        self._loop = asyncio.get_running_loop()
        self._something = asyncio.Event()
        orchestrator.changed = self._changed

    async def inbox(self, party: str, wait: float, skip: tuple[str, ...] = ()) -> tuple[str, bytes] | None:
        """The oldest task of this party and its run; waits for one that long."""
        return await self._within(wait, lambda: self.orchestrator.inbox(party, skip))

    async def events(self, run: str, after: int, wait: float) -> list[wire.Event]:
        """What happened to a run since; waits that long for something."""
        deadline = self._loop.time() + wait
        while True:
            something = self._something
            found = await asyncio.to_thread(self.views.events, run, after)
            if found or not await self._woken(something, deadline):
                return found

    async def in_thread(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What reads or writes the store or computes for long, while other requests go on."""
        return await asyncio.to_thread(function, *args, **kwargs)

    async def work(self) -> None:
        """Look at every run now and then, and at once when something has happened to one."""
        while True:
            something = self._something
            await asyncio.to_thread(self.orchestrator.tick)
            await self._woken(something, self._loop.time() + self._tick_seconds)

    async def _within(self, wait: float, ask: Callable[[], T | None]) -> T | None:
        deadline = self._loop.time() + wait
        while True:
            something = self._something
            found = ask()
            if found is not None or not await self._woken(something, deadline):
                return found

    async def _woken(self, something: asyncio.Event, deadline: float) -> bool:
        """Whether something has happened before the deadline."""
        try:
            await asyncio.wait_for(something.wait(), deadline - self._loop.time())
        except TimeoutError:
            return False
        return True

    def _changed(self, _run: str) -> None:
        self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        # Everybody who waits holds the old event; who begins to wait now waits for the next.
        self._something.set()
        self._something = asyncio.Event()
