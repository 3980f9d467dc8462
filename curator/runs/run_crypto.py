"""A run's cryptography at the curator: making its keys and opening its sums.

It does not know storage: secrets are passed in and out as bytes. The seeded end-to-end test replaces it.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from gmpy2 import mpz

from crypto.paillier.indicator import make_indicator
from crypto.paillier.modulus import prove_modulus
from crypto.paillier_secret import SecretKey, require_gmp
from crypto.randomness import Stream
from protocol.plan.plan import Plan
from protocol.run.curator import RunKeys
from protocol.secure_sum.plain import PlainOpening
from protocol.secure_sum.selected import SelectedOpening, proven_for
from protocol.secure_sum.sums import CuratorSums


@dataclass(frozen=True)
class NewKeys:
    public: RunKeys
    secret: bytes


def public_half(secret: SecretKey, plan: Plan, stream: Stream) -> RunKeys:
    """Return what the parties of a plan are shown of a key, with its proofs and a new indicator."""
    key, context = secret.public, proven_for(plan)
    powers = partial(on_all_cores, secret.powers)
    indicator = make_indicator(key, plan.parties, plan.noise_shares, stream, context, powers)
    return RunKeys(key.to_bytes(), prove_modulus(key, context, secret.roots), indicator.to_bytes(key))


def on_all_cores(work: Callable[[Sequence[mpz]], list[mpz]], numbers: Sequence[mpz]) -> list[mpz]:
    """Do work with a secret key on many numbers. libcrypto computes beside the interpreter, so threads share it out."""
    cores = os.cpu_count() or 1
    size = -(-len(numbers) // cores)
    with ThreadPoolExecutor(cores) as threads:
        parts = threads.map(work, (numbers[start : start + size] for start in range(0, len(numbers), size or 1)))
        return [number for part in parts for number in part]


class RunCrypto(Protocol):
    def make_keys(self, plan: Plan, stream: Stream) -> NewKeys | None:
        """Make the run's keys. Return None if its sums need no keys."""

    def opening(self, plan: Plan, secret: bytes | None) -> CuratorSums: ...


class PaillierCrypto:
    """The cryptography of real runs: Paillier keys where the plan needs them."""

    def make_keys(self, plan: Plan, stream: Stream) -> NewKeys | None:
        if not plan.uses_paillier:
            return None
        require_gmp()
        secret = self.draw(plan.key_bits)
        return NewKeys(public_half(secret, plan, stream), secret.to_bytes())

    def draw(self, bits: int) -> SecretKey:
        return SecretKey.generate(bits)

    def opening(self, plan: Plan, secret: bytes | None) -> CuratorSums:
        if secret is None:
            return PlainOpening(plan)
        key = SecretKey.from_bytes(secret)
        return SelectedOpening(plan.noise_mode, key.public, partial(on_all_cores, key.decrypt))
