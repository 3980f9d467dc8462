"""Integers below a bound and permutations are uniform. False-alarm rate 1e-6 per test, by exact binomials."""

from collections import Counter
from itertools import permutations

import pytest

from crypto.randomness import Stream
from tests.statistical.goodness import FALSE_ALARM, binomial_p_value

DRAWS = 60_000


def surprises(counts: Counter, cells: list) -> list:
    return [cell for cell in cells if binomial_p_value(counts[cell], DRAWS, 1 / len(cells)) < FALSE_ALARM / len(cells)]


@pytest.mark.parametrize("bound", [2, 3, 5, 129, 257])
def test_below_is_uniform(bound: int) -> None:
    stream = Stream.system()
    counts = Counter(stream.below(bound) for _ in range(DRAWS))
    assert surprises(counts, list(range(bound))) == []


def test_a_modulo_would_be_noticed() -> None:
    stream = Stream.system()
    counts = Counter(stream.bits(8) % 129 for _ in range(DRAWS))
    assert surprises(counts, list(range(129)))


def test_permutations_are_uniform() -> None:
    stream = Stream.system()
    counts = Counter(tuple(stream.permutation(4)) for _ in range(DRAWS))
    assert surprises(counts, list(permutations(range(4)))) == []
