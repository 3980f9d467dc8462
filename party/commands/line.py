"""A connection to the curator, for the few requests of one command.

It does not know any command.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from party.curator_link.client import Curator
from party.curator_link.way import way_to
from party.home.home import OpenHome
from party.home.keys import OwnKeys
from party.home.settings import pinned_ca

TRIES = 4
Found = TypeVar("Found")
Seams = Mapping[str, Any]  # what tests replace in `party.curator_link.client.Curator`: transport, time, waiting


def call(curator: Curator, action: Callable[[Curator], Awaitable[Found]]) -> Found:
    async def once() -> Found:
        async with curator:
            return await action(curator)

    return asyncio.run(once())


def curator_of(opened: OpenHome, seams: Seams, own: OwnKeys | None = None, tries: int = TRIES) -> Curator:
    found, signing = opened.curator, (own or opened.keys).identity.signing
    ca = pinned_ca(opened.home, found)
    way = way_to(found.url, opened.settings.network, opened.home.path)
    return Curator(found.url, found.name, signing, bytes.fromhex(found.key), ca=ca, way=way, tries=tries, **seams)
