"""The curator's server process: one worker, JSON logs, and an end that keeps what was promised.

It does not know routes.
"""

import errno
import logging
import socket

import uvicorn

from curator.api import make_app
from curator.errors import SettingsError
from curator.service import Service
from curator.settings import Settings

_BACKLOG = 2048
_GRACE = 10  # seconds for answers that are under way
_log = logging.getLogger("curator")


class CuratorServer(uvicorn.Server):
    """Wakes everybody who waits for news before it waits for them to leave."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or ():
            host, port = listener.getsockname()[:2]
            shown = f"[{host}]" if ":" in host else host
            _log.info("listening", extra={"fields": {"url": f"http://{shown}:{port}"}})

    async def on_tick(self, counter: int) -> bool:
        return await super().on_tick(counter) or self._service.relay.displaced is not None

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        _log.info("stopping")
        self._service.relay.close()
        await super().shutdown(sockets)
        _log.info("stopped")


def listening(host: str, port: int) -> socket.socket:
    """A socket at this place; who holds it already is told apart from all else that may be wrong."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP, or asyncio leaves small packets waiting for each other, 40 ms for every request.
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


def serve(settings: Settings, listener: socket.socket) -> None:
    service = Service.open(settings)
    config = uvicorn.Config(
        make_app(service),
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE,
        timeout_keep_alive=75,
    )
    CuratorServer(config, service).run([listener])
    if service.relay.displaced is not None:
        raise service.relay.displaced
