"""Masks: they cancel, they depend on everything they should, and a broken sum is noticed."""

import numpy as np
import pytest
from gmpy2 import mpz

from crypto.errors import BrokenSum
from crypto.masking import hide, mask_residues, mask_words, pair_key, reveal

N = mpz(2) ** 521 - 1


def pairs(parties: int, context: bytes = b"run, step") -> list[dict[int, bytes]]:
    def key(one: int, other: int) -> bytes:
        return pair_key(bytes([min(one, other), max(one, other)]) * 16, context)

    return [{peer: key(me, peer) for peer in range(parties) if peer != me} for me in range(parties)]


@pytest.mark.parametrize("parties", [2, 3, 7])
def test_masks_cancel(parties: int) -> None:
    keys = pairs(parties)
    words = [mask_words(keys[me], me, 5) for me in range(parties)]
    assert reveal(words, 0).tolist() == [0] * 5
    residues = [mask_residues(keys[me], me, 4, N) for me in range(parties)]
    assert [sum(column) % N for column in zip(*residues, strict=True)] == [0] * 4
    assert all(0 <= residue < N for mask in residues for residue in mask)


def test_masks_differ_by_pair_context_and_kind() -> None:
    keys, other_step = pairs(3), pairs(3, b"run, next step")
    assert len({*keys[0].values(), *keys[1].values(), *keys[2].values(), *other_step[0].values()}) == 5
    assert int(mask_words({1: keys[0][1]}, 0, 1)[0]) != int(mask_residues({1: keys[0][1]}, 0, 1, N)[0] % 2**64)


def test_a_party_has_no_mask_with_itself() -> None:
    with pytest.raises(ValueError, match="party 1"):
        mask_words({1: bytes(32)}, 1, 3)


def test_hidden_values_are_revealed_together_only() -> None:
    keys = pairs(3)
    values = np.array([[5, -7, 0], [1, 1, 1], [-9, 2, 3]])
    hidden = [hide(values[me], mask_words(keys[me], me, 3)) for me in range(3)]
    assert reveal(hidden, 9).tolist() == [-3, -4, 4]
    with pytest.raises(BrokenSum, match="out of bounds"):
        reveal(hidden[:2], 1000)
    with pytest.raises(BrokenSum, match="out of bounds"):
        reveal(hidden, 3)


def test_contributions_of_unequal_length_are_refused() -> None:
    with pytest.raises(BrokenSum, match=r"\[2, 3\]"):
        reveal([np.zeros(2, dtype=np.uint64), np.zeros(3, dtype=np.uint64)], 5)


def test_empty_sum() -> None:
    assert reveal([np.zeros(0, dtype=np.uint64)], 5).tolist() == []
