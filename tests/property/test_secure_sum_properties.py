"""Whatever the values, the parties and the kept noises: the fast path, the reference and plain addition agree."""

import numpy as np
import pytest
from gmpy2 import mpz
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from crypto.errors import BrokenSum
from crypto.masking import hide, mask_residues, mask_words, pair_key, reveal
from crypto.paillier.indicator import check_indicator, hidden_permutation, make_indicator
from crypto.paillier.packing import Packing
from crypto.paillier.public import ciphertexts_from_bytes, ciphertexts_to_bytes, multiply
from crypto.paillier_secret import SecretKey
from crypto.randomness import Stream
from tests.reference import one_ciphertext_per_cell as percell
from tests.support.blinders import blinder_of
from tests.support.effort import examples

NOISE = 64
CONTEXT = b"a plan, its run and its shares"


def pair_keys(parties: int, context: bytes) -> list[dict[int, bytes]]:
    def key(one: int, other: int) -> bytes:
        return pair_key(bytes([min(one, other), max(one, other)]), context)

    return [{peer: key(me, peer) for peer in range(parties) if peer != me} for me in range(parties)]


@st.composite
def sums(draw: st.DrawFn) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Values and noise of 2 to 6 parties, and the number of noises kept."""
    parties, cells = draw(st.integers(2, 6)), draw(st.integers(1, 70))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    values = rng.integers(0, draw(st.integers(1, 2**30)), size=(parties, cells))
    return values, rng.integers(-NOISE, NOISE + 1, size=(parties, cells)), draw(st.integers(1, parties))


@settings(deadline=None, max_examples=examples(25))
@given(sums())
def test_secure_sum_is_the_sum_and_the_selected_noise(
    small_secret: SecretKey, case: tuple[NDArray[np.int64], NDArray[np.int64], int]
) -> None:
    values, noise, shares = case
    parties, cells = values.shape
    key, stream = small_secret.public, Stream.system()
    packing = Packing.fit(key.bits, int(values.sum(axis=0).max()), shares * NOISE)
    indicator = make_indicator(key, parties, shares, stream, CONTEXT)
    check_indicator(key, indicator, shares, CONTEXT)
    places, pairs = hidden_permutation(stream.take(32), parties), pair_keys(parties, indicator.digest(key))
    count = packing.ciphertexts(cells)
    received = []
    for me in range(parties):
        blinder = blinder_of(key, indicator.ciphertexts[places[me]], packing, NOISE, count, stream)
        masks = mask_residues(pairs[me], me, count, key.n)
        sent = blinder.contribution(values[me], blinder.blind(noise[me]), masks)
        received.append(ciphertexts_from_bytes(key, ciphertexts_to_bytes(key, sent), count))
    total = packing.unpack(small_secret.decrypt(multiply(key, received)), cells)
    bits = small_secret.decrypt(indicator.ciphertexts)
    kept = np.array([int(bits[place]) for place in places])
    assert kept.sum() == shares
    assert np.array_equal(total, values.sum(axis=0) + kept @ noise)


@settings(deadline=None, max_examples=examples(10))
@given(sums())
def test_fast_path_equals_the_reference(
    small_secret: SecretKey, case: tuple[NDArray[np.int64], NDArray[np.int64], int]
) -> None:
    values, noise = (array[:3, :12] for array in case[:2])
    parties, cells = values.shape
    key, stream = small_secret.public, Stream.system()
    shares = min(case[2], parties)
    indicator = make_indicator(key, parties, shares, stream, CONTEXT)
    pairs = pair_keys(parties, b"reference")
    packing = Packing.fit(key.bits, int(values.sum(axis=0).max()), shares * NOISE)
    fast, reference = [], []
    for me, bit in enumerate(indicator.ciphertexts):
        blinder = blinder_of(key, bit, packing, NOISE, 1, stream)
        masks = mask_residues(pairs[me], me, packing.ciphertexts(cells), key.n)
        fast.append(blinder.contribution(values[me], blinder.blind(noise[me]), masks))
        masks = mask_residues(pairs[me], me, cells, key.n)
        reference.append(percell.contribution(key, bit, values[me], noise[me], masks, stream))
    slow = [int(cell) for cell in small_secret.decrypt(percell.multiply(key, reference))]
    assert packing.unpack(small_secret.decrypt(multiply(key, fast)), cells).tolist() == slow


@settings(deadline=None, max_examples=examples(100))
@given(st.integers(2, 62), st.integers(0, 40), st.integers(200, 700), st.integers(0, 2**32))
def test_packing_is_inverse_additive_and_holds_its_bounds(slot_bits: int, cells: int, key_bits: int, seed: int) -> None:
    packing = Packing(key_bits, slot_bits)
    half = 1 << (slot_bits - 1)
    one = np.random.default_rng(seed).integers(-half, half, size=cells)
    one[:2] = [-half, half - 1][: len(one[:2])]
    other = np.random.default_rng(seed + 1).integers(-half - np.minimum(one, 0), half - np.maximum(one, 0))
    assert np.array_equal(packing.unpack(packing.pack(one), cells), one)
    total = [left + right for left, right in zip(packing.pack(one), packing.pack(other), strict=True)]
    assert np.array_equal(packing.unpack(total, cells), one + other)


@settings(deadline=None, max_examples=examples(50))
@given(st.integers(0, 2**40), st.integers(0, 2**20))
def test_fit_holds_its_bound(total: int, noise: int) -> None:
    packing = Packing.fit(512, total + 1, noise)
    extremes = np.array([total + 1 + noise, -total - 1 - noise])
    assert np.array_equal(packing.unpack(packing.pack(extremes), 2), extremes)


@settings(deadline=None, max_examples=examples(50))
@given(st.integers(2, 62), st.sampled_from([1, -1]))
def test_overflow_by_one_is_seen_in_the_last_slot_and_wraps_in_others(slot_bits: int, sign: int) -> None:
    packing = Packing(400, slot_bits)
    half = 1 << (slot_bits - 1)
    edge, beyond = (half - 1, -half) if sign > 0 else (-half, half - 1)
    for slot in range(packing.slots):
        values = np.zeros(packing.slots, dtype=np.int64)
        values[slot] = edge
        plaintext = packing.pack(values)[0] + sign * (mpz(1) << (slot * slot_bits))
        if slot == packing.slots - 1:
            with pytest.raises(BrokenSum):
                packing.unpack([plaintext], packing.slots)
        else:
            read = packing.unpack([plaintext], packing.slots)
            assert (read[slot], read[slot + 1]) == (beyond, sign)


@settings(deadline=None, max_examples=examples(50))
@given(st.integers(2, 6), st.integers(0, 50), st.integers(0, 2**32))
def test_plain_masked_sum_is_the_sum(parties: int, cells: int, seed: int) -> None:
    values = np.random.default_rng(seed).integers(-(2**40), 2**40, size=(parties, cells))
    pairs = pair_keys(parties, seed.to_bytes(5, "big"))
    hidden = [hide(values[me], mask_words(pairs[me], me, cells)) for me in range(parties)]
    assert np.array_equal(reveal(hidden, parties * 2**40), values.sum(axis=0))
