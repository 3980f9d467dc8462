"""Answers of a clique are plain sums, however the clique is divided, and spreading is their transpose."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.model import clique_answers as module
from protocol.model.clique_answers import clique_answers

SIZES = (2, 3, 1, 4, 2, 5)
CLIQUE = (4, 1, 5, 0, 2)  # in any order
SETS = st.sets(st.sampled_from(CLIQUE), max_size=3).map(lambda found: tuple(sorted(found)))
TABLES = st.lists(SETS, min_size=1, max_size=6, unique=True)


def summed(shares, table):
    kept = np.einsum(shares, CLIQUE, list(table))
    return np.asarray(kept).ravel()


# As one product, by sums and small products, and by sums alone.
@pytest.mark.parametrize(("largest_side", "sum_"), [(1 << 18, 8), (1 << 18, 0), (0, 8)])
@given(tables=TABLES, seed=st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=60)
def test_answers_are_sums_and_spreading_is_their_transpose(largest_side, sum_, tables, seed):
    random = np.random.default_rng(seed)
    shares = random.random([SIZES[v] for v in CLIQUE])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "LARGEST_SIDE", largest_side)
        patch.setattr(module, "SUM", sum_)
        patch.setattr(module, "ALWAYS_A_PRODUCT", 0)
        asked = clique_answers(SIZES, CLIQUE, tables)
    answers = asked.answers(shares)
    assert answers == pytest.approx(np.concatenate([summed(shares, table) for table in tables]))
    weights = random.normal(size=answers.size)
    assert asked.spread(weights) @ shares.ravel() == pytest.approx(weights @ answers)


def test_a_variable_with_many_codes_needs_no_square_of_them():
    sizes, tables = (20_000, 2, 2), [(0, 1), (0, 2), (1, 2), (0,)]
    asked = clique_answers(sizes, (0, 1, 2), tables)
    assert not hasattr(asked, "left")
    shares = np.ones(sizes)
    assert asked.answers(shares).tolist() == [2.0] * 80_000 + [20_000.0] * 4 + [4.0] * 20_000
