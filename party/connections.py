"""Connections to the local interface with limits: of their number, and of the time between two answers.

It does not know routes. The curator, whom strangers and parties reach, has limits of its own: the shells share no code.
"""

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_CONNECTIONS = 50
QUIET_SECONDS = 10  # for the whole head of a request, and for the rest of a body that nobody reads


class Connection(H11Protocol):
    """One connection of a program on this machine. At most `MOST_CONNECTIONS` are open: a new one closes the oldest.

    Those that wait for an answer are closed last. More would take the file handles that answering a run needs.
    """

    _limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._began = self.loop.time()
        all_open = [one for one in self.connections if isinstance(one, Connection) and not one.transport.is_closing()]
        if len(all_open) > MOST_CONNECTIONS:
            min(all_open, key=lambda one: (one.is_answering, one is self, one._began)).transport.abort()
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop_clock()

    @property
    def is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _watch(self) -> None:
        """Let the time run while no request is being answered; bytes that arrive do not prolong it."""
        if self.is_answering:
            self._stop_clock()
        elif self._limit is None and not self.transport.is_closing():
            self._limit = self.loop.call_later(QUIET_SECONDS, self.transport.abort)

    def _stop_clock(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None
