"""A Paillier modulus made to read everybody's noise: n = p1 ... pk Q, each p just above 2^16, its square in Q - 1."""

from collections.abc import Sequence
from dataclasses import dataclass

import gmpy2
from gmpy2 import mpz

from crypto.paillier.public import TRIAL_DIVISION, PublicKey


@dataclass(frozen=True)
class BadModulus:
    small: tuple[mpz, ...]
    large: mpz  # Q

    @property
    def key(self) -> PublicKey:
        return PublicKey(self.product * self.large)

    @property
    def product(self) -> mpz:
        return _product(self.small)

    def roots(self, numbers: Sequence[mpz]) -> list[mpz]:
        """The n-th root of every number whose order is coprime to n; of the others, whatever comes out."""
        return [self._root(number) for number in numbers]

    def has_root(self, number: mpz) -> bool:
        return all(gmpy2.powmod(number, (self.large - 1) // prime, self.large) == 1 for prime in self.small)

    def read_power(self, base: mpz, power: mpz) -> mpz:
        """The exponent e of base^e rho modulo p1 ... pk, where base is an n-th power and rho an n-th power of base."""
        exponent, modulus = mpz(0), mpz(1)
        for prime in self.small:
            cofactor = (self.large - 1) // prime**2  # takes out all but the group of order p, and with it rho
            ends = (gmpy2.powmod(number, cofactor, self.large) for number in (base, power))
            digit = _logarithm(*ends, self.large, int(prime))
            exponent += modulus * ((digit - exponent) * gmpy2.invert(modulus, prime) % prime)
            modulus *= prime
        return exponent - modulus if 2 * exponent > modulus else exponent

    def decrypt(self, ciphertext: mpz) -> mpz:
        """A plaintext that is small beside Q."""
        square, others = self.large**2, self.product
        power = gmpy2.powmod(ciphertext, self.large - 1, square)
        plaintext = (power - 1) // self.large * gmpy2.invert(-others, self.large) % self.large
        return plaintext - self.large if 2 * plaintext > self.large else plaintext

    def _root(self, number: mpz) -> mpz:
        n, root, modulus = self.key.n, mpz(0), mpz(1)
        for prime, order in [(p, p - 1) for p in self.small] + [(self.large, (self.large - 1) // self.product**2)]:
            part = gmpy2.powmod(number, gmpy2.invert(n, order), prime)
            root += modulus * ((part - root) * gmpy2.invert(modulus, prime) % prime)
            modulus *= prime
        return root


def bad_modulus(bits: int, count: int) -> BadModulus:
    small = [gmpy2.next_prime(mpz(TRIAL_DIVISION))]
    while len(small) < count:
        small.append(gmpy2.next_prime(small[-1]))
    product = _product(small)
    multiple = (mpz(3) << (bits - 2)) // (2 * product**3)
    while not gmpy2.is_prime(large := 2 * multiple * product**2 + 1) or gmpy2.gcd(multiple, product) != 1:
        multiple += 1
    return BadModulus(tuple(small), large)


def _product(numbers: Sequence[mpz]) -> mpz:
    result = mpz(1)
    for number in numbers:
        result *= number
    return result


def _logarithm(base: mpz, power: mpz, modulus: mpz, order: int) -> int:
    """The discrete logarithm in a group of small order, by baby steps and giant steps."""
    step = int(gmpy2.isqrt(order)) + 1
    babies, baby = {}, mpz(1)
    for exponent in range(step):
        babies[baby] = exponent
        baby = baby * base % modulus
    giant, place = gmpy2.invert(gmpy2.powmod(base, step, modulus), modulus), power
    for giants in range(step):
        if place in babies:
            return giants * step + babies[place]
        place = place * giant % modulus
    raise AssertionError("no power of the base")
