"""A small forward proxy, as hospitals have: it passes CONNECT on, wants a name and password, and may read TLS.

It does not know any expected value.
"""

import base64
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Thread
from typing import Any

_PIECE = 1 << 16


@dataclass
class ForwardProxy:
    host: str = ""
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


@contextmanager
def forward_proxy(
    password: str = "", inspecting: ssl.SSLContext | None = None, host: str = "127.0.0.1"
) -> Iterator[ForwardProxy]:
    found = ForwardProxy(host, password=password, inspecting=inspecting)

    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                _serve(found, self)

    class Server(ThreadingTCPServer):
        allow_reuse_address, daemon_threads, block_on_close = True, True, False

        def handle_error(self, *_: object) -> None:
            """Connections that are cut are meant."""

    server = Server((host, 0), Handler)
    found.port = int(server.server_address[1])
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _serve(proxy: ForwardProxy, caller: StreamRequestHandler) -> None:
    method, target, _ = caller.rfile.readline(4096).decode("latin-1").split(" ", 2)
    headers = {}
    while line := caller.rfile.readline(4096).decode("latin-1").strip():
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    expected = "Basic " + base64.b64encode(proxy.password.encode()).decode()
    if proxy.password and headers.get("proxy-authorization") != expected:
        caller.wfile.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
        return
    if method != "CONNECT":
        caller.wfile.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
        return
    proxy.asked.append(target)
    host, _, port = target.rpartition(":")
    with ExitStack() as open_ones:
        there: Any = open_ones.enter_context(socket.create_connection((host.strip("[]"), int(port)), 10))
        here: Any = open_ones.enter_context(caller.connection)
        caller.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        if proxy.inspecting is not None:
            here = open_ones.enter_context(proxy.inspecting.wrap_socket(here, True, do_handshake_on_connect=False))
            here.do_handshake()
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            there = open_ones.enter_context(context.wrap_socket(there))
        back = Thread(target=_pump, args=(there, here), daemon=True)
        back.start()
        _pump(here, there)
        back.join(10)


def _pump(one: Any, other: Any) -> None:
    with suppress(OSError):
        while piece := one.recv(_PIECE):
            other.sendall(piece)
    with suppress(OSError):
        other.shutdown(socket.SHUT_RDWR)
