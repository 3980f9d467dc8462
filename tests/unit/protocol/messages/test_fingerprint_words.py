"""Fingerprints in words: which words there are, and what counts as the same."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crypto.signing import fingerprint
from protocol.messages.fingerprint_words import BITS, COUNT, WORDS, fits, spoken

PRINTS = st.binary(max_size=40).map(fingerprint)


def distance(one: str, other: str) -> int:
    """How many letters have to be changed, put in or left out."""
    row = list(range(len(other) + 1))
    for i, left in enumerate(one, 1):
        before, row[0] = row[0], i
        for j, right in enumerate(other, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (left != right))
    return row[-1]


def test_there_is_a_word_for_every_byte_and_none_sounds_like_another() -> None:
    assert len(WORDS) == len(set(WORDS)) == 256
    assert all(word.isascii() and word.isalpha() and word.islower() and 3 <= len(word) <= 8 for word in WORDS)
    assert len({word[:4] for word in WORDS}) == 256
    assert all(distance(one, other) >= 2 for one, other in combinations(WORDS, 2))
    assert list(WORDS) == sorted(WORDS)  # one order for ever: the words said yesterday hold today


def test_the_words_of_a_fingerprint_are_what_they_were() -> None:
    assert spoken("0001 0203 0405 0607 0809 0aff fefd fcfb") == (
        "acid actor adult album amber angle apple april arena armor atlas zoo"
    )
    assert BITS >= 80


@given(PRINTS, PRINTS)
def test_words_fit_their_fingerprint_and_no_other(one: str, other: str) -> None:
    words = spoken(one)
    assert len(words.split()) == COUNT
    assert fits(words, one)
    assert fits(f" {words.upper().replace(' ', ',  ')}", one)
    assert fits(one, one)
    assert fits(one.upper().replace(" ", ""), one)
    assert fits(words, other) == fits(one, other) == (one == other)


@pytest.mark.parametrize(
    "told", ["", "zoo", "0000", " ".join(["acid"] * 11), " ".join(["acid"] * 13), "acid " * 11 + "x"]
)
def test_less_more_or_other_does_not_fit(told: str) -> None:
    assert not fits(told, "0000 0000 0000 0000 0000 0000 0000 0000")


@given(PRINTS, st.integers(0, COUNT - 1), st.sampled_from(WORDS))
def test_one_wrong_word_is_noticed(one: str, place: int, word: str) -> None:
    words = spoken(one).split()
    assert fits(" ".join([*words[:place], word, *words[place + 1 :]]), one) == (word == words[place])
