"""Middleware for every HTTP exchange: the way through a proxy, security headers, the curator's signature, one log line.

It does not know routes. It is plain ASGI, so that streamed answers are not buffered.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from ipaddress import IPv4Network, IPv6Network, ip_address
from time import perf_counter

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crypto.signing import SigningKey, sign
from curator.http.dependencies import NEWCOMER
from curator.http.problems import Kind, problem
from curator.http.signed_requests import asked_of
from protocol.messages.signatures import (
    CURATOR_SIGNATURE_HEADER,
    HELD_HEADER,
    RESPONSE,
    RUN_HEADER,
    VERSION_HEADER,
    response_text_of_digest,
)
from protocol.messages.versions import SPOKEN
from protocol.services.sparse import FIRST_TOLD, is_told

_SECURITY = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    VERSION_HEADER: str(SPOKEN),
}
_ERRORS_FROM = 400
_PIECE = 1 << 16  # bytes of an answer that are sent at once
_LONGEST_METHOD, _LONGEST_PATH = 20, 200  # characters in the log
_HOUR = 3600  # seconds
_HEALTH = ("/healthz", "/readyz")
_log = logging.getLogger("curator.http")


class OnlyFromProxy:
    """Accept only requests that arrive over HTTPS through a trusted proxy, plus local health checks."""

    def __init__(self, app: ASGIApp, proxies: Sequence[IPv4Network | IPv6Network]) -> None:
        self._app, self._proxies = app, proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._is_health_check(scope):
            await self._app(scope, receive, send)
        elif self._comes_by_proxy(scope):
            # What the browser sees is https: the cookie, the addresses on pages and the origin of forms follow this.
            scope["scheme"] = "https"
            await self._app(scope, receive, send)
        else:
            kind = Kind(403, "not-through-proxy", "Requests must come through the proxy")
            refusal = problem(
                kind, "this curator accepts requests over https:// through its proxy only: use the proxy's address"
            )
            await refusal(scope, receive, send)

    def _is_health_check(self, scope: Scope) -> bool:
        return scope["path"] in _HEALTH and ip_address(scope["client"][0]).is_loopback

    def _comes_by_proxy(self, scope: Scope) -> bool:
        address = ip_address(scope["client"][0])
        came_by = Headers(scope=scope).get("x-forwarded-proto", "")
        return came_by == "https" and any(address in network for network in self._proxies)


class SecurityHeaders:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _SECURITY.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, secured if scope["type"] == "http" else send)


class SignedAnswers:
    """Sign every answer to a party, for the request that it answers. Answers to operators pass unsigned and unbuffered.

    An answer is held back until its digest is known, unless its route notes `body_digest` in the state of the request.
    It is sent in pieces, each after the one before has left: a party that reads nothing fills no buffer.
    """

    def __init__(self, app: ASGIApp, key: SigningKey) -> None:
        self._app, self._key = app, key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = asked_of(scope) if scope["type"] == "http" else None
        if request is None:
            await self._app(scope, receive, send)
        else:
            await self._app(scope, receive, self._signing(scope, request, send))

    def _signing(self, scope: Scope, request: bytes, send: Send) -> Callable[[Message], Awaitable[None]]:
        start: Message = {}
        chunks: list[bytes] = []

        async def signing(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                state, status = scope.get("state", {}), message["status"]  # the route and its dependencies write it
                if status < _ERRORS_FROM and "body_digest" in state:
                    self._sign(message, request, state["body_digest"])
                elif status >= _ERRORS_FROM or "party" in state:
                    start = message
                    return
            elif start:
                chunks.append(message.get("body", b""))
                if message.get("more_body"):
                    return
                self._sign(start, request, _digest(chunks))
                await send(start)
                for piece in _pieces(chunks):
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
                message = {"type": "http.response.body", "body": b"", "more_body": False}
            await send(message)

        return signing

    def _sign(self, start: Message, request: bytes, body_digest: str) -> None:
        headers = MutableHeaders(scope=start)
        headers[VERSION_HEADER] = str(SPOKEN)
        said = str(SPOKEN), headers.get(RUN_HEADER, ""), headers.get(HELD_HEADER, "")
        text = response_text_of_digest(start["status"], body_digest, request, *said)
        headers[CURATOR_SIGNATURE_HEADER] = sign(self._key, RESPONSE, text).hex()


def _digest(chunks: Iterable[bytes]) -> str:
    found = sha256()
    for chunk in chunks:
        found.update(chunk)
    return found.hexdigest()


def _pieces(chunks: Iterable[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        for at in range(0, len(chunk), _PIECE):
            yield chunk[at : at + _PIECE]


class RequestLog:
    """Log one line per exchange: party, path, status and duration, but never bodies, keys or queries.

    `observe` is called with the method, the path's pattern, the status and the seconds. Requests whose sender is not
    known are logged sparsely: they would fill the disk.
    """

    def __init__(self, app: ASGIApp, observe: Callable[[str, str, int, float], None]) -> None:
        self._app, self._observe, self._strangers = app, observe, Strangers()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = perf_counter(), 0

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noting)
        finally:
            seconds = perf_counter() - started
            self._observe(scope["method"], getattr(scope.get("route"), "path", "none"), status, seconds)
            strangers = 0 if _is_known(scope, status) else self._strangers.count(started)
            if is_told(strangers):
                _log.info("request", extra={"fields": _line(scope, status, seconds) | _of_many(strangers)})


class Strangers:
    """Number of the requests in the present hour whose sender is not known."""

    def __init__(self) -> None:
        self._hour, self._count = 0, 0

    def count(self, seconds: float) -> int:
        """Count a request that began at this time of a monotonic clock. Return its number in its hour."""
        hour = int(seconds // _HOUR)
        self._count = 1 if hour != self._hour else self._count + 1
        self._hour = hour
        return self._count


def _is_known(scope: Scope, status: int) -> bool:
    """Whether a party or an operator sent the request. Anybody can try to enrol, under any name."""
    state = scope.get("state", {})
    return "operator" in state or ("party" in state and not (NEWCOMER in state and status >= _ERRORS_FROM))


def _of_many(strangers: int) -> dict[str, int]:
    return {"unknown_senders": strangers} if strangers > FIRST_TOLD else {}


def _line(scope: Scope, status: int, seconds: float) -> dict[str, object]:
    who, place = scope.get("state", {}).get("party", ""), scope.get("path_params", {})
    method, path = scope["method"][:_LONGEST_METHOD], scope["path"][:_LONGEST_PATH]
    fields = {"method": method, "path": path, "status": status, "party": who}
    named = {name: place[name][:_LONGEST_PATH] for name in ("run", "step") if name in place}
    return fields | named | {"ms": round(1000 * seconds, 1)}
