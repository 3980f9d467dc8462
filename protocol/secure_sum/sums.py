"""The two halves of a secure sum: `contribute` at every party, `open` at the curator, who learns only the total.

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
    """The curator's half; `BrokenSum` if the contributions do not add up."""

    def contribution_bytes(self, layout: Layout) -> int: ...

    def check(self, layout: Layout, blob: bytes) -> None:
        """Look at one contribution when it comes, while it is known whose it is; `MalformedCiphertext`."""

    def open(self, layout: Layout, blobs: Sequence[bytes]) -> Vector: ...
