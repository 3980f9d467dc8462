"""Finite fields GF(q) as tables, for every prime power q. Covers with q columns are built from GF(q).

It does not know views or variables.

The elements are 0..q-1. The digits of an element to base p are the coefficients of a polynomial over GF(p), lowest
first. Polynomials are multiplied modulo an irreducible polynomial.
"""

from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

Polynomial = tuple[int, ...]  # coefficients, lowest first; the last coefficient is not zero


@dataclass(frozen=True, eq=False)
class Field:
    order: int
    add: NDArray[np.intp]  # add[a, b] = a + b
    multiply: NDArray[np.intp]


def prime_powers_up_to(largest: int) -> list[int]:
    return [q for q in range(2, largest + 1) if is_prime_power(q)]


def is_prime_power(number: int) -> bool:
    return number >= 2 and _prime_and_degree(number) is not None


def is_prime(number: int) -> bool:
    return number >= 2 and _smallest_factor(number) == number


@cache
def field(order: int) -> Field:
    """Build GF(order)."""
    found = _prime_and_degree(order) if order >= 2 else None
    if found is None:
        raise ValueError(f"there is no field with {order} elements: {order} is not a prime power")
    prime, degree = found
    weights = prime ** np.arange(degree)
    digits = np.arange(order)[:, None] // weights % prime
    sums = (digits[:, None, :] + digits[None, :, :]) % prime
    shifted = _multiples_by_powers_of_x(digits, irreducible(prime, degree), prime)
    products = np.einsum("bi,iad->abd", digits, shifted) % prime
    return Field(order, _frozen(sums @ weights), _frozen(products @ weights))


@cache
def lines(order: int, rows: int) -> NDArray[np.intp]:
    """The column of row i on each of the order^2 lines: entry [i, m, j] is j + i * m in GF(order), i < rows <= order.

    Two cells of different rows lie on exactly one line: their columns' difference gives m, because i - i' has an
    inverse, and then either column gives j.
    """
    if rows > order:
        raise ValueError(f"{rows} rows were requested, but GF({order}) allows at most {order}")
    gf = field(order)
    return _frozen(gf.add[gf.multiply[:rows]])


def irreducible(prime: int, degree: int) -> Polynomial:
    """The first monic irreducible polynomial of this degree over GF(prime).

    No monic polynomial of half its degree or less divides it.
    """
    divisors = [d for size in range(1, degree // 2 + 1) for d in _monic(prime, size)]
    return next(c for c in _monic(prime, degree) if all(any(_remainder(c, d, prime)) for d in divisors))


def _monic(prime: int, degree: int) -> list[Polynomial]:
    return [(*reversed(high_first), 1) for high_first in product(range(prime), repeat=degree)]


def _remainder(dividend: Polynomial, divisor: Polynomial, prime: int) -> list[int]:
    """The remainder of `dividend` after division by a monic `divisor`."""
    rest = list(dividend)
    while len(rest) >= len(divisor):
        factor = rest.pop()
        offset = len(rest) - len(divisor) + 1
        for power, coefficient in enumerate(divisor[:-1]):
            rest[offset + power] = (rest[offset + power] - factor * coefficient) % prime
    return rest


def _multiples_by_powers_of_x(digits: NDArray[np.intp], modulus: Polynomial, prime: int) -> NDArray[np.intp]:
    """Tabulate multiples: entry [i, a] holds the digits of x^i * a."""
    multiples = [digits]
    for _ in range(digits.shape[1] - 1):
        last = multiples[-1]
        shifted = np.roll(last, 1, axis=1)
        shifted[:, 0] = 0
        multiples.append((shifted - last[:, -1:] * np.array(modulus[:-1])) % prime)
    return np.stack(multiples)


def _prime_and_degree(number: int) -> tuple[int, int] | None:
    prime, degree = _smallest_factor(number), 0
    while number % prime == 0:
        number, degree = number // prime, degree + 1
    return (prime, degree) if number == 1 else None


def _smallest_factor(number: int) -> int:
    return next((f for f in range(2, int(number**0.5) + 1) if number % f == 0), number)


def _frozen(table: NDArray[np.intp]) -> NDArray[np.intp]:
    table.setflags(write=False)
    return table
