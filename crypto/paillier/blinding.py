"""A party's contribution: its masked values plus its noise times a hidden bit, re-randomised. See secure_sum.md.

It does not know whether the hidden bit is 0 or 1, nor how to decrypt.
"""

from typing import NoReturn

import gmpy2
import numpy as np
from gmpy2 import mpz
from numpy.typing import NDArray

from crypto.errors import BrokenSum, NoiseOutOfReach, Reused
from crypto.paillier.packing import Packing
from crypto.paillier.public import STATISTICAL_BITS, PublicKey
from crypto.paillier.slot_powers import Base, SlotPowers, cheapest_step
from crypto.randomness import Stream, on_fork


class Rerandomisers:
    """Factors that turn a ciphertext into an unrelated ciphertext of the same plaintext, each drawn for one use.

    Privacy: a factor is h^x for h = E^n and x uniform in [0, 2^(bits(n) + 128)). Write E = (1 + n u) r^n. As
    gcd(n, phi(n)) = 1, h generates the same group as r^n. Hence h^x is uniform in that group up to 2^-128 and hides
    the noise in (r^n)^P(eta), even from anyone who knows the factors of n. An h that does not depend on E would not
    hide the noise: Legendre symbols modulo p show its parity whenever h is a square and r^n is not.
    """

    def __init__(self, key: PublicKey, encrypted_bit: mpz, stream: Stream, expected: int) -> None:
        self.bit = Base(encrypted_bit, key.n_squared)
        bits = key.bits + STATISTICAL_BITS
        self.step = cheapest_step(bits, expected)
        self.slots = -(-bits // self.step)
        base = Base(gmpy2.powmod(encrypted_bit, key.n, key.n_squared), key.n_squared)
        self._powers = SlotPowers(base, step=self.step, slots=self.slots, planes=self.step, uses=expected)
        self._stream = stream

    def draw(self, count: int) -> list[mpz]:
        # Uniform digits in every slot make a uniform exponent.
        words = self._stream.words64(count * self.slots)
        digits = (words & np.uint64((1 << self.step) - 1)).astype(np.int64)
        return self._powers.powers(digits.reshape(count, self.slots))

    def __reduce__(self) -> NoReturn:
        raise Reused("re-randomisers cannot be copied or pickled: each of their factors may be used only once")


class BlindedNoise:
    """The blinded noise E^P(eta) rho of one step, ready to carry values; it may be spent only once."""

    def __init__(self, factors: list[mpz]) -> None:
        self._unspent = [factors]
        on_fork(self)

    def spend(self) -> list[mpz]:
        try:
            return self._unspent.pop()
        except IndexError:
            raise Reused(
                "this noise has been spent; sent again under other values, it would reveal their difference"
            ) from None

    def after_fork(self) -> None:
        self._unspent.clear()  # Fork safety: only the parent may spend the noise.

    def __reduce__(self) -> NoReturn:
        raise Reused("blinded noise cannot be copied or pickled: it may be sent only once")


class Blinder:
    """A party's tables for one sum under its encrypted bit E = Enc(u'), sized for about `expected` ciphertexts.

    The `rerandomisers` of E serve all sums of a run, and keep what sums of one slot width share.
    """

    def __init__(
        self,
        key: PublicKey,
        packing: Packing,
        noise_bound: int,
        expected: int,
        rerandomisers: Rerandomisers,
    ) -> None:
        self._key, self._packing, self._bound, self._rerandomisers = key, packing, noise_bound, rerandomisers
        if noise_bound.bit_length() >= packing.slot_bits:
            raise NoiseOutOfReach(f"noise up to {noise_bound} does not fit slots of {packing.slot_bits} bits")
        # Digits are eta + bound, which is not negative. Only eta = bound, and only if the bound is a power of two,
        # takes one more plane; the samplers reach their bound with probability below 2^-128.
        self._powers = SlotPowers(
            rerandomisers.bit,
            step=packing.slot_bits,
            slots=packing.slots,
            planes=max(1, (2 * noise_bound - 1).bit_length()),
            uses=expected + 1,
        )
        (lift,) = self._powers.powers(np.full((1, packing.slots), noise_bound))
        self._unlift = gmpy2.invert(lift, key.n_squared)

    def blind(self, noise: NDArray[np.int64]) -> BlindedNoise:
        """Compute the part of a contribution that does not need the values."""
        if len(noise) and not -self._bound <= int(noise.min()) <= int(noise.max()) <= self._bound:
            raise NoiseOutOfReach(f"noise exceeds the bound {self._bound} for which the slots were sized")
        modulus, unlift = self._key.n_squared, self._unlift
        lifted = self._powers.powers(self._packing.place(noise) + self._bound)
        rerandomisers = self._rerandomisers.draw(len(lifted))
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
