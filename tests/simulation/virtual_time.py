"""An event loop in which time is virtual: nothing ever waits, and work for threads is done in the loop itself.

It does not know what runs in it.

A wait ends at once, and the clock moves on by its length. Threads would make each run of a schedule another one, so
their work is a callback of this loop. It comes after a short virtual time, in which others may go on as they would
beside a thread.
"""

import asyncio
import contextvars
import selectors
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

PIECE_OF_WORK = 0.001  # seconds


class Stuck(Exception):
    """Nothing will ever happen any more."""


class _NoWaiting(selectors.SelectSelector):
    """A selector that finds nothing and moves the clock on instead of waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise Stuck
        self.now += timeout
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._instant = _NoWaiting()
        super().__init__(self._instant)
        self.work_seconds: Callable[[], float] = lambda: PIECE_OF_WORK
        self.is_dead: Callable[[], bool] = lambda: False  # whether the process that asked for the work was killed
        self.mistakes: list[str] = []
        self.set_exception_handler(lambda _loop, found: self._note(found))

    def time(self) -> float:
        return self._instant.now

    def run_in_executor(self, _executor: Any, function: Callable[..., Any], *arguments: Any) -> Any:
        future = self.create_future()
        self.call_later(self.work_seconds(), self._do, future, partial(function, *arguments))
        return future

    def call_soon_threadsafe(self, callback: Any, *arguments: Any, context: Any = None) -> Any:
        return self.call_soon(callback, *arguments, context=context)

    def _note(self, found: dict[str, Any]) -> None:
        error = found.get("exception")
        if error is None or isinstance(error, Exception):  # any other is a death
            self.mistakes.append(f"{found['message']}: {error!r}")

    def _do(self, future: "asyncio.Future[Any]", work: Callable[[], Any]) -> None:
        if future.cancelled() or self.is_dead():
            future.cancel()
            return
        try:
            future.set_result(work())
        except BaseException as error:  # also a death, which the waiting task dies of
            future.set_exception(error)


async def _run_sync(function: Callable[..., Any], *arguments: Any, **_choices: Any) -> Any:
    """Stands for `anyio.to_thread.run_sync`, through which Starlette gives work to threads."""
    work = partial(contextvars.copy_context().run, function, *arguments)
    return await asyncio.get_running_loop().run_in_executor(None, work)


@contextmanager
def without_threads() -> Iterator[None]:
    with patch("anyio.to_thread.run_sync", _run_sync):
        yield
