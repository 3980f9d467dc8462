"""Connections with limits: of their number, and of the time in which the head of a request and the rest of a body come.

It does not know routes. Time limits of bodies that a route reads are in `curator.http.bodies`.
"""

import asyncio
from collections import Counter
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 15  # from the first byte, or from the beginning of the connection
REST_SECONDS = 5  # for the rest of a body that nobody reads: it is thrown away, so that its sender hears the answer
MOST_CONNECTIONS = 1000
_HEAD, _REST, _NOTHING = "head", "rest", ""
_KNOWN = "party", "operator"  # in the state of a request whose caller was admitted


class Connection(H11Protocol):
    """One connection of a client. At most `MOST_CONNECTIONS` are open: a new one takes another's place."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._owes, self._limit = _NOTHING, None

    _owes: str  # what the client has to send
    _limit: asyncio.TimerHandle | None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.began = self.loop.time()
        if len(self.connections) > MOST_CONNECTIONS:
            self._make_room()
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._owe(_NOTHING)

    @property
    def caller(self) -> tuple[str, str] | None:
        """The admitted caller whose request the connection serves at the moment, if it serves any: kind and name."""
        if self.cycle is None or self.cycle.response_complete:
            return None
        return next(((kind, self.scope["state"][kind]) for kind in _KNOWN if kind in self.scope["state"]), None)

    def _watch(self) -> None:
        """Limit the time for what the client owes now."""
        theirs = self.conn.their_state
        if theirs is h11.IDLE and (self.cycle is None or self.conn.trailing_data[0]):
            self._owe(_HEAD)
        elif theirs is h11.SEND_BODY and self.cycle.response_complete:
            self._owe(_REST)
        else:
            self._owe(_NOTHING)

    def _owe(self, what: str) -> None:
        if what == self._owes:
            return
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None
        self._owes = what
        if what:
            seconds = HEAD_SECONDS if what == _HEAD else REST_SECONDS
            self._limit = self.loop.call_later(seconds, self.transport.abort)

    def _make_room(self) -> None:
        """Cut off the oldest connection that serves no admitted caller.

        If all others serve some, it is the oldest of the caller who holds most, unless nobody holds more than one.
        """
        all_open = [one for one in self.connections if isinstance(one, Connection) and not one.transport.is_closing()]
        if len(all_open) > MOST_CONNECTIONS:
            candidates = [one for one in all_open if one.caller is None]
            (most, held), *_ = Counter(one.caller for one in all_open if one.caller).most_common(1) or [(None, 0)]
            if candidates == [self] and held > 1:
                candidates = [one for one in all_open if one.caller == most]
            min(candidates, key=lambda one: one.began).transport.abort()
