"""The curator's server process: one worker, TLS, JSON logs, and an orderly shutdown.

It does not know routes.
"""

import asyncio
import errno
import logging
import resource
import socket
from contextlib import suppress
from functools import partial
from typing import Any

import uvicorn

from curator.app import make_app
from curator.errors import SettingsError
from curator.home.certificates import Certificates
from curator.http.connections import Connection
from curator.http.handshakes import Handshakes
from curator.memory import share_arenas
from curator.service import Service
from curator.settings import Settings, listed
from protocol.errors import SubnError

_BACKLOG = 2048
_GRACE = 10  # seconds for answers under way at shutdown
_GOODBYE = 0.5
_MOST_FILES = 1 << 16
_LOOK_TICKS = 10  # ticks of 0.1 s between two checks of the certificate's file
_RENEW_TICKS = 36_000  # ticks of 0.1 s between two checks of the certificate's remaining time
_log = logging.getLogger("curator")


class CuratorServer(uvicorn.Server):
    """A server that releases waiting requests at shutdown before it waits for them to finish."""

    def __init__(self, config: uvicorn.Config, service: Service, line: "SecureLine | None" = None) -> None:
        """Make a server that uses the TLS of `line`, or none."""
        super().__init__(config)
        self._service, self._line, self._handshakes = service, line, Handshakes()

    async def on_tick(self, counter: int) -> bool:
        if self._line is not None and counter % _LOOK_TICKS == 0:
            self._line.keep_fresh(may_renew=counter % _RENEW_TICKS == 0)
        return await super().on_tick(counter) or self._service.relay.displaced is not None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if self._line is not None:
            # uvicorn counts connections when TLS is agreed on: strangers could begin it on any number of them.
            loop: Any = asyncio.get_running_loop()
            loop.create_server = partial(self._handshakes.serve, loop.create_server)
        await super().startup(sockets)
        for listener in sockets or ():
            host, port = listener.getsockname()[:2]
            shown = f"[{host}]" if ":" in host else host
            _log.info(
                "listening", extra={"fields": {"url": f"{'http' if self._line is None else 'https'}://{shown}:{port}"}}
            )

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        _log.info("stopping")
        self._service.relay.close()
        self._handshakes.close()
        farewell = asyncio.create_task(self._hang_up())
        await super().shutdown(sockets)
        farewell.cancel()
        _log.info("stopped")

    async def _hang_up(self) -> None:
        """Abort idle connections whose clients do not complete the TLS close."""
        while True:
            await asyncio.sleep(_GOODBYE)
            for connection in tuple(self.server_state.connections):
                line = connection.transport
                if line is not None and line.is_closing() and not line.get_write_buffer_size():
                    line.abort()


def server_of(service: Service, line: "SecureLine | None" = None) -> CuratorServer:
    config = uvicorn.Config(
        make_app(service),
        http=Connection,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        # Only headers of the known proxy are trusted (`curator.http.middleware.OnlyFromProxy`).
        proxy_headers=False,
        timeout_graceful_shutdown=_GRACE,
        timeout_keep_alive=75,
        ssl_context_factory=None if line is None else lambda *_: line.context,
    )
    return CuratorServer(config, service, line)


def _allow_many_files() -> None:
    """Open as many files at once as the system allows: a burst of connections takes more than are kept."""
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_FILES if most == resource.RLIM_INFINITY else min(most, _MOST_FILES)
    with suppress(OSError, ValueError):  # not allowed to: the limit stays as it is
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(now, wanted), most))


def listening(host: str, port: int) -> socket.socket:
    """Return a listening socket. Errors distinguish an address in use from all other causes."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol must be named, or asyncio does not disable Nagle's algorithm: 40 ms more for every request.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise SettingsError(
                f"{host}:{port} is in use by another program: stop it, or choose another --port"
            ) from None
        raise SettingsError(f"cannot listen at {host}:{port}: {error.strerror}") from None
    return listener


class SecureLine:
    """The server's TLS with the certificate in the home. New connections use a new certificate.

    Retry safety: a renewed certificate that cannot be used is logged once, and the old one stays in use.
    """

    def __init__(self, certificates: Certificates) -> None:
        self._certificates = certificates
        self.context = certificates.context()
        self._seen = self._version()

    def keep_fresh(self, may_renew: bool) -> None:
        found = self._seen
        try:
            if may_renew and self._certificates.renew_if_due():
                _log.info("renewed the certificate, which was near its end")
            found = self._version()
            if found != self._seen:
                self._certificates.context()  # try first: a failure half-way must not change the context in use
                self.context.load_cert_chain(self._certificates.server_file)
                _log.info("took up a renewed certificate")
        except (SubnError, OSError) as error:  # TLS errors are OSErrors
            _log.error("cannot take up a renewed certificate", exc_info=error)
        self._seen = found

    def _version(self) -> tuple[int, int]:
        found = self._certificates.server_file.stat()
        return found.st_mtime_ns, found.st_ino


def secure_line(settings: Settings) -> SecureLine:
    """TLS with a certificate that is good for all names in the settings, if it was made here."""
    certificates = Certificates(settings.home)
    try:
        if added := certificates.add_names(listed(settings.names)):
            _log.info("renewed the certificate", extra={"fields": {"added": added}})
    except SettingsError as error:  # under the names that it has, it serves on
        _log.warning("cannot add names to the certificate", exc_info=error)
    return SecureLine(certificates)


def serve(settings: Settings, listener: socket.socket) -> None:
    share_arenas()
    line = secure_line(settings) if settings.speaks_tls else None
    service = Service.open(settings)
    _allow_many_files()
    server_of(service, line).run([listener])
    if service.relay.displaced is not None:
        raise service.relay.displaced
