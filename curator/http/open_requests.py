"""Open requests of each party: counted from the moment their sender is known until the answer is sent, and bounded.

It does not know how a party is recognised (`curator.http.dependencies`) or what it asks for.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from curator.errors import TooManyOpen

MOST_OPEN = 8  # requests of one party: its service polls with one, its commands and a copy of its home come beside
MOST_BODIES = 2  # of them, requests with a body
MOST_PROVING = 4  # requests of all senders together whose signatures are checked at once
PAUSE_SECONDS = 5  # before a refusal is sent, so that repeating refused requests takes no more than connections
_COUNTED = "counted"  # in the state of a request: the party that it counts for, and whether it has a body


class OpenRequests:
    """Numbers of the parties' open requests. A party with too many is refused, and disturbs nobody but itself."""

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()
        self._bodies: Counter[str] = Counter()
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._listings: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        # Requests that claim a sender share these few threads, and wait without one: their signatures come first.
        self.proving = asyncio.Semaphore(MOST_PROVING)

    @asynccontextmanager
    async def admission(self, party: str) -> AsyncIterator[None]:
        """Admit one request of a party at a time. Its signature has been checked: no stranger stands in this line.

        A refusal by `enter` leaves only after a pause.
        """
        turn = self._turns.setdefault(party, asyncio.Lock())
        try:
            async with turn:
                yield
        except TooManyOpen:
            await asyncio.sleep(PAUSE_SECONDS)
            raise

    def listing(self, party: str) -> asyncio.Lock:
        """Return the lock under which a party's lists are read, one at a time: those that wait hold no thread."""
        return self._listings.setdefault(party, asyncio.Lock())

    def enter(self, scope: Scope, party: str) -> None:
        """Count a request, whose body is not read yet, or refuse it."""
        has_body = _has_body(Headers(scope=scope))
        if has_body and self._bodies[party] >= MOST_BODIES:
            raise TooManyOpen(f"{party} sends {MOST_BODIES} bodies already: send this one when they are answered")
        if self._open[party] >= MOST_OPEN:
            raise TooManyOpen(f"{party} has {MOST_OPEN} requests open already: ask again when one is answered")
        scope["state"][_COUNTED] = party, has_body
        self._open[party] += 1
        self._bodies[party] += has_body

    def leave(self, scope: Scope) -> None:
        """Forget a request whose answer has been sent."""
        party, has_body = scope.get("state", {}).pop(_COUNTED, ("", False))
        self._open -= Counter([party])  # keeps no party with nothing open
        self._bodies -= Counter([party] * has_body)


class Leaving:
    """Middleware that forgets every request at the end of its answer, or of its connection."""

    def __init__(self, app: ASGIApp, requests: OpenRequests) -> None:
        self._app, self._requests = app, requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._app(scope, receive, send)
        finally:
            self._requests.leave(scope)


def _has_body(headers: Headers) -> bool:
    return headers.get("content-length", "").strip("0") != "" or "transfer-encoding" in headers
