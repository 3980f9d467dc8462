"""Division of rows among made-up parties: sizes, order, and how much parties differ."""

import numpy as np
import pytest

from crypto.randomness import Stream
from curator.experiments.partition import Division
from protocol.errors import PlanError
from tests.support.small_runs import MIXED

ROWS = 900
CODES = [np.random.default_rng(5).integers(0, size, ROWS) for size in MIXED.sizes]
AGE = MIXED.names.index("age")


def divided(text: str, parties: int = 3, seed: bytes = b"x") -> np.ndarray:
    found = Division.parse(text).apply(MIXED, CODES, [], parties, Stream.keyed(seed))
    assert len(found.names) == parties == len(set(found.owner.tolist()))
    return found.owner


def sizes(owner: np.ndarray) -> list[int]:
    return np.bincount(owner).tolist()


def test_parts_are_equal_or_as_they_are_wished():
    assert sizes(divided("random")) == sizes(divided("sorted:age")) == [300, 300, 300]
    assert sizes(divided("largest:0.8")) == sizes(divided("sorted:age,largest:0.8")) == [720, 90, 90]


@pytest.mark.parametrize("text", ["sorted:age", "sorted:age,largest:0.8"])
def test_sorted_rows_rise_from_party_to_party(text):
    owner = divided(text)
    highest = [CODES[AGE][owner == party].max() for party in range(3)]
    lowest = [CODES[AGE][owner == party].min() for party in range(3)]
    assert all(high <= low for high, low in zip(highest, lowest[1:], strict=False))


def spread(owner: np.ndarray, parties: int) -> float:
    """Mean over values of the largest share that one party holds of it."""
    return float(np.mean([np.bincount(owner[CODES[AGE] == v], minlength=parties).max() / np.sum(CODES[AGE] == v)
                          for v in np.unique(CODES[AGE])]))  # fmt: skip


def test_the_smaller_beta_the_less_parties_are_alike():
    found = [np.mean([spread(divided(f"dirichlet:age:{beta}", 5, bytes([s])), 5) for s in range(20)]) for beta in
             ("100", "0.5", "0.1")]  # fmt: skip
    assert found[0] < 0.3 < found[1] < found[2]
    assert found[2] > 0.7


def test_nobody_is_left_without_rows():
    for seed in range(30):
        assert min(sizes(divided("dirichlet:ill:0.01", 20, bytes([seed])))) >= 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("random,sorted:age", "expected random"),
        ("largest:0.8,sorted:age", "expected random"),
        ("sorted:", "expected random"),
        ("sorted:height", "divides by 'height'"),
        ("dirichlet:age", "divides by ''"),
        ("dirichlet:age:much", "expected an exact number"),
        ("dirichlet:age:0", "expected 0.01"),
        ("largest:1", "leaves a party without rows"),
    ],
)
def test_what_divides_nothing_is_refused(text, words):
    with pytest.raises(PlanError, match=words):
        divided(text)


def test_the_shares_have_the_mean_and_spread_of_a_dirichlet_distribution():
    """Four parties, beta 1/2: a share has mean 1/4 and variance 1/16; over 400 draws, five standard errors."""
    held = [np.mean(divided("dirichlet:ill:0.5", 4, seed.to_bytes(2))[CODES[-1] == 0] == 0) for seed in range(400)]
    assert np.mean(held) == pytest.approx(1 / 4, abs=5 * 0.25 / 20)
    assert np.var(held) == pytest.approx(1 / 16, rel=0.35)
