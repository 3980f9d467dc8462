"""What a party sends: its masked values plus its noise times a hidden bit, re-randomised. See secure_sum.md.

It does not know whether its hidden bit is 0 or 1, nor how to decrypt.
"""

from threading import Lock
from typing import NoReturn

import gmpy2
import numpy as np
from gmpy2 import mpz
from numpy.typing import NDArray

from crypto.errors import BrokenSum, NoiseOutOfReach, Reused
from crypto.paillier.packing import Packing
from crypto.paillier.public import STATISTICAL_BITS, PublicKey
from crypto.paillier.slot_powers import SlotPowers, cheapest_step
from crypto.randomness import Stream, on_fork


class RerandomiserPool:
    """Factors that turn a ciphertext into an unrelated one of the same plaintext; each is handed out once.

    Privacy: a factor is h^x for h = E^n and x uniform in [0, 2^(bits(n) + 128)). As gcd(n, phi(n)) = 1, h
    generates the same group as r^n, where E = (1 + n u) r^n, so h^x is uniform in that group up to 2^-128 and
    hides the noise in (r^n)^P(eta) even from who knows the factors of n. An h that does not depend on E would
    not: Legendre symbols modulo p show the parity of the noise whenever h is a square and r^n is not.
    """

    def __init__(self, key: PublicKey, encrypted_bit: mpz, stream: Stream, expected: int) -> None:
        self.encrypted_bit = encrypted_bit
        bits = key.bits + STATISTICAL_BITS
        self.step = cheapest_step(bits, expected)
        self.slots = -(-bits // self.step)
        base = gmpy2.powmod(encrypted_bit, key.n, key.n_squared)
        self._powers = SlotPowers(
            base, key.n_squared, step=self.step, slots=self.slots, planes=self.step, uses=expected
        )
        self._stream = stream
        self._ready: list[mpz] = []
        self._lock = Lock()
        on_fork(self)

    def fill(self, count: int) -> None:
        """Prepare `count` more while idle."""
        fresh = self._fresh(count)
        with self._lock:
            self._ready += fresh

    def take(self, count: int) -> list[mpz]:
        """`count` factors that nobody has had before, computed now as far as the pool does not hold them."""
        with self._lock:
            start = max(0, len(self._ready) - count)
            taken, self._ready = self._ready[start:], self._ready[:start]
        return taken + self._fresh(count - len(taken))

    @property
    def ready(self) -> int:
        return len(self._ready)

    def after_fork(self) -> None:
        # Fork safety: what is in the pool is the parent's to use; its lock may have been held by a thread.
        self._ready, self._lock = [], Lock()

    def _fresh(self, count: int) -> list[mpz]:
        # A uniform exponent is uniform digits in every slot.
        with self._lock:
            words = self._stream.words64(count * self.slots)
        digits = (words & np.uint64((1 << self.step) - 1)).astype(np.int64)
        return self._powers.powers(digits.reshape(count, self.slots))

    def __reduce__(self) -> NoReturn:
        raise Reused("a pool of re-randomisers is not copied or pickled: each of its factors may be used once")


class BlindedNoise:
    """E^P(eta) rho, ready to carry values: one step's noise, which may be spent once."""

    def __init__(self, factors: list[mpz]) -> None:
        self._unspent = [factors]
        on_fork(self)

    def spend(self) -> list[mpz]:
        try:
            return self._unspent.pop()
        except IndexError:
            raise Reused("this noise has been spent: under other values it would show their difference") from None

    def after_fork(self) -> None:
        self._unspent.clear()  # Fork safety: the parent spends it.

    def __reduce__(self) -> NoReturn:
        raise Reused("blinded noise is not copied or pickled: it may be sent once")


class Blinder:
    """A party's tables for its encrypted bit E = Enc(u'), made for about `expected` ciphertexts.

    A `pool` that was filled while idle, for the same E, serves sums of any slot width; without one, it is made here.
    """

    def __init__(
        self,
        key: PublicKey,
        encrypted_bit: mpz,
        packing: Packing,
        noise_bound: int,
        expected: int,
        stream: Stream,
        pool: RerandomiserPool | None = None,
    ) -> None:
        self._key, self._packing, self._bound = key, packing, noise_bound
        if noise_bound.bit_length() >= packing.slot_bits:
            raise NoiseOutOfReach(f"noise up to {noise_bound} does not fit slots of {packing.slot_bits} bits")
        self.pool = pool or RerandomiserPool(key, encrypted_bit, stream, expected)
        if self.pool.encrypted_bit != encrypted_bit:
            raise Reused("re-randomisers of another encrypted bit do not hide this one's noise; make a new pool")
        # Digits are eta + bound, not negative. Only eta = bound itself, where the bound is a power of two, may
        # take a plane more; the samplers reach their bound with probability below 2^-128.
        self._powers = SlotPowers(
            encrypted_bit,
            key.n_squared,
            step=packing.slot_bits,
            slots=packing.slots,
            planes=max(1, (2 * noise_bound - 1).bit_length()),
            uses=expected,
        )
        lift = sum((mpz(noise_bound) << (packing.slot_bits * slot) for slot in range(packing.slots)), mpz(0))
        self._unlift = gmpy2.invert(gmpy2.powmod(encrypted_bit, lift, key.n_squared), key.n_squared)

    def blind(self, noise: NDArray[np.int64]) -> BlindedNoise:
        """What can be computed before the values are known."""
        if len(noise) and not -self._bound <= int(noise.min()) <= int(noise.max()) <= self._bound:
            raise NoiseOutOfReach(f"noise exceeds the bound {self._bound} that the slots are made for")
        modulus, unlift = self._key.n_squared, self._unlift
        lifted = self._powers.powers(self._packing.place(noise) + self._bound)
        rerandomisers = self.pool.take(len(lifted))
        return BlindedNoise(
            [power * unlift % modulus * rho % modulus for power, rho in zip(lifted, rerandomisers, strict=True)]
        )

    def contribution(self, values: NDArray[np.int64], noise: BlindedNoise, masks: list[mpz]) -> list[mpz]:
        """Enc(P(v) + mask + u' P(eta)) with fresh randomness."""
        plaintexts, factors = self._packing.pack(values), noise.spend()
        if not len(plaintexts) == len(factors) == len(masks):
            raise BrokenSum(f"{len(plaintexts)} plaintexts, {len(factors)} noises and {len(masks)} masks do not match")
        n, modulus = self._key.n, self._key.n_squared
        return [
            (1 + n * ((plaintext + mask) % n)) * factor % modulus
            for plaintext, mask, factor in zip(plaintexts, masks, factors, strict=True)
        ]
