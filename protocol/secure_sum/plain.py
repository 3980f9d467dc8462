"""Secure sums without encryption: masks modulo 2^64 that cancel in the total.

It does not know what the cells count, or how much noise a mode asks for.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from crypto.masking import hide, mask_words, reveal
from crypto.randomness import Stream
from protocol.plan.plan import Plan
from protocol.privacy.layout import WORD_BYTES, Layout, Vector, words_from_bytes, words_to_bytes
from protocol.secure_sum.sums import Contributed, tags_of


@dataclass(frozen=True)
class PlainSums:
    """The party's half in noise modes `distributed` and `local`: masks modulo 2^64, no Paillier."""

    plan: Plan
    me: int
    pair_keys: Callable[[bytes], Mapping[int, bytes]]  # by peer, for a context

    def contribute(self, layout: Layout, values: Vector, context: bytes, stream: Stream) -> Contributed:
        noisy, keys = values + self.plan.noise_mode.own_noise(layout, stream), self.pair_keys(context)
        return Contributed(words_to_bytes(hide(noisy, mask_words(keys, self.me, layout.size))), tags_of(keys))


@dataclass(frozen=True)
class PlainOpening:
    """The curator's half in noise modes `distributed` and `local`."""

    plan: Plan

    def contribution_bytes(self, layout: Layout) -> int:
        return WORD_BYTES * layout.size

    def check(self, layout: Layout, blob: bytes) -> None:
        """Accept any blob: every list of words may be a masked contribution."""

    def add(self, total: bytes, blob: bytes) -> bytes:
        return words_to_bytes(words_from_bytes(total) + words_from_bytes(blob))

    def open(self, layout: Layout, blobs: Sequence[bytes]) -> Vector:
        return reveal([words_from_bytes(blob) for blob in blobs], self.plan.noise_mode.total_bound(layout))
