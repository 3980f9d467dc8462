"""The way to the curator: through a proxy or straight, and who is trusted on it. All requests of a party go this way.

It does not know what is sent.
"""

import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from party.curator_link.tls import trusting
from party.home.network_settings import Network
from protocol.text import printable

_SECONDS = 10.0
_LONGEST_NAME = 100
_LIMITS = httpx.Limits(keepalive_expiry=60)  # a new connection costs a handshake; the curator keeps them for 75
# A machine that was switched off says no goodbye, and a long poll only listens: after 10 quiet seconds the other end is
# asked every 5 whether it is there. Where a system has no such settings, its own (often two hours) hold.
_PROBES = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)] + [
    (socket.IPPROTO_TCP, getattr(socket, name), value)
    for name, value in (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))
    if hasattr(socket, name)
]


@dataclass(frozen=True)
class Way:
    """The way to one address. `proxy` may hold a password; `bundle` are the organisation's authorities, in PEM."""

    proxy: str | None = field(default=None, repr=False)
    bundle: str = ""

    def options_over(self, transport: object | None) -> dict[str, Any]:
        """The options of a client; one with a transport of its own, as in tests, needs no proxy."""
        return self.options if transport is None else {"trust_env": False}

    @property
    def options(self) -> dict[str, Any]:
        """What every HTTP client of a party is made with. Nothing else is taken from the environment."""
        return {"trust_env": False, "proxy": self.through}

    @property
    def through(self) -> httpx.Proxy | None:
        if self.proxy is None:
            return None
        secure = trusting("", self.bundle) if self.proxy.lower().startswith("https:") else None
        return httpx.Proxy(self.proxy, ssl_context=secure)

    def lasting(self, ca: str) -> httpx.AsyncBaseTransport:
        """A transport for connections that are kept open: one whose other end has vanished is noticed soon."""
        return httpx.AsyncHTTPTransport(
            verify=trusting(ca, self.bundle),
            limits=_LIMITS,
            trust_env=False,
            proxy=self.through,
            socket_options=_PROBES,
        )

    @property
    def words(self) -> str:
        """The proxy for people, without its password; empty without one."""
        there = urlsplit(self.proxy or "")
        return f" through the proxy {there.hostname}:{there.port or 80}" if there.hostname else ""


STRAIGHT = Way()


def way_to(url: str, network: Network, folder: Path) -> Way:
    return Way(network.proxy_to(url), network.bundle(folder))


async def inspector(url: str, way: Way) -> str | None:
    """Return the name of the authority that issued the certificate shown here, if this machine trusts it; else None.

    A device of the organisation that inspects TLS shows such a certificate. An attacker from outside cannot. The
    request tells nothing about the party.
    """
    try:
        async with (
            httpx.AsyncClient(verify=trusting("", way.bundle), timeout=_SECONDS, **way.options) as line,
            line.stream("GET", f"{url.rstrip('/')}/healthz") as answer,
        ):
            shown = answer.extensions["network_stream"].get_extra_info("ssl_object")
            return _issuer(shown.getpeercert() or {}) if shown is not None else None
    except httpx.HTTPError:
        return None


def _issuer(certificate: dict[str, Any]) -> str:
    named = {name: text for parts in certificate.get("issuer", ()) for name, text in parts}
    found = named.get("commonName") or named.get("organizationName") or "without a name"
    return printable(found[:_LONGEST_NAME])
