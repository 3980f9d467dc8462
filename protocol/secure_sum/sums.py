"""Interfaces of a secure sum: every party contributes, and the curator opens the sum and learns only the total.

It does not know what the cells count, or how contributions travel.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from crypto.masking import pair_tag
from crypto.randomness import Stream
from protocol.privacy.layout import Layout, Vector


@dataclass(frozen=True)
class Contributed:
    """One party's contribution, and a tag for each other party (`blame.md`)."""

    blob: bytes = field(repr=False)
    tags: tuple[bytes, ...] = ()  # in the order of the roster, empty for the party itself


def tags_of(pair_keys: Mapping[int, bytes]) -> tuple[bytes, ...]:
    """The tags of one step, from the keys that this party shares with each other party for it."""
    return tuple(pair_tag(pair_keys[party]) if party in pair_keys else b"" for party in range(len(pair_keys) + 1))


class PartySums(Protocol):
    """A party's half of a secure sum."""

    def contribute(self, layout: Layout, values: Vector, context: bytes, stream: Stream) -> Contributed: ...


class CuratorSums(Protocol):
    """The curator's half of a secure sum; `open` raises `BrokenSum` if the contributions do not add up."""

    def contribution_bytes(self, layout: Layout) -> int: ...

    def check(self, layout: Layout, blob: bytes) -> None:
        """Check one contribution as it arrives, while its sender is known; `MalformedCiphertext` if it is malformed."""

    def add(self, total: bytes, blob: bytes) -> bytes:
        """Add a checked contribution to the sum of those before it; the sum has the form of a contribution."""

    def open(self, layout: Layout, blobs: Sequence[bytes]) -> Vector: ...
