"""Guard of every page: a check of the host name in the request, and headers that limit what browsers do.

It does not know sessions or pages.

A page of another site can make a browser send any request to this machine. If that site points its own name here ("DNS
rebinding"), the request still bears that name, and is refused. Headers say what a page may load and that no site may
frame it. A form of that site is refused by its origin, which browsers name.
"""

from collections.abc import Collection
from ipaddress import ip_address

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from party.home.page_address import name_in

OPEN_PATHS = ("/healthz", "/metrics")  # under any host name: the first says nothing, the second needs a token
_HEALTH = "/readyz"
_OTHER_NAME = (
    "these pages do not answer under this name: ask for 127.0.0.1 or localhost on the party's own machine, or list the "
    "name in party.toml (`names` under [local]) or SUBN_PARTY_NAMES, and restart `subn-party serve`\n"
)
READING = ("GET", "HEAD")
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class PageGuard:
    def __init__(self, app: ASGIApp, hosts: Collection[str]) -> None:
        """`hosts` are the names under which the pages answer."""
        self._app, self._hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS:
            return await self._app(scope, receive, send)
        headers = Headers(scope=scope)
        refusal = _refusal(scope["method"], headers, self._may_ask(scope["path"], name_in(headers.get("host", ""))))
        if refusal is not None:
            return await refusal(scope, receive, send)

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        return await self._app(scope, receive, send_guarded)

    def _may_ask(self, path: str, name: str) -> bool:
        """Whether this host name may be asked. Health checks from outside a container ask for its address.

        A site that leads browsers here does so by a name, never by an address.
        """
        return name in self._hosts or (path == _HEALTH and _is_address(name))


def _refusal(method: str, headers: Headers, is_known: bool) -> PlainTextResponse | None:
    """The answer to a request that another name or another site led here; None if it may pass."""
    host, origin = headers.get("host", ""), headers.get("origin")
    if not is_known:
        return PlainTextResponse(_OTHER_NAME, 421)
    if method not in READING and origin not in (None, f"http://{host}", f"https://{host}"):
        return PlainTextResponse("this was sent from another site: nothing was done\n", 403)
    return None


def _is_address(name: str) -> bool:
    try:
        ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True
