"""Many signed integers in one Paillier plaintext: P(v) = sum of v_j 2^(w j). The argument is in packing.md.

It does not know what the integers count, nor any key.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from gmpy2 import mpz
from numpy.typing import NDArray

from crypto.errors import BrokenSum, NoiseOutOfReach

GUARD_BITS = 64  # top bits that stay free; a wrong sum sets one of them, except with probability 2^-64
LARGEST_SLOT = 62


@dataclass(frozen=True)
class Packing:
    """Arrangement of slots of `slot_bits` bits in plaintexts under a key of `key_bits` bits."""

    key_bits: int
    slot_bits: int

    def __post_init__(self) -> None:
        if not 2 <= self.slot_bits <= LARGEST_SLOT or self.slots < 1:
            raise NoiseOutOfReach(
                f"slots of {self.slot_bits} bits are not possible under a key of {self.key_bits} bits; "
                f"a slot has 2 to {LARGEST_SLOT} bits, and {GUARD_BITS + 1} bits of the key must stay free"
            )

    @classmethod
    def fit(cls, key_bits: int, total_bound: int, noise_bound: int) -> "Packing":
        """Choose the narrowest slots in which every total fits with all its noise."""
        # Overflow safety: (total_bound + noise_bound).bit_length() is ceil(log2(total_bound + noise_bound + 1)).
        return cls(key_bits, 1 + (total_bound + noise_bound).bit_length())

    @property
    def slots(self) -> int:
        return (self.key_bits - 1 - GUARD_BITS) // self.slot_bits

    def ciphertexts(self, count: int) -> int:
        """The number of plaintexts that hold `count` integers."""
        return -(-count // self.slots)

    def place(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Arrange the values in one row of slots per plaintext; zeros fill up the last row."""
        rows = np.zeros((self.ciphertexts(len(values)), self.slots), dtype=np.int64)
        rows.ravel()[: len(values)] = values
        return rows

    def pack(self, values: NDArray[np.int64]) -> list[mpz]:
        """Pack the values into signed plaintexts, which add up as the values do."""
        half = self._half
        if len(values) and not -half <= int(values.min()) <= int(values.max()) < half:
            raise BrokenSum(f"a value does not fit a slot of {self.slot_bits} bits; raise the bound on totals")
        used = self.slots * self.slot_bits
        # Every digit is shifted to be non-negative and written as bits. The shift is then taken off the whole number.
        digits = (self.place(values) + half).astype("<u8")
        bits = np.unpackbits(digits.view(np.uint8).reshape(*digits.shape, 8), axis=2, bitorder="little")
        rows = np.packbits(bits[:, :, : self.slot_bits].reshape(len(digits), used), axis=1, bitorder="little")
        shift = self._shift
        return [mpz.from_bytes(row.tobytes(), "little") - shift for row in rows]

    def unpack(self, plaintexts: Sequence[mpz], count: int) -> NDArray[np.int64]:
        """Unpack the integers. Raises BrokenSum if a guard bit is set or an unused slot is not empty."""
        if len(plaintexts) != self.ciphertexts(count):
            raise BrokenSum(
                f"{len(plaintexts)} plaintexts came for {count} values, which take {self.ciphertexts(count)}"
            )
        used = self.slots * self.slot_bits
        shifted = [plaintext + self._shift for plaintext in plaintexts]
        if any(number < 0 or number.bit_length() > used for number in shifted):
            raise BrokenSum("guard bits of the sum are set: a contribution is missing, repeated or for another step")
        length = (used + 7) // 8
        data = np.frombuffer(b"".join(number.to_bytes(length, "little") for number in shifted), dtype=np.uint8)
        bits = np.unpackbits(data.reshape(len(shifted), length), axis=1, bitorder="little")[:, :used]
        digits = np.zeros((len(shifted), self.slots, 64), dtype=np.uint8)
        digits[:, :, : self.slot_bits] = bits.reshape(len(shifted), self.slots, self.slot_bits)
        words = np.packbits(digits.ravel(), bitorder="little").view("<u8")
        values = words.astype(np.int64) - self._half
        if values[count:].any():
            raise BrokenSum("slots behind the last value are not empty: a contribution was made for another table")
        return values[:count]

    @property
    def _half(self) -> int:
        return 1 << (self.slot_bits - 1)

    @property
    def _shift(self) -> mpz:
        """The plaintext with 2^(w-1) in every slot."""
        ones = ((mpz(1) << (self.slots * self.slot_bits)) - 1) // ((mpz(1) << self.slot_bits) - 1)
        return self._half * ones
