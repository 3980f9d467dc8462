"""A proxy before the curator that records what parties send, and loses, cuts, delays or spoils what tests tell it to.

It does not know what for.
"""

import http.client
import socket
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Any
from urllib.parse import unquote, urlsplit

_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length"}


@dataclass
class Exchange:
    """A request and, once it is known, its answer."""

    method: str
    path: str
    party: str
    body: bytes = field(repr=False)
    requested: dict[str, str] = field(repr=False, default_factory=dict)  # headers
    status: int = 0
    headers: list[tuple[str, str]] = field(default_factory=list)
    answer: bytes = field(repr=False, default=b"")

    @property
    def step(self) -> str:
        """Of an answer to a task; empty for all else."""
        return self.path.partition("/outbox/")[2] if self.method == "PUT" else ""

    @property
    def run(self) -> str:
        return self.path.split("/")[3] if self.step else ""

    @property
    def is_task(self) -> bool:
        return self.path.startswith("/v1/inbox") and self.status == 200


class Lost(Exception):
    """The connection ends here, without a word."""


Fault = Callable[[Exchange], None]


class Proxy:
    """`before` sees every request before the curator does, `after` every answer before the party does."""

    def __init__(self) -> None:
        self.target = ""
        self.is_up = Event()  # while the curator starts, requests wait: else most of a test would be parties' patience
        self.before: Fault = lambda exchange: None
        self.after: Fault = lambda exchange: None
        self.cut_at: Callable[[Exchange], int | None] = lambda exchange: None
        self.sent: dict[tuple[str, str, str], set[str]] = defaultdict(set)
        self.exchanges: list[Exchange] = []
        self._lock = Lock()
        self._port = 0
        self.open()
        self.url = f"http://127.0.0.1:{self._port}"

    def open(self) -> None:
        handler = type("Handler", (_Handler,), {"proxy": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), handler)
        self._server.daemon_threads = True
        self._port = self._server.server_address[1]
        Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def clear(self) -> None:
        self.before = self.after = lambda exchange: None
        self.cut_at = lambda exchange: None

    def close(self) -> None:
        """From now on connections are refused; `open` ends that."""
        self._server.shutdown()
        self._server.server_close()

    def note(self, exchange: Exchange) -> None:
        with self._lock:
            self.exchanges.append(exchange)
            if exchange.step:
                key = exchange.run, exchange.step, exchange.party
                self.sent[key].add(sha256(exchange.body).hexdigest())

    def forward(self, exchange: Exchange, headers: dict[str, str]) -> None:
        self.is_up.wait(30)
        there = urlsplit(self.target)
        line = http.client.HTTPConnection(there.hostname or "", there.port, timeout=120)
        try:
            line.request(exchange.method, exchange.path, exchange.body, headers)
            found = line.getresponse()
            exchange.answer, exchange.status, exchange.headers = found.read(), found.status, found.getheaders()
        except (OSError, http.client.HTTPException) as error:
            raise Lost from error
        finally:
            line.close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    proxy: Proxy

    def do_GET(self) -> None:
        size = int(self.headers.get("Content-Length", 0))
        exchange = Exchange(self.command, self.path, unquote(self.headers.get("Subn-Party", "")), self.rfile.read(size))
        try:
            if len(exchange.body) < size:  # its sender was killed meanwhile
                raise Lost
            self.proxy.note(exchange)
            self.proxy.before(exchange)
            kept = {name: value for name, value in self.headers.items() if name.lower() not in _HOP}
            exchange.requested = kept
            self.proxy.forward(exchange, kept)
            self.proxy.after(exchange)
            self._answer(exchange)
        except (Lost, OSError):
            self.close_connection = True

    do_PUT = do_POST = do_GET  # noqa: N815 - the library's names

    def _answer(self, exchange: Exchange) -> None:
        self.send_response_only(exchange.status)
        for name, value in exchange.headers:
            if name.lower() not in _HOP:
                self.send_header(name, value)
        if exchange.status != 204:
            self.send_header("Content-Length", str(len(exchange.answer)))
        self.end_headers()
        cut = self.proxy.cut_at(exchange)
        self.wfile.write(exchange.answer[:cut])
        self.wfile.flush()
        if cut is not None:
            self.connection.shutdown(socket.SHUT_RDWR)
            raise Lost

    def log_message(self, format: str, *arguments: Any) -> None:
        pass
