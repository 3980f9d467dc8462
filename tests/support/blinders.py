"""A party's tables for a single sum, without the run that would share them among its sums."""

from gmpy2 import mpz

from crypto.paillier.blinding import Blinder, Rerandomisers
from crypto.paillier.packing import Packing
from crypto.paillier.public import PublicKey
from crypto.randomness import Stream


def blinder_of(
    key: PublicKey, encrypted_bit: mpz, packing: Packing, noise_bound: int, expected: int, stream: Stream
) -> Blinder:
    return Blinder(key, packing, noise_bound, expected, Rerandomisers(key, encrypted_bit, stream, expected))
