"""Interfaces of a secure sum: every party contributes, and the curator opens the sum and learns only the total.

It does not know what the cells count, or how contributions travel.
"""

from collections.abc import Sequence
from typing import Protocol

from crypto.randomness import Stream
from protocol.privacy.layout import Layout, Vector


class PartySums(Protocol):
    """A party's half of a secure sum."""

    def contribute(self, layout: Layout, values: Vector, context: bytes, stream: Stream) -> bytes: ...


class CuratorSums(Protocol):
    """The curator's half of a secure sum; `open` raises `BrokenSum` if the contributions do not add up."""

    def contribution_bytes(self, layout: Layout) -> int: ...

    def check(self, layout: Layout, blob: bytes) -> None:
        """Check one contribution as it arrives, while its sender is known; `MalformedCiphertext` if it is malformed."""

    def open(self, layout: Layout, blobs: Sequence[bytes]) -> Vector: ...
