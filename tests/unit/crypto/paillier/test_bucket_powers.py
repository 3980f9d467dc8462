"""Products of powers with short exponents, beside powers one by one."""

from functools import reduce

import gmpy2
from gmpy2 import mpz
from hypothesis import given
from hypothesis import strategies as st

from crypto.paillier.bucket_powers import product_of_powers

MODULUS = mpz(2**127 - 1)
POWERS = st.lists(st.tuples(st.integers(0, 2**130), st.integers(0, 2**40)), max_size=60)


@given(POWERS)
def test_a_product_is_that_of_powers_one_by_one(powers: list[tuple[int, int]]) -> None:
    expected = reduce(lambda product, one: product * gmpy2.powmod(*one, MODULUS) % MODULUS, powers, mpz(1))
    bases, exponents = [mpz(base) for base, _ in powers], [exponent for _, exponent in powers]
    assert product_of_powers(bases, exponents, MODULUS) == expected
