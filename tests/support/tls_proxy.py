"""A small proxy that terminates TLS in front of a curator, as nginx would: real sockets, a real certificate.

It does not know any expected value. `spoil` may change what passes, as somebody in between would.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from ssl import SSLContext
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

from curator.home.tls import server_context

_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "host"}
Spoil = Callable[[str, bytes], bytes]


def untouched(_path: str, body: bytes) -> bytes:
    return body


@contextmanager
def tls_proxy(
    target: str,
    certificate: Path | None,
    *,
    adding: Mapping[str, str] | None = None,
    trusting: SSLContext | None = None,
    spoil: Spoil = untouched,
) -> Iterator[int]:
    """Its port; `certificate` holds key and chain, None speaks plain HTTP. `adding` are headers for the curator."""
    there = urlsplit(target)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            line: Any = (
                HTTPConnection(there.hostname or "", there.port, timeout=60)
                if there.scheme == "http"
                else HTTPSConnection(there.hostname or "", there.port, timeout=60, context=trusting)
            )
            try:
                headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP}
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                line.request(self.command, self.path, body, headers | dict(adding or {}))
                self._pass_on(line.getresponse())
            except (OSError, HTTPException):
                self.close_connection = True
            finally:
                line.close()

        do_POST = do_PUT = do_GET  # noqa: N815 - the library's names

        def _pass_on(self, found: Any) -> None:
            answer = spoil(self.path, found.read())
            self.send_response_only(found.status)
            for name, value in found.getheaders():
                if name.lower() not in _HOP:
                    self.send_header(name, value)
            if found.status != 204:
                self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # type: ignore[method-assign] - handshakes that are meant to fail
    if certificate is not None:
        context = server_context(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
