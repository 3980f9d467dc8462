"""Packing by hand-computed numbers, its widths, and what it refuses."""

import numpy as np
import pytest
from gmpy2 import mpz

from crypto.errors import BrokenSum, NoiseOutOfReach
from crypto.paillier.packing import Packing


def test_plaintext_is_the_sum_of_shifted_values() -> None:
    packing = Packing(key_bits=96, slot_bits=10)  # 31 bits below the guard: three slots
    assert packing.slots == 3
    assert packing.pack(np.array([1, -2, 3, 5, -512])) == [1 - 2 * 1024 + 3 * 1024**2, 5 - 512 * 1024]
    assert packing.unpack([mpz(1 - 2 * 1024 + 3 * 1024**2), mpz(5 - 512 * 1024)], 5).tolist() == [1, -2, 3, 5, -512]


@pytest.mark.parametrize(
    ("total", "noise", "bits"),
    [(1, 0, 2), (1, 1, 3), (3, 0, 3), (2, 2, 4), (45_222, 4096, 17), (65_535, 0, 17), (65_535, 1, 18)],
)
def test_width_holds_the_bound_and_not_a_bit_more(total: int, noise: int, bits: int) -> None:
    packing = Packing.fit(2048, total, noise)
    assert packing.slot_bits == bits
    bound = total + noise
    assert 1 << (bits - 2) <= bound < 1 << (bits - 1)
    values = np.array([bound, -bound], dtype=np.int64)
    assert packing.unpack(packing.pack(values), 2).tolist() == [bound, -bound]


def test_64_bits_of_the_key_stay_free() -> None:
    packing = Packing.fit(2048, 45_222, 4096)
    assert packing.slots == 116
    assert packing.slots * packing.slot_bits + 64 + 1 <= 2048
    assert packing.ciphertexts(20_000) == 173


def test_nothing_packs_to_nothing() -> None:
    packing = Packing(512, 10)
    assert packing.pack(np.zeros(0, dtype=np.int64)) == []
    assert packing.unpack([], 0).tolist() == []


@pytest.mark.parametrize(("key_bits", "slot_bits"), [(2048, 1), (2048, 63), (126, 62), (64, 2)])
def test_impossible_slots_are_refused(key_bits: int, slot_bits: int) -> None:
    with pytest.raises(NoiseOutOfReach, match=f"slots of {slot_bits} bits"):
        Packing(key_bits, slot_bits)


@pytest.mark.parametrize("value", [512, -513])
def test_value_that_does_not_fit_a_slot_is_refused(value: int) -> None:
    with pytest.raises(BrokenSum, match="slot of 10 bits"):
        Packing(512, 10).pack(np.array([0, value]))


def test_sum_that_leaves_the_slots_is_refused() -> None:
    packing = Packing(96, 10)
    top = packing.pack(np.array([0, 0, 511]))[0]
    for plaintext in (top + 1024**2, -top - 2 * 1024**2, mpz(1) << 40):
        with pytest.raises(BrokenSum, match="guard bits"):
            packing.unpack([plaintext], 3)


def test_sum_with_values_in_unused_slots_is_refused() -> None:
    packing = Packing(96, 10)
    with pytest.raises(BrokenSum, match="behind the last value"):
        packing.unpack(packing.pack(np.array([1, 2, 3])), 2)


@pytest.mark.parametrize("plaintexts", [[], [mpz(0), mpz(0)]])
def test_wrong_number_of_plaintexts_is_refused(plaintexts: list[mpz]) -> None:
    with pytest.raises(BrokenSum, match="for 3 values, which take 1"):
        Packing(96, 10).unpack(plaintexts, 3)
