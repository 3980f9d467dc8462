"""Fetch a curator's key and CA over an unauthenticated connection, and accept them only if they match the pin.

It does not know enrolment or settings.
"""

import asyncio
import ssl

import httpx
from pydantic import TypeAdapter

from party.curator_link.answers import received
from party.curator_link.tls import trusting, trusting_nobody
from party.curator_link.way import STRAIGHT, Way
from party.errors import Unreachable, Untrusted
from protocol.messages.http import Introduction
from protocol.messages.pins import pin_of
from protocol.outside_json import read_as
from protocol.services.connection import check_address, distrust, hung_up, no_answer

_LARGEST = 1 << 16  # bytes; a certificate or a few
_SECONDS = 10.0


def introduced(
    url: str, pin: str, transport: httpx.AsyncBaseTransport | None = None, way: Way = STRAIGHT
) -> tuple[bytes, str]:
    """Return the curator's signing key and its CA (in PEM; empty if the machine's own CAs vouch for the curator)."""
    check_address(url)
    answer = asyncio.run(_asked(url, transport, way))
    try:
        found = read_as(TypeAdapter(Introduction), answer, _LARGEST, extra="ignore")
    except ValueError:
        raise Untrusted(f"{url} does not introduce itself as a curator does: check host and port") from None
    key = bytes.fromhex(found.curator_key)
    if pin_of(key, found.ca) != pin:
        raise Untrusted(
            f"{url} is not the curator that your code was made by: the code was copied wrongly or is older than the "
            "curator's keys, or somebody is intercepting the connection; nothing was sent or noted; ask the operator "
            "for a new code, or for the pin that `subn-curator certificate show` prints"
        )
    try:
        trusting(found.ca)
    except ssl.SSLError:
        raise Untrusted(f"the CA of {url} is no certificate in PEM form: ask its operator") from None
    return key, found.ca


async def _asked(url: str, transport: httpx.AsyncBaseTransport | None, way: Way) -> bytes:
    line = httpx.AsyncClient(
        base_url=url,
        transport=transport,
        verify=trusting_nobody(),
        timeout=_SECONDS,
        headers={"Accept-Encoding": "identity"},
        **way.options_over(transport),
    )
    try:
        async with line, line.stream("GET", "/v1/introduction") as answer:
            return (await received(answer, _LARGEST)).body
    except httpx.HTTPError as error:
        hint = hung_up(url) if isinstance(error, httpx.RemoteProtocolError | httpx.ReadError) else ""
        why = distrust(url, error)
        if why is not None:
            raise Untrusted(why) from error
        raise Unreachable(no_answer(url, error) + hint) from error
