"""All parts of a running curator, put together.

It does not know HTTP.
"""

from dataclasses import dataclass

from crypto.randomness import Stream
from curator.authentication import Authentication
from curator.certificates import Certificates
from curator.directory import Directory
from curator.errors import CuratorError
from curator.keys import CuratorKeys
from curator.orchestrator import Orchestrator
from curator.relay import Relay
from curator.run_views import RunViews
from curator.sessions import Sessions
from curator.settings import Clock, Settings, system_clock
from curator.store import Store

_TOKEN_BYTES = 16


@dataclass(frozen=True)
class Service:
    settings: Settings
    store: Store
    keys: CuratorKeys
    orchestrator: Orchestrator
    relay: Relay
    authentication: Authentication
    sessions: Sessions

    @classmethod
    def of(
        cls,
        settings: Settings,
        store: Store,
        keys: CuratorKeys,
        orchestrator: Orchestrator,
        clock: Clock = system_clock,
    ) -> "Service":
        authentication = Authentication(store, clock, orchestrator.store_failed)
        return cls(settings, store, keys, orchestrator, Relay(orchestrator), authentication, Sessions(store, clock))

    @classmethod
    def open(cls, settings: Settings) -> "Service":
        """What `settings` name, with all runs as they were when the last process ended."""
        keys = CuratorKeys.load(settings.home, settings.master_key)
        store = Store.open(settings.store_url)
        try:
            store.serve_alone(Stream.system().take(_TOKEN_BYTES).hex())
            orchestrator = Orchestrator(store, keys, settings)
            orchestrator.recover()
        except CuratorError:
            store.close()
            raise
        return cls.of(settings, store, keys, orchestrator)

    @property
    def introduction(self) -> tuple[bytes, str]:
        """What a party pins when it enrols: the key that signs every answer, and the CA."""
        return self.keys.signing.public, Certificates(self.settings.home).ca

    @property
    def directory(self) -> Directory:
        return self.orchestrator.directory

    @property
    def views(self) -> RunViews:
        return self.orchestrator.views
