"""The serving process: the worker and the local interface in one event loop, from a clean start to a clean stop.

It does not know tasks or the curator's interface.
"""

import asyncio
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from importlib.metadata import version
from typing import Any

import uvicorn

from party.answering.answering import Answering
from party.app import add_metrics, make_app
from party.connections import MOST_CONNECTIONS, QUIET_SECONDS, Connection
from party.curator_link.client import Curator
from party.curator_link.way import way_to
from party.errors import SettingsError
from party.files import write_file
from party.home.backup import remove_draft
from party.home.home import OpenHome, open_home
from party.home.layout import Home
from party.home.lock import served_alone
from party.home.modes import close_to_others
from party.home.settings import pinned_ca
from party.home.tokens import METRICS_TOKEN_FILE, token_of
from party.logs import Log, places
from party.operations.health import Health
from party.operations.metrics import Metrics
from party.worker import Worker
from protocol.errors import SubnError

_TICKS_OF_SECOND = 10  # as uvicorn counts them: it renews the date of its answers by them


def serve(home: Home, log: Log, **seams: Any) -> None:
    """Serve until SIGTERM or SIGINT; raise the error that makes serving impossible.

    `seams` are passed to `client.Curator`.
    """
    with served_alone(home.lock), open_home(home) as opened:
        remove_draft(home)
        if closed := close_to_others(home):
            log("closed to others", files=[path.name for path in closed])
        _check_accounts(opened, log)
        with _listening(opened) as listener:
            asyncio.run(_serve(opened, listener, log, seams))


def _check_accounts(opened: OpenHome, log: Log) -> None:
    """Refuse to serve while it is not clear which budget pays for which rows; log which data sets share a budget."""
    unclear = opened.unclear_accounts()
    if unclear:
        raise SettingsError(f"{opened.home.settings}: {'; '.join(unclear)}")
    for account in opened.accounts:
        if len(account.datasets) > 1:
            log("one budget", account=account.name, datasets=list(account.datasets))


async def _serve(opened: OpenHome, listener: socket.socket, log: Log, seams: dict[str, Any]) -> None:
    signing, curator = opened.keys.identity.signing, opened.curator
    # One attempt per request: the worker waits between attempts, and logs that it waits.
    key, ca = bytes.fromhex(curator.key), pinned_ca(opened.home, curator)
    way = way_to(curator.url, opened.settings.network, opened.home.path)
    async with Curator(curator.url, curator.name, signing, key, ca=ca, way=way, tries=1, **seams) as line:
        health = Health(opened, lambda: worker.trouble)
        metrics = Metrics(health)
        worker = Worker(opened, line, Answering(opened), log=metrics.watching(log), heard=health.heard)
        server = _server(opened, health, metrics, line)
        work = asyncio.create_task(worker.run())
        local = asyncio.create_task(server.serve(sockets=[listener]))
        _stop_on_signals(server)
        host, port = listener.getsockname()[:2]
        url = opened.settings.local.asked_at(port)
        write_file(opened.home.address, f"{url}\n")
        opened.audit.append("started", version=version("dp-subn"))
        log("listening", host=host, url=url, party=curator.name, curator=curator.url)
        await asyncio.wait({work, local}, return_when=asyncio.FIRST_COMPLETED)
        reason = _why_stopped(work)
        server.stop()
        work.cancel()
        await local
        opened.home.address.unlink(missing_ok=True)
        opened.audit.append("stopped", reason=reason)
        log("stopped", reason=reason)
        with suppress(asyncio.CancelledError):
            try:
                await work
            except SubnError:
                raise
            except Exception as error:  # Privacy: the text of an unforeseen error might quote a value.
                log("mistake", kind=type(error).__name__, at=places(error))
                raise SubnError(reason) from None


def _why_stopped(work: "asyncio.Task[None]") -> str:
    if not work.done():
        return "asked to stop"
    error = work.exception()
    # Privacy: the text of an unforeseen error might quote a value.
    return str(error) if isinstance(error, SubnError) else f"a mistake in this program: {type(error).__name__}"


@contextmanager
def _listening(opened: OpenHome) -> Iterator[socket.socket]:
    host, port = opened.settings.local.host, opened.settings.local.port
    try:
        listener = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise SettingsError(
            f"the service cannot listen at {host}:{port} ({why}): stop the program that uses this port, or set another "
            f"port under [local] in {opened.home.settings}"
        ) from None
    with listener:
        yield listener


class _Server(uvicorn.Server):
    """A server that leaves signals to this module: an answer under way must reach the ledger before the end."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        self.should_exit = True
        self._stopping.set()

    async def main_loop(self) -> None:
        """Look once a second, and when told to stop. uvicorn looks ten times a second, also where nothing happens."""
        ticks = 0
        while not await self.on_tick(ticks):
            ticks += _TICKS_OF_SECOND
            with suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await self._stopping.wait()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if self.config.ssl_context_factory is not None:
            # uvicorn leaves a minute for TLS to be agreed on, and does not count such connections yet.
            loop: Any = asyncio.get_running_loop()
            loop.create_server = partial(loop.create_server, ssl_handshake_timeout=QUIET_SECONDS)
        await super().startup(sockets)


def _server(opened: OpenHome, health: Health, metrics: Metrics, line: Curator) -> _Server:
    token, secure = token_of(opened.home.path), opened.settings.local.server_context(opened.home.path)
    app = make_app(opened, token, health, line)
    add_metrics(app, metrics, (token, token_of(opened.home.path, METRICS_TOKEN_FILE)))
    # At once, asyncio accepts as many connections as the backlog holds, before their limit is looked at.
    config = uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        backlog=MOST_CONNECTIONS,
        log_config=None,
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=5,
        ssl_context_factory=None if secure is None else lambda *_: secure,
    )
    return _Server(config)


def _stop_on_signals(server: _Server) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, server.stop)
