"""What all commands share: their result, and a line to the curator for a few requests.

It does not know any command.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from party.curator_link.client import Curator
from party.errors import SettingsError
from party.home.home import OpenHome
from party.home.keys import OwnKeys
from party.home.settings import pinned_ca

TRIES = 4
Found = TypeVar("Found")

Seams = Mapping[str, Any]  # what tests replace in `client.Curator`: an in-process transport, time, waiting


@dataclass(frozen=True)
class Result:
    """What a command found: as data for --json, as lines for people, and its exit code."""

    data: Any
    lines: Sequence[str] = ()
    code: int = 0


def call(curator: Curator, action: Callable[[Curator], Awaitable[Found]]) -> Found:
    async def once() -> Found:
        async with curator:
            return await action(curator)

    return asyncio.run(once())


def curator_of(opened: OpenHome, seams: Seams, own: OwnKeys | None = None, tries: int = TRIES) -> Curator:
    found, signing = opened.curator, (own or opened.keys).identity.signing
    ca = pinned_ca(opened.home, found)
    return Curator(found.url, found.name, signing, bytes.fromhex(found.key), ca=ca, tries=tries, **seams)


def unknown_dataset(opened: OpenHome, name: str) -> SettingsError:
    known = ", ".join(opened.settings.datasets)
    return SettingsError(f"{opened.home.settings}: there is no data set {name!r}; known are {known}")
