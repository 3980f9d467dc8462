"""The secure sum of a pass: every party contributes a noisy vector, the curator learns only the total.

It does not know what the cells count, and it cannot decrypt: the curator hands that in.

Three noise modes (docs/protocol.md, section 4.3), one shape: `contribute` at a party, `open` at the curator. What
noise stays in the total does not depend on the transport, so that an experiment may leave the cryptography out and
stay exact.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from gmpy2 import mpz

from crypto.masking import hide, mask_words, reveal
from crypto.paillier.packing import Packing
from crypto.paillier.public import PublicKey, ciphertexts_from_bytes, multiply
from crypto.randomness import Stream
from protocol.plan.plan import Plan
from protocol.privacy.layout import WORD_BYTES, Layout, Vector, joined, words_from_bytes, words_to_bytes


def packing(plan: Plan, layout: Layout) -> Packing:
    """Slots in which every total fits for certain."""
    return Packing.fit(plan.key_bits, layout.bound, retained_bound(plan, layout))


def full_noise(plan: Plan, layout: Layout, stream: Stream) -> Vector:
    """One full share of noise for every cell."""
    return joined([plan.law.draw(rate, cells, stream) for rate, cells in layout.runs])


def own_noise(plan: Plan, layout: Layout, stream: Stream) -> Vector:
    """What one party draws in a pass of everybody."""
    if plan.noise != "distributed":
        return full_noise(plan, layout, stream)
    honest = plan.parties - plan.insiders
    return joined([plan.law.draw_share(rate, honest, cells, stream) for rate, cells in layout.runs])


def retained_variance(plan: Plan, rate: Fraction) -> float:
    """The variance of the noise that stays in one cell of the total."""
    if plan.noise == "distributed":
        return plan.parties * plan.law.share_variance(rate, plan.parties - plan.insiders)
    shares = plan.noise_shares if plan.noise == "selected" else plan.parties
    return shares * plan.law.variance(rate)


class PartySums(Protocol):
    """A party's half of a secure sum."""

    def contribute(self, layout: Layout, values: Vector, context: bytes, stream: Stream) -> bytes: ...


class CuratorSums(Protocol):
    """The curator's half; `BrokenSum` if the contributions do not add up."""

    def contribution_bytes(self, layout: Layout) -> int: ...

    def check(self, layout: Layout, blob: bytes) -> None:
        """Look at one contribution when it comes, while it is known whose it is; `MalformedCiphertext`."""

    def open(self, layout: Layout, blobs: Sequence[bytes]) -> Vector: ...


@dataclass(frozen=True)
class PlainSums:
    """Noise modes `distributed` and `local` at a party: masks modulo 2^64, no Paillier."""

    plan: Plan
    me: int
    pair_keys: Callable[[bytes], Mapping[int, bytes]]  # by peer, for a context

    def contribute(self, layout: Layout, values: Vector, context: bytes, stream: Stream) -> bytes:
        noisy = values + own_noise(self.plan, layout, stream)
        return words_to_bytes(hide(noisy, mask_words(self.pair_keys(context), self.me, layout.size)))


@dataclass(frozen=True)
class PlainOpening:
    """Noise modes `distributed` and `local` at the curator."""

    plan: Plan

    def contribution_bytes(self, layout: Layout) -> int:
        return WORD_BYTES * layout.size

    def check(self, layout: Layout, blob: bytes) -> None:
        """Any words may be a masked contribution."""

    def open(self, layout: Layout, blobs: Sequence[bytes]) -> Vector:
        return reveal([words_from_bytes(blob) for blob in blobs], total_bound(self.plan, layout))


@dataclass(frozen=True)
class SelectedOpening:
    """Noise mode `selected` at the curator, who alone can `decrypt`."""

    plan: Plan
    public: PublicKey
    decrypt: Callable[[Sequence[mpz]], list[mpz]]

    def contribution_bytes(self, layout: Layout) -> int:
        return ciphertexts(self.plan, layout) * self.public.ciphertext_bytes

    def check(self, layout: Layout, blob: bytes) -> None:
        ciphertexts_from_bytes(self.public, blob, ciphertexts(self.plan, layout))

    def open(self, layout: Layout, blobs: Sequence[bytes]) -> Vector:
        count = ciphertexts(self.plan, layout)
        if not count:
            return joined(())
        contributions = [ciphertexts_from_bytes(self.public, blob, count) for blob in blobs]
        return packing(self.plan, layout).unpack(self.decrypt(multiply(self.public, contributions)), layout.size)


def total_bound(plan: Plan, layout: Layout) -> int:
    """What no honest total exceeds, its noise included."""
    return layout.bound + retained_bound(plan, layout)


def retained_bound(plan: Plan, layout: Layout) -> int:
    """The largest noise that can stay in a total: the samplers' values are bounded, not only likely bounded."""
    rates = set(layout.rates)
    if plan.noise == "distributed":
        honest = plan.parties - plan.insiders
        return plan.parties * max((plan.law.share_bound(rate, honest) for rate in rates), default=0)
    shares = plan.noise_shares if plan.noise == "selected" else plan.parties
    return shares * max((plan.law.bound(rate) for rate in rates), default=0)


def ciphertexts(plan: Plan, layout: Layout) -> int:
    return packing(plan, layout).ciphertexts(layout.size) if plan.noise == "selected" else 0
