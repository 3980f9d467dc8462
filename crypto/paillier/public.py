"""The public side of Paillier's cryptosystem: keys and ciphertexts as integers and as bytes, checked when received.

It does not know any secret key, and nothing here decrypts.

Enc(m; r) = (1 + n m) r^n mod n^2. Every number is a gmpy2 `mpz`. A numpy integer times an `mpz` is a numpy integer
that wraps silently, so values cross between the two kinds only as bytes (`crypto.paillier.packing` and
`crypto.masking`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache

import gmpy2
from gmpy2 import mpz

from crypto.errors import BrokenSum, MalformedCiphertext, MalformedKey
from crypto.randomness import Stream

DEFAULT_BITS = 3072
SMALLEST_BITS = 2048
LARGEST_BITS = 8192
TRIAL_DIVISION = 1 << 16  # every prime below this number is tried as a factor of a key from outside
STATISTICAL_BITS = 128  # a value of this many bits more than its modulus is uniform up to 2^-128


@dataclass(frozen=True)
class PublicKey:
    """The modulus n. Only `from_bytes` checks the modulus; construct a key directly only from primes that you drew."""

    n: mpz
    n_squared: mpz = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", mpz(self.n))
        object.__setattr__(self, "n_squared", self.n * self.n)

    @property
    def bits(self) -> int:
        return int(self.n.bit_length())

    @property
    def ciphertext_bytes(self) -> int:
        return 2 * ((self.bits + 7) // 8)

    def to_bytes(self) -> bytes:
        return _bytes(self.n, self.bits // 8)

    @classmethod
    def from_bytes(cls, data: bytes, smallest_bits: int = SMALLEST_BITS) -> "PublicKey":
        key = cls(mpz.from_bytes(data, "big"))
        if key.bits != 8 * len(data):
            raise MalformedKey(f"a Paillier key of {len(data)} bytes has {key.bits} bits; it must have {8 * len(data)}")
        key.validate(smallest_bits)
        return key

    def validate(self, smallest_bits: int = SMALLEST_BITS) -> None:
        """Check the modulus as far as possible without its factors; `crypto.paillier.modulus` proves the rest."""
        if not smallest_bits <= self.bits <= LARGEST_BITS or self.bits % 8:
            raise MalformedKey(
                f"a Paillier key of {self.bits} bits was offered; {smallest_bits} to {LARGEST_BITS} bits, "
                "a multiple of 8, are accepted"
            )
        if gmpy2.gcd(self.n, _primorial()) != 1:
            raise MalformedKey(f"the Paillier modulus has a prime factor below {TRIAL_DIVISION}; ask for a new key")
        if gmpy2.is_power(self.n):
            raise MalformedKey("the Paillier modulus is a perfect power; ask for a new key")
        if gmpy2.is_prime(self.n):
            raise MalformedKey("the Paillier modulus is prime, so that anybody could decrypt; ask for a new key")


@cache
def _primorial() -> mpz:
    return gmpy2.primorial(TRIAL_DIVISION)


def _bytes(value: mpz, length: int) -> bytes:
    return bytes(value.to_bytes(length, "big"))


def random_unit(key: PublicKey, stream: Stream) -> mpz:
    """Draw uniformly among the integers modulo n that have an inverse."""
    while gmpy2.gcd(unit := mpz(stream.below(int(key.n))), key.n) != 1:
        pass
    return unit


def encrypt(key: PublicKey, plaintext: int, randomness: mpz) -> mpz:
    return (1 + key.n * (plaintext % key.n)) * gmpy2.powmod(randomness, key.n, key.n_squared) % key.n_squared


def multiply(key: PublicKey, contributions: Sequence[Sequence[mpz]]) -> list[mpz]:
    """Multiply several contributions, position by position, which adds their plaintexts."""
    if len({len(contribution) for contribution in contributions}) != 1:
        lengths = [len(contribution) for contribution in contributions]
        raise BrokenSum(f"contributions have {lengths} ciphertexts and cannot be added; all must have the same number")
    products = list(contributions[0])
    for contribution in contributions[1:]:
        products = [left * right % key.n_squared for left, right in zip(products, contribution, strict=True)]
    return products


def ciphertexts_to_bytes(key: PublicKey, ciphertexts: Sequence[mpz]) -> bytes:
    return b"".join(_bytes(ciphertext, key.ciphertext_bytes) for ciphertext in ciphertexts)


def ciphertexts_from_bytes(key: PublicKey, data: bytes, count: int) -> list[mpz]:
    length = key.ciphertext_bytes
    if len(data) != count * length:
        raise MalformedCiphertext(f"{len(data)} bytes were received for {count} ciphertexts; expected {count * length}")
    ciphertexts = [mpz.from_bytes(data[start : start + length], "big") for start in range(0, len(data), length)]
    check_ciphertexts(key, ciphertexts)
    return ciphertexts


def are_units(key: PublicKey, numbers: Iterable[mpz]) -> bool:
    """Whether every number is coprime to n. One gcd of their product takes far less time than one for each."""
    product = mpz(1)
    for number in numbers:
        product = product * number % key.n
    return bool(gmpy2.gcd(product, key.n) == 1)


def check_ciphertexts(key: PublicKey, ciphertexts: Sequence[mpz]) -> None:
    """Check that every ciphertext lies in (0, n^2) and is coprime to n. Single gcds only serve to name a culprit."""
    for position, ciphertext in enumerate(ciphertexts):
        if not 0 < ciphertext < key.n_squared:
            raise MalformedCiphertext(f"ciphertext {position} lies outside 1 .. n^2 - 1; ask its sender again")
    if not are_units(key, ciphertexts):
        culprit = next(i for i, ciphertext in enumerate(ciphertexts) if gmpy2.gcd(ciphertext, key.n) != 1)
        raise MalformedCiphertext(f"ciphertext {culprit} shares a factor with n; ask its sender again")
