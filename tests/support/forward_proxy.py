"""A small forward proxy, as hospitals have: it passes CONNECT on, wants a name and password, and may read TLS.

It does not know any expected value.
"""

import asyncio
import base64
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Thread

from curator.home.tls import server_context
from curator.home.x509 import Pair, new_server_certificate, utc_now

_PIECE = 1 << 16
_SECONDS = 10.0
_CUT = OSError, asyncio.IncompleteReadError, asyncio.CancelledError  # connections that are cut are meant


@dataclass
class ForwardProxy:
    host: str = "127.0.0.1"
    port: int = 0
    password: str = ""  # NAME:PASSWORD; empty: nobody is asked
    inspecting: ssl.SSLContext | None = None  # shows this certificate in the place of the server's
    asked: list[str] = field(default_factory=list)  # every HOST:PORT that was let through

    @property
    def url(self) -> str:
        return f"http://{f'{self.password}@' if self.password else ''}{self.host}:{self.port}"

    @property
    def url_without_password(self) -> str:
        return f"http://{self.host}:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(*_CUT):
            request, *headers = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").splitlines()
            method, target, _ = request.split(" ", 2)
            if self.password and not self._is_let_in(headers):
                writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            elif method != "CONNECT":
                writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
            else:
                self.asked.append(target)
                await self._pass_on(target, reader, writer)
        writer.close()

    def _is_let_in(self, headers: list[str]) -> bool:
        expected = "Basic " + base64.b64encode(self.password.encode()).decode()
        return any(line.lower().startswith("proxy-authorization:") and line.endswith(expected) for line in headers)

    async def _pass_on(self, target: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, _, port = target.rpartition(":")
        if self.inspecting is None:
            await _join(reader, writer, host.strip("[]"), int(port))
            return
        reads = partial(_reads, host=host.strip("[]"), port=int(port))
        async with await asyncio.start_server(reads, self.host, 0, ssl=self.inspecting) as reading:
            here = reading.sockets[0].getsockname()
            await _join(reader, writer, here[0], here[1])


@contextmanager
def forward_proxy(
    password: str = "", inspecting: ssl.SSLContext | None = None, host: str = "127.0.0.1"
) -> Iterator[ForwardProxy]:
    """One thread and one loop for all connections: two threads may not use one TLS connection at a time."""
    found = ForwardProxy(host, password=password, inspecting=inspecting)
    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(asyncio.start_server(found.serve, host, 0))
    found.port = server.sockets[0].getsockname()[1]
    thread = Thread(target=loop.run_forever)
    thread.start()
    try:
        yield found
    finally:
        asyncio.run_coroutine_threadsafe(_stopped(server), loop).result(_SECONDS)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def showing(ca: Pair, name: str, folder: Path) -> ssl.SSLContext:
    """What an inspecting proxy shows in the place of the server of this name."""
    made = new_server_certificate(ca, [name], utc_now())
    file = folder / "shown.pem"
    file.write_text(made.key_pem + made.certificate_pem)
    return server_context(file)


async def _stopped(server: asyncio.Server) -> None:
    server.close()
    open_ones = asyncio.all_tasks() - {asyncio.current_task()}
    for one in open_ones:
        one.cancel()
    await asyncio.gather(*open_ones, return_exceptions=True)


async def _reads(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int) -> None:
    """What was decrypted goes to the server over a TLS connection of the proxy's own."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with suppress(*_CUT):
        await _join(reader, writer, host, port, context)


async def _join(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    host: str,
    port: int,
    secure: ssl.SSLContext | None = None,
) -> None:
    """Pass bytes both ways until one side ends."""
    answers, there = await asyncio.wait_for(asyncio.open_connection(host, port, ssl=secure), _SECONDS)
    try:
        if secure is None:
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        ways = [asyncio.create_task(_pump(reader, there)), asyncio.create_task(_pump(answers, writer))]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
    finally:
        there.close()
        writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await reader.read(_PIECE):
            writer.write(piece)
            await writer.drain()
