"""The secret side of Paillier's cryptosystem: the only module that decrypts.

It does not know what the plaintexts mean. No other module of this package may import it.
"""

from collections.abc import Iterable

import gmpy2
import phe.paillier
import phe.util
from gmpy2 import mpz

from crypto.errors import CryptoError, MalformedKey
from crypto.paillier.public import DEFAULT_BITS, PublicKey
from crypto.secret_powers import SecretPower


def require_gmp() -> None:
    """Refuse to run where `phe` would fall back, without a word, to arithmetic that is 8 times slower."""
    if not phe.util.HAVE_GMP:
        raise CryptoError("the package phe runs without gmpy2, which it needs here: reinstall both packages")


require_gmp()


class _Half:
    """Decryption modulo one prime factor p of n = p q."""

    def __init__(self, p: mpz, q: mpz) -> None:
        self.p, self.p_squared = p, p * p
        # (1 + n m)^(p-1) = 1 + (p-1) n m modulo p^2, so L = (x - 1) / p gives -q m modulo p.
        self._scale = gmpy2.invert(-q, p)
        # Timing: p and q are secret, also as exponents.
        self._opening = SecretPower(p - 1, self.p_squared)
        self._by_other, self._by_itself = SecretPower(q, p), SecretPower(p, self.p_squared)
        self._root = SecretPower(gmpy2.invert(q, p - 1), p)  # n = q modulo p - 1

    def decrypt(self, ciphertext: mpz) -> mpz:
        power = self._opening(ciphertext % self.p_squared)
        return (power - 1) // self.p * self._scale % self.p

    def power(self, number: mpz) -> mpz:
        """Return number^(p q) modulo p^2: what is raised to p there counts modulo p only."""
        return self._by_itself(self._by_other(number % self.p))

    def root(self, number: mpz) -> mpz:
        return self._root(number % self.p)


class SecretKey:
    """The factors of n. The key is never printed or pickled; `to_bytes` is the only way to store it."""

    def __init__(self, p: mpz, q: mpz) -> None:
        if p == q or not gmpy2.is_prime(p) or not gmpy2.is_prime(q) or gmpy2.gcd(p * q, (p - 1) * (q - 1)) != 1:
            raise MalformedKey("a Paillier secret must be two different primes p, q with gcd(pq, (p-1)(q-1)) = 1")
        self.public = PublicKey(p * q)
        self._p, self._q = _Half(p, q), _Half(q, p)
        self._p_inverse = gmpy2.invert(p, q)
        self._p_squared_inverse = gmpy2.invert(p * p, q * q)

    @classmethod
    def generate(cls, bits: int = DEFAULT_BITS) -> "SecretKey":
        _, key = phe.paillier.generate_paillier_keypair(n_length=bits)
        return cls(mpz(key.p), mpz(key.q))

    def decrypt(self, ciphertexts: Iterable[mpz]) -> list[mpz]:
        """Decrypt to plaintexts in (-n/2, n/2). The ciphertexts must have been checked when they were received."""
        return [self._decrypt(ciphertext) for ciphertext in ciphertexts]

    def _decrypt(self, ciphertext: mpz) -> mpz:
        plaintext = self._joined(self._p.decrypt(ciphertext), self._q.decrypt(ciphertext))
        return plaintext - self.public.n if 2 * plaintext > self.public.n else plaintext

    def powers(self, numbers: Iterable[mpz]) -> list[mpz]:
        """Return the n-th power modulo n^2 of every number, quicker than without the factors of n."""
        return [self._power(number) for number in numbers]

    def _power(self, number: mpz) -> mpz:
        p, q = self._p, self._q
        modulo_p, modulo_q = p.power(number), q.power(number)
        return modulo_p + p.p_squared * ((modulo_q - modulo_p) * self._p_squared_inverse % q.p_squared)

    def roots(self, numbers: Iterable[mpz]) -> list[mpz]:
        """Return the n-th root modulo n of every number; never call it with numbers that somebody else chose.

        Privacy: the n-th root of a ciphertext is its randomness, which opens it.
        """
        return [self._joined(self._p.root(number), self._q.root(number)) for number in numbers]

    def _joined(self, modulo_p: mpz, modulo_q: mpz) -> mpz:
        return modulo_p + self._p.p * ((modulo_q - modulo_p) * self._p_inverse % self._q.p)

    def to_bytes(self) -> bytes:
        """Encode p in the first half of the bytes and q in the second."""
        length = (max(self._p.p, self._q.p).bit_length() + 7) // 8
        return bytes(self._p.p.to_bytes(length, "big") + self._q.p.to_bytes(length, "big"))

    @classmethod
    def from_bytes(cls, data: bytes) -> "SecretKey":
        if len(data) % 2:
            raise MalformedKey(
                f"a Paillier secret holds two numbers of equal length; {len(data)} bytes cannot hold them"
            )
        half = len(data) // 2
        return cls(mpz.from_bytes(data[:half], "big"), mpz.from_bytes(data[half:], "big"))

    def __repr__(self) -> str:
        return f"SecretKey({self.public.bits} bits)"

    def __reduce__(self) -> str:
        raise TypeError("a Paillier secret cannot be pickled; store `to_bytes()` where secrets are kept")
