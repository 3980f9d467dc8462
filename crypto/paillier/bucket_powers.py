"""The product of many numbers, each raised to a short exponent of its own, with few multiplications.

It does not know what the numbers are. Nothing here is secret: the time depends on the exponents.

The method is Pippenger's. The exponents are written in digits. For every place, numbers with the same digit are
multiplied into one bucket, and running products over the buckets raise each of them to its digit.
"""

from collections import Counter
from collections.abc import Sequence

from gmpy2 import mpz

_WIDEST_DIGIT = 16  # bits


def product_of_powers(bases: Sequence[mpz], exponents: Sequence[int], modulus: mpz) -> mpz:
    """Compute the product of every base to its exponent, modulo a number."""
    lengths = Counter(exponent.bit_length() for exponent in exponents)
    longest = max(lengths, default=0)

    def multiplications(bits: int) -> int:
        return sum(-(-length // bits) * count for length, count in lengths.items()) + -(-longest // bits) * (2 << bits)

    digit = min(range(1, _WIDEST_DIGIT + 1), key=multiplications)
    product = mpz(1)
    for start in reversed(range(0, longest, digit)):
        for _ in range(digit):
            product = product * product % modulus
        product = product * _place(bases, exponents, start, digit, modulus) % modulus
    return product


def _place(bases: Sequence[mpz], exponents: Sequence[int], start: int, digit: int, modulus: mpz) -> mpz:
    """The product of every base to the digit of its exponent that begins at bit `start`."""
    buckets: list[mpz] = [mpz(1)] * (1 << digit)
    for base, exponent in zip(bases, exponents, strict=True):
        if number := exponent >> start & ((1 << digit) - 1):
            buckets[number] = buckets[number] * base % modulus
    running, product = mpz(1), mpz(1)
    for bucket in reversed(buckets[1:]):
        running = running * bucket % modulus
        product = product * running % modulus
    return product
