"""A line to the curator, for the few requests of one command.

It does not know any command.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from party.curator_link.client import Curator
from party.home.home import House
from party.home.keys import OwnKeys
from party.home.settings import pinned_ca

TRIES = 4
Found = TypeVar("Found")

line_options: dict[str, Any] = {}  # tests put an in-process transport here


def call(curator: Curator, action: Callable[[Curator], Awaitable[Found]]) -> Found:
    async def once() -> Found:
        async with curator:
            return await action(curator)

    return asyncio.run(once())


def curator_of(house: House, own: OwnKeys | None = None, tries: int = TRIES) -> Curator:
    found, signing = house.curator, (own or house.keys).identity.signing
    ca = pinned_ca(house.home, found)
    return Curator(found.url, found.name, signing, bytes.fromhex(found.key), ca=ca, tries=tries, **line_options)
