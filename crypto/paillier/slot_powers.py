"""Powers of one base at packed exponents: base^P(y) for many vectors y of small digits, computed from tables.

It does not know whether the digits are noise (in `E^P(eta)`) or the uniform exponent of a re-randomiser.

The method is the comb of Lim and Lee. The digits lie `step` bits apart, and bit p of all digits makes one plane. A
table per group of digits holds the product for every pattern of the group's bits. A plane therefore costs one squaring
and one multiplication per group.
"""

import gmpy2
import numpy as np
from gmpy2 import mpz
from numpy.typing import NDArray

_LARGEST_GROUP = 12  # tables of 4096 numbers


class Base:
    """A number and its powers at the places of digits, which all tables for the same places share."""

    def __init__(self, number: mpz, modulus: mpz) -> None:
        self.number, self.modulus = number % modulus, modulus
        self._teeth: dict[tuple[int, int], list[mpz]] = {}

    def teeth(self, step: int, slots: int) -> list[mpz]:
        """Return number^(2^(step j)) for every slot j."""
        if (step, slots) not in self._teeth:
            found = [self.number]
            while len(found) < slots:
                found.append(gmpy2.powmod(found[-1], 1 << step, self.modulus))
            self._teeth[step, slots] = found
        return self._teeth[step, slots]


class SlotPowers:
    """Tables for digits of `planes` bits in `slots` places, `step` bits apart, sized for about `uses` powers."""

    def __init__(self, base: Base, *, step: int, slots: int, planes: int, uses: int) -> None:
        self._modulus = base.modulus
        self._planes = planes
        group = cheapest_group(slots, planes, uses)
        teeth = base.teeth(step, slots)
        self._tables = [_products(teeth[start : start + group], self._modulus) for start in range(0, slots, group)]
        self._weights = np.int64(1) << np.arange(group)
        self._padding = len(self._tables) * group - slots

    def powers(self, digits: NDArray[np.int64]) -> list[mpz]:
        """Compute one power for every row of `digits`, which are non-negative and below 2^step."""
        return [self._power(row) for row in digits]

    def _power(self, row: NDArray[np.int64]) -> mpz:
        # Timing: all digits below 2^planes take the same operations. A larger digit gives a correct power but takes
        # longer. The places read in the tables depend on the digits; other programs on this machine may detect that.
        modulus, tables, power = self._modulus, self._tables, mpz(1)
        for plane in self._patterns(row):
            power = power * power % modulus
            for table, pattern in zip(tables, plane, strict=True):
                power = power * table[pattern] % modulus
        return power

    def _patterns(self, row: NDArray[np.int64]) -> list[list[int]]:
        """The bit pattern of every group, for every plane from the highest down."""
        planes = np.arange(max(self._planes, int(row.max()).bit_length()) - 1, -1, -1)
        bits = (np.pad(row, (0, self._padding)) >> planes[:, None]) & 1
        patterns: list[list[int]] = (bits.reshape(len(planes), len(self._tables), -1) @ self._weights).tolist()
        return patterns


def cheapest_group(slots: int, planes: int, uses: int) -> int:
    return min(range(1, _LARGEST_GROUP + 1), key=lambda group: _multiplications(slots, planes, uses, group))


def cheapest_step(exponent_bits: int, uses: int) -> int:
    """The width in bits of a uniform exponent's digits that takes fewest multiplications."""

    def cost(step: int) -> int:
        slots = -(-exponent_bits // step)
        return min(_multiplications(slots, step, uses, group) for group in range(1, _LARGEST_GROUP + 1))

    return min(range(4, 63), key=cost)


def _multiplications(slots: int, planes: int, uses: int, group: int) -> int:
    full, rest = divmod(slots, group)
    tables = (full << group) + (1 << rest if rest else 0)
    return tables + uses * planes * (full + bool(rest) + 1)


def _products(teeth: list[mpz], modulus: mpz) -> list[mpz]:
    """The product of every subset of `teeth`; bit i of a product's index says whether the subset has tooth i."""
    products = [mpz(1)]
    for tooth in teeth:
        products += [product * tooth % modulus for product in products]
    return products
