"""Rows in the order of situation and word: the same order as one sort of the packed numbers gives."""

import numpy as np
import pytest

from crypto.randomness import Stream
from protocol.model.row_order import in_order, random_order, row_of


@pytest.mark.parametrize("rows", [0, 1, 2, 1000, 1 << 16, (1 << 16) + 1, 200_000])
@pytest.mark.parametrize("situations", [1, 7, 3000])
@pytest.mark.parametrize("word_bits", [32, 31, 9])
def test_rows_are_in_the_order_of_one_sort(rows, situations, word_bits):
    stream = Stream.keyed(b"rows")
    situation = (stream.words32(rows) % situations) ** 2 // situations  # small ones have most rows
    words = stream.words32(rows)
    packed = in_order(situation, np.bincount(situation, minlength=situations), words, word_bits)
    expected = np.lexsort([np.arange(rows), words >> (32 - word_bits), situation])
    bits = rows.bit_length()
    assert (packed >> bits == (situation.astype(np.uint64) << word_bits | words >> (32 - word_bits))[expected]).all()
    assert (row_of(packed) == expected).all()


def test_equal_words_leave_the_order_to_the_rows():
    situation, words = np.array([1, 0, 1, 0]), np.full(4, 2**32 - 1, np.uint32)
    assert row_of(in_order(situation, np.array([2, 2]), words, 32)).tolist() == [1, 3, 0, 2]


@pytest.mark.parametrize("rows", [0, 1, 2, 70_000])
def test_a_random_order_is_that_of_a_word_for_each_row(rows):
    words = Stream.keyed(b"order").words64(rows)
    assert (random_order(rows, Stream.keyed(b"order")) == np.argsort(words, kind="stable")).all()
