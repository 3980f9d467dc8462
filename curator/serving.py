"""The curator's server process: one worker, JSON logs, and an end that keeps what was promised.

It does not know routes.
"""

import logging
import socket

import uvicorn

from curator.api import make_app
from curator.service import Service
from curator.settings import Settings

_GRACE = 10  # seconds for answers that are under way
_log = logging.getLogger("curator")


class _Server(uvicorn.Server):
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

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        _log.info("stopping")
        self._service.relay.close()
        await super().shutdown(sockets)
        _log.info("stopped")


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
    _Server(config, service).run([listener])
