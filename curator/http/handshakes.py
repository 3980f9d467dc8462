"""TLS handshakes, bounded in number and time: a connection counts from its first moment, not from the end of its TLS.

It does not know certificates or HTTP. Connections on which TLS is agreed on are bounded in `curator.http.connections`.
"""

import asyncio
from asyncio.sslproto import SSLProtocol
from collections.abc import Awaitable, Callable
from functools import partial
from ssl import SSLContext
from typing import Any

MOST_HANDSHAKES = 500
HANDSHAKE_SECONDS = 10
# asyncio reserves this buffer for every connection at once. A TLS record has no more bytes than this.
SSLProtocol.max_size = 1 << 14

Factory = Callable[[], asyncio.Protocol]


class Handshakes:
    """The handshakes in progress. Of more than `MOST_HANDSHAKES`, the oldest is cut off."""

    def __init__(self) -> None:
        self._open: dict[Handshake, None] = {}

    async def serve(self, create_server: Callable[..., Awaitable[Any]], make: Factory, **options: Any) -> Any:
        """Create a server as `create_server` does. Its protocols are made when TLS has been agreed on."""
        context = options.pop("ssl")
        return await create_server(partial(Handshake, self, make, context), **options)

    def begin(self, handshake: "Handshake") -> None:
        self._open[handshake] = None
        if len(self._open) > MOST_HANDSHAKES:
            next(iter(self._open)).cut_off()

    def end(self, handshake: "Handshake") -> None:
        self._open.pop(handshake, None)

    def close(self) -> None:
        for handshake in tuple(self._open):
            handshake.cut_off()


class Handshake(asyncio.Protocol):
    """One connection until TLS is agreed on. Its successor gets the bytes that have come by then."""

    _transport: asyncio.Transport
    _agreeing: asyncio.Task[None] | None = None

    def __init__(self, all_open: Handshakes, make: Factory, context: SSLContext) -> None:
        self._all_open, self._make, self._context = all_open, make, context
        self._early: list[bytes] = []  # at most what one turn of the event loop reads

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        transport.pause_reading()  # nothing is read before TLS reads it
        self._transport = transport
        self._agreeing = asyncio.get_running_loop().create_task(self._agree())
        self._agreeing.add_done_callback(self._end)
        self._all_open.begin(self)

    def data_received(self, data: bytes) -> None:
        self._early.append(data)

    def cut_off(self) -> None:
        self._all_open.end(self)
        if self._agreeing is not None:
            self._agreeing.cancel()
        self._transport.abort()

    def _end(self, _done: asyncio.Task[None]) -> None:
        self._all_open.end(self)
        self._agreeing = None  # a cancelled task refers to this object: without the circle its memory is free at once

    async def _agree(self) -> None:
        start_tls, seconds = asyncio.get_running_loop().start_tls, HANDSHAKE_SECONDS
        try:
            secured = await start_tls(
                self._transport, self, self._context, server_side=True, ssl_handshake_timeout=seconds
            )
        except OSError:  # no TLS, none in time, or an end before: its sender alone is concerned
            self._transport.abort()
            return
        if secured is not None and not secured.is_closing():
            successor = self._make()
            secured.set_protocol(successor)
            successor.connection_made(secured)
            for data in self._early:
                successor.data_received(data)
