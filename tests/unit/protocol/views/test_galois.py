import numpy as np
import pytest

from protocol.views.galois import field, irreducible, is_prime_power, lines, prime_powers_up_to

UP_TO_256 = prime_powers_up_to(256)


def test_prime_powers() -> None:
    assert prime_powers_up_to(32) == [2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27, 29, 31, 32]
    assert not any(map(is_prime_power, (-1, 0, 1, 6, 12, 100, 255)))
    assert len(UP_TO_256) == 54 + 16  # primes; 8 - 1 powers of 2, 4 of 3, 2 of 5, 1 each of 7, 11 and 13


def test_irreducible_polynomials_known_by_hand() -> None:
    assert irreducible(2, 2) == (1, 1, 1)  # x^2 + x + 1 is the only one
    assert irreducible(2, 3) == (1, 1, 0, 1)
    assert irreducible(3, 2) == (1, 0, 1)  # -1 is no square modulo 3
    assert irreducible(2, 8) == (1, 1, 0, 1, 1, 0, 0, 0, 1)  # the field of AES


def test_gf4_by_hand() -> None:
    gf = field(4)
    assert gf.add.tolist() == [[0, 1, 2, 3], [1, 0, 3, 2], [2, 3, 0, 1], [3, 2, 1, 0]]
    assert gf.multiply.tolist() == [[0, 0, 0, 0], [0, 1, 2, 3], [0, 2, 3, 1], [0, 3, 1, 2]]


def test_a_product_known_from_aes() -> None:
    assert field(256).multiply[0x57, 0x83] == 0xC1  # FIPS 197, section 4.2


@pytest.mark.parametrize("order", UP_TO_256)
def test_field_axioms(order: int) -> None:
    add, multiply = field(order).add, field(order).multiply
    every = np.arange(order)
    assert (add == add.T).all()
    assert (multiply == multiply.T).all()
    assert (add[0] == every).all()
    assert (multiply[1] == every).all()
    assert (np.sort(add, axis=1) == every).all()  # so every element has its opposite
    assert (np.sort(multiply[1:], axis=1) == every).all()  # and all but 0 an inverse
    for a in {1, 2 % order, order // 2, order - 1}:
        assert (add[add[a]] == add[a][add]).all()  # (a + b) + c = a + (b + c)
        assert (multiply[multiply[a]] == multiply[a][multiply]).all()
        assert (multiply[a][add] == add[multiply[a][:, None], multiply[a][None, :]]).all()


@pytest.mark.parametrize("order", [0, 1, 6, 12])
def test_no_field(order: int) -> None:
    with pytest.raises(ValueError, match="not a prime power"):
        field(order)


@pytest.mark.parametrize("order", [2, 3, 4, 5, 7, 8, 9, 16, 27])
def test_two_cells_of_different_rows_lie_on_one_line(order: int) -> None:
    columns = lines(order, order).reshape(order, -1)
    for row in range(1, order):
        pairs = columns[0] * order + columns[row]
        assert sorted(pairs) == list(range(order * order))
    assert len({tuple(line) for line in columns.T.tolist()}) == order * order


def test_more_rows_than_elements() -> None:
    with pytest.raises(ValueError, match="5 rows"):
        lines(4, 5)


def test_tables_are_shared_and_therefore_frozen() -> None:
    with pytest.raises(ValueError, match="read-only"):
        field(9).add[0, 0] = 1
