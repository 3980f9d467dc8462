"""Work that ends when the client that asked for it goes away.

It does not know the work.
"""

import asyncio
from collections.abc import Callable
from threading import Event
from typing import TypeVar

from fastapi import Request
from fastapi.concurrency import run_in_threadpool

Found = TypeVar("Found")


async def while_waited_for(request: Request, work: Callable[[Event], Found]) -> Found:
    """Do the work in a thread. Its event is set when the client has gone away, or when this task is cancelled."""
    abandoned = Event()
    watching = asyncio.create_task(_watch(request, abandoned))
    try:
        return await run_in_threadpool(work, abandoned)
    finally:
        abandoned.set()
        watching.cancel()


async def _watch(request: Request, abandoned: Event) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    abandoned.set()
