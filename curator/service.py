"""All parts of a running curator, put together.

It does not know HTTP.
"""

import asyncio
from dataclasses import dataclass, field

from crypto.randomness import Stream
from curator.accounts.authentication import Authentication
from curator.accounts.registry import Registry
from curator.accounts.sessions import Sessions
from curator.clock import Clock, system_clock
from curator.errors import CuratorError
from curator.home.certificates import Certificates
from curator.home.keys import CuratorKeys, metrics_token
from curator.operations.health import Health
from curator.operations.metrics import Metrics
from curator.runs.orchestrator import Orchestrator
from curator.runs.plan_workers import PlanWorkers
from curator.runs.ports import Seams
from curator.runs.relay import Relay
from curator.runs.spool import Spool
from curator.runs.views import RunViews
from curator.settings import Settings
from curator.store.store import Store

_TOKEN_BYTES = 16
_ARRIVING = 4  # answers of the largest size that may arrive at once


@dataclass(frozen=True)
class Service:
    settings: Settings
    store: Store
    keys: CuratorKeys
    orchestrator: Orchestrator
    relay: Relay
    authentication: Authentication
    sessions: Sessions
    health: Health
    metrics: Metrics
    spool: Spool
    metrics_token: str = field(repr=False)
    plan_workers: PlanWorkers | None = None
    # Reading an offer may take seconds: one is read at a time, and those that wait hold no thread.
    offering: asyncio.Lock = field(default_factory=asyncio.Lock)

    @classmethod
    def of(
        cls,
        settings: Settings,
        store: Store,
        keys: CuratorKeys,
        orchestrator: Orchestrator,
        clock: Clock = system_clock,
        plan_workers: PlanWorkers | None = None,
    ) -> "Service":
        health = Health(store, settings.home, clock)
        authentication = Authentication(store, clock, orchestrator.store_failed, health.heard)
        return cls(
            settings=settings,
            store=store,
            keys=keys,
            orchestrator=orchestrator,
            relay=Relay(orchestrator),
            authentication=authentication,
            sessions=Sessions(store, clock),
            health=health,
            metrics=Metrics(orchestrator, health),
            spool=Spool(settings.home / "spool", _ARRIVING * settings.largest_body),
            metrics_token=metrics_token(settings.home),
            plan_workers=plan_workers,
        )

    @classmethod
    def open(cls, settings: Settings) -> "Service":
        """Open the service that `settings` describe, with all runs as they were when the last process ended."""
        keys = CuratorKeys.load(settings.home, settings.master_key)
        store, plan_workers = Store.open(settings.store_url), PlanWorkers()
        try:
            store.serve_alone(Stream.system().take(_TOKEN_BYTES).hex())
            orchestrator = Orchestrator(store, keys, settings, Seams(work_out=plan_workers))
            orchestrator.recover()
        except CuratorError:
            store.close()
            raise
        return cls.of(settings, store, keys, orchestrator, plan_workers=plan_workers)

    def close(self) -> None:
        if self.plan_workers is not None:
            self.plan_workers.close()
        self.store.close()

    @property
    def introduction(self) -> tuple[bytes, str]:
        """The key that signs every answer and the CA, which a party pins when it enrols."""
        return self.keys.signing.public, Certificates(self.settings.home).ca

    @property
    def registry(self) -> Registry:
        return self.orchestrator.registry

    @property
    def views(self) -> RunViews:
        return self.orchestrator.views
