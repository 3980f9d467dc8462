"""Bodies that are sent to the local interface: small, in time, and read only from a sender who may decide.

It does not know how senders show that they may. What anybody else sends counts as empty: the route refuses its sender.
"""

import asyncio
from collections.abc import Callable, Mapping

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from party.pages.guard import READING

LARGEST = 1 << 14  # bytes: of a reason, or of a form
SECONDS = 10

_NOTHING: Message = {"type": "http.request", "body": b"", "more_body": False}


class BodyGuard:
    def __init__(self, app: ASGIApp, may_send: Callable[[Headers], bool], larger: Mapping[str, int]) -> None:
        """`larger` says how many bytes may be sent to paths that take more than others."""
        self._app, self._may_send, self._larger = app, may_send, larger

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] not in READING:
            largest = self._larger.get(scope["path"], LARGEST)
            receive = _limited(receive, largest) if self._may_send(Headers(scope=scope)) else _unread(receive)
        await self._app(scope, receive, send)


def _unread(receive: Receive) -> Receive:
    """Tell of an empty body, and then of nothing but the end of the connection."""
    is_told = False

    async def unread() -> Message:
        nonlocal is_told
        if not is_told:
            is_told = True
            return _NOTHING
        while (message := await receive())["type"] == "http.request":
            pass
        return message

    return unread


def _limited(receive: Receive, largest: int) -> Receive:
    deadline, taken, is_whole = asyncio.get_running_loop().time() + SECONDS, 0, False

    async def limited() -> Message:
        nonlocal taken, is_whole
        if is_whole:
            return await receive()
        try:
            async with asyncio.timeout_at(deadline):
                message = await receive()
        except TimeoutError:
            raise HTTPException(408, "the body did not arrive in time: send it again") from None
        taken += len(message.get("body", b""))
        is_whole = not message.get("more_body", False)
        if taken > largest:
            raise HTTPException(413, f"the body is larger than {largest:,} bytes: send at most that many")
        return message

    return limited
