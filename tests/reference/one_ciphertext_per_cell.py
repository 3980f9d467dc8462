"""The reference: one ciphertext per cell on plain `phe` objects, as the paper has it, to compare the fast path with.

It does not know packing, tables or pools, and it does not decrypt.
"""

import numpy as np
from gmpy2 import mpz
from numpy.typing import NDArray
from phe.paillier import EncryptedNumber, PaillierPublicKey

from crypto.paillier.public import PublicKey, random_unit
from crypto.randomness import Stream


def contribution(
    key: PublicKey,
    encrypted_bit: mpz,
    values: NDArray[np.int64],
    noise: NDArray[np.int64],
    masks: list[mpz],
    stream: Stream,
) -> list[mpz]:
    """Enc(u')^eta_j Enc(v_j + mask_j) for every cell j."""
    reference = PaillierPublicKey(int(key.n))
    # phe takes neither numpy integers nor mpz, and a float would show its exponent: only int goes in.
    bit = EncryptedNumber(reference, int(encrypted_bit))
    cells = []
    for value, eta, mask in zip(values.tolist(), noise.tolist(), masks, strict=True):
        plaintext, randomness = int((value + mask) % key.n), int(random_unit(key, stream))
        hidden = EncryptedNumber(reference, reference.raw_encrypt(plaintext, r_value=randomness))
        cells.append(mpz((bit * eta + hidden).ciphertext(be_secure=False)))
    return cells


def multiply(key: PublicKey, contributions: list[list[mpz]]) -> list[mpz]:
    """Add all contributions cell by cell."""
    reference = PaillierPublicKey(int(key.n))
    totals = []
    for cells in zip(*contributions, strict=True):
        first, *others = (EncryptedNumber(reference, int(cell)) for cell in cells)
        totals.append(mpz(sum(others, first).ciphertext(be_secure=False)))
    return totals
