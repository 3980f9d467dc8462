"""The comb gives the same powers as powmod, whatever the shape of its tables."""

import gmpy2
import numpy as np
import pytest
from gmpy2 import mpz

from crypto.paillier.slot_powers import Base, SlotPowers, cheapest_group, cheapest_step

MODULUS = mpz(2) ** 127 - 1


@pytest.mark.parametrize("uses", [1, 10, 1000, 100_000])
@pytest.mark.parametrize(("step", "slots", "planes"), [(5, 1, 3), (7, 13, 4), (17, 26, 12)])
def test_powers_are_those_of_the_packed_exponent(uses: int, step: int, slots: int, planes: int) -> None:
    powers = SlotPowers(Base(mpz(3), MODULUS), step=step, slots=slots, planes=planes, uses=uses)
    digits = np.random.default_rng(uses).integers(0, 1 << planes, size=(3, slots))
    digits[1], digits[2] = 0, (1 << planes) - 1
    exponents = [sum(int(d) << (step * j) for j, d in enumerate(row)) for row in digits]
    assert powers.powers(digits) == [gmpy2.powmod(3, exponent, MODULUS) for exponent in exponents]


def test_powers_at_the_same_places_are_worked_out_once() -> None:
    base = Base(mpz(3), MODULUS)
    for step, slots in ((7, 13), (8, 13), (7, 5)):
        found = base.teeth(step, slots)
        assert found == [gmpy2.powmod(3, 1 << step * place, MODULUS) for place in range(slots)]
        assert base.teeth(step, slots) is found


def test_digit_beyond_the_ordinary_planes_is_still_right() -> None:
    powers = SlotPowers(Base(mpz(3), MODULUS), step=8, slots=2, planes=4, uses=5)
    assert powers.powers(np.array([[16, 1]])) == [gmpy2.powmod(3, 16 + 256, MODULUS)]


def test_tables_grow_with_their_use() -> None:
    sizes = [cheapest_group(116, 12, uses) for uses in (1, 100, 10_000, 1_000_000)]
    assert sizes == sorted(sizes)
    assert (sizes[0], sizes[-1]) == (3, 12)
    assert cheapest_step(2176, 10) > cheapest_step(2176, 10_000)
