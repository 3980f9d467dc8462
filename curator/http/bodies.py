"""Bodies of requests: read after their sender is known, and within limits of size and time.

It does not know routes or who may send what. Its errors are HTTP's own, since FastAPI lets no other out of a body.
"""

import asyncio
import json
from hashlib import sha256
from typing import IO, Any

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive

from protocol.messages.signatures import DIGEST_HEADER
from protocol.outside_json import MOST_KEYS, read_json

TINY, SMALL, LARGE = 1 << 12, 1 << 16, 2 << 20  # bytes: of a key, of a form or request, of a schema
SILENCE_SECONDS = 20  # after which a sender that sends nothing is given up
PATIENCE_SECONDS = 30  # for any body
_SLOWEST_BYTES = 1 << 14  # a second, beyond this patience
PIECE = 1 << 20  # bytes that are written at once


class BodyTooLarge(HTTPException):
    def __init__(self, largest: int) -> None:
        super().__init__(413, f"the body is larger than {largest:,} bytes: send at most that many")


class BodyTooSlow(HTTPException):
    def __init__(self) -> None:
        super().__init__(408, "the body did not arrive in time: send it again")


class BodyCutShort(HTTPException):
    def __init__(self) -> None:
        super().__init__(400, "the connection ended before the body: send it again")


class BodyNotSigned(HTTPException):
    def __init__(self) -> None:
        super().__init__(
            401, "the body is not the one whose digest is signed: something changed it on the way; send it again"
        )


class Received(Request):
    """A request whose body is read within limits, checked against its signed digest, and parsed in linear time."""

    most_keys = MOST_KEYS

    async def json(self) -> Any:
        try:
            return await run_in_threadpool(read_json, await self.body(), LARGE, most_keys=self.most_keys)
        except ValueError as error:  # FastAPI tells of this class what is wrong
            raise json.JSONDecodeError(str(error), "", 0) from None


def received(request: Request, largest: int, most_keys: int = MOST_KEYS) -> Received:
    """Return the request with a body of at most so many bytes and keys. Refuse a body at once that announces more."""
    announced = announced_bytes(request.headers)
    if announced is not None and announced > largest:
        raise BodyTooLarge(largest)
    digest = request.headers.get(DIGEST_HEADER)
    found = Received(request.scope, _limited(request.receive, largest, digest))
    found.most_keys = most_keys
    return found


def announced_bytes(headers: Headers) -> int | None:
    """Return the length that the sender announces, if it does."""
    said = headers.get("content-length", "")
    return int(said[:20]) if said.isdecimal() and said.isascii() else None


async def write_body(request: Request, file: IO[bytes]) -> None:
    """Write the body to the file, piece by piece."""
    piece = bytearray()
    async for chunk in request.stream():
        piece += chunk
        if len(piece) >= PIECE:
            await run_in_threadpool(file.write, bytes(piece))
            piece.clear()
    await run_in_threadpool(file.write, bytes(piece))


def _limited(receive: Receive, largest: int, digest: str | None) -> Receive:
    """Limit size and time while the body is read, and refuse a body that is not the signed one at its end."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + PATIENCE_SECONDS + largest / _SLOWEST_BYTES
    found, taken, is_whole = sha256(), 0, False

    async def limited() -> Message:
        nonlocal taken, is_whole
        if is_whole:
            return await receive()
        try:
            async with asyncio.timeout_at(min(deadline, loop.time() + SILENCE_SECONDS)):
                message = await receive()
        except TimeoutError:
            raise BodyTooSlow from None
        if message["type"] == "http.disconnect":
            raise BodyCutShort
        body = message.get("body", b"")
        taken += len(body)
        if taken > largest:
            raise BodyTooLarge(largest)
        found.update(body)
        is_whole = not message.get("more_body", False)
        if is_whole and digest not in (None, found.hexdigest()):
            raise BodyNotSigned
        return message

    return limited
