"""The proof that a modulus n shares no factor with phi(n): n-th roots of numbers that nobody chose. See modulus.md.

It does not know how roots are taken: that needs the factors of n, which are the curator's.
"""

from collections.abc import Callable, Sequence

import gmpy2
from gmpy2 import mpz

from crypto.errors import WrongProof
from crypto.paillier.public import STATISTICAL_BITS, TRIAL_DIVISION, PublicKey, random_unit
from crypto.randomness import Stream

# A bad modulus that passes the trial division has a root for a random number with probability below 1/TRIAL_DIVISION.
ROOTS = -(-STATISTICAL_BITS // (TRIAL_DIVISION.bit_length() - 1))


def prove_modulus(key: PublicKey, context: bytes, roots: Callable[[Sequence[mpz]], Sequence[mpz]]) -> bytes:
    """Return the proof for a context; `roots` takes n-th roots modulo n."""
    return b"".join(bytes(root.to_bytes(_length(key), "big")) for root in roots(_numbers(key, context)))


def check_modulus(key: PublicKey, proof: bytes, context: bytes) -> None:
    """Raise `WrongProof` unless n is coprime to phi(n); the key has passed `PublicKey.validate`."""
    length = _length(key)
    if len(proof) != ROOTS * length:
        raise WrongProof(f"the proof of the modulus has {len(proof)} bytes, not {ROOTS * length}; stop the run")
    roots = [mpz.from_bytes(proof[start : start + length], "big") for start in range(0, len(proof), length)]
    for root, number in zip(roots, _numbers(key, context), strict=True):
        if root >= key.n or gmpy2.powmod(root, key.n, key.n) != number:
            raise WrongProof("the Paillier modulus is not shown to be free of bad factors; stop the run")


def _numbers(key: PublicKey, context: bytes) -> list[mpz]:
    """Units modulo n that follow from n and the context as if drawn at random."""
    stream = Stream.keyed(_length(key).to_bytes(4, "big") + key.to_bytes() + context, b"roots of a modulus")
    return [random_unit(key, stream) for _ in range(ROOTS)]


def _length(key: PublicKey) -> int:
    return key.ciphertext_bytes // 2
