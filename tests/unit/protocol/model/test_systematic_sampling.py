"""Drawing: rows follow the model, and a batch strays from it by rounding alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crypto.randomness import Stream
from protocol.model.estimation import GraphicalModel
from protocol.model.junction_tree import JunctionTree
from protocol.model.systematic_sampling import cumulative_shares, draw_rows, systematic

SIZES = (3, 2, 4)


def chain_model():
    tree = JunctionTree.of(SIZES, [(0, 1), (1, 2)])
    random = np.random.default_rng(3)
    return GraphicalModel(tree, tuple(tree.marginals([random.normal(size=tree.shape(c)) for c in tree.cliques])[0]))


def drawn(rows, batch=1 << 16):
    batches = draw_rows(chain_model(), rows, Stream.keyed(b"rows"), batch)
    return [np.concatenate(column) for column in zip(*batches, strict=True)]


def test_pairs_of_the_model_come_out_within_rounding():
    model, rows = chain_model(), 60_000
    columns = drawn(rows)
    for pair in ((0, 1), (1, 2)):
        counts = np.zeros([SIZES[v] for v in pair])
        np.add.at(counts, tuple(columns[v] for v in pair), 1)
        assert np.abs(counts - rows * model.shares(pair)).max() <= 6


def test_what_the_model_leaves_independent_stays_so():
    rows = 60_000
    columns, model = drawn(rows), chain_model()
    given_middle = model.shares((0, 1)).T[:, :, None] * model.shares((1, 2))[:, None, :]
    expected = given_middle / model.shares((1,))[:, None, None]
    counts = np.zeros((2, 3, 4))
    np.add.at(counts, (columns[1], columns[0], columns[2]), 1)
    # Independent draws would stray by the square root of the expected count; six times that is 1e-9 likely.
    assert (np.abs(counts - rows * expected) < 6 * np.sqrt(rows * expected) + 6).all()


@pytest.mark.parametrize(("rows", "batch"), [(1, 10), (25, 10), (1000, 64)])
def test_any_number_of_rows_in_any_batches(rows, batch):
    columns = drawn(rows, batch)
    assert [len(column) for column in columns] == [rows] * 3
    assert all(column.min() >= 0 and column.max() < size for column, size in zip(columns, SIZES, strict=True))


@given(st.integers(1, 40), st.integers(1, 12), st.sampled_from([1, 5, 300, 3000]), st.booleans(), st.integers(0, 2**32))
@settings(deadline=None, max_examples=100)
def test_codes_are_those_of_one_look_up_per_row(situations, codes, rows, coarse, seed):
    """Parties of all versions must draw the same reference rows, bit for bit."""
    random = np.random.default_rng(seed)
    weights = random.integers(0, 3, (situations, codes)) if coarse else random.random((situations, codes)) ** 9
    cumulative, situation = cumulative_shares(weights.astype(float)), random.integers(0, situations, rows)
    found = systematic(cumulative, situation, Stream.keyed(b"%d" % seed))
    stream = Stream.keyed(b"%d" % seed)
    words, starts = stream.words32(rows).astype(object), stream.words32(situations) / 2.0**32
    bits = min(32, 64 - rows.bit_length() - situations.bit_length())
    for s in range(situations):
        here = sorted(np.flatnonzero(situation == s).tolist(), key=lambda row: (words[row] >> (32 - bits), row))
        last = int((cumulative[s] < 1).sum())
        for k, row in enumerate(here):
            place = min(s + (k + starts[s]) / len(here), np.nextafter(s + 1.0, 0.0))
            assert found[row] == min(int(np.searchsorted(cumulative[s] + s, place, side="right")), last)


@given(st.lists(st.floats(0, 10), min_size=2, max_size=6), st.integers(1, 200), st.integers(0, 2**32))
@settings(deadline=None, max_examples=150)
def test_every_code_gets_its_share_up_to_one_and_an_impossible_one_none(weights, rows, seed):
    cumulative = cumulative_shares(np.array([weights]))
    codes = systematic(cumulative, np.zeros(rows, dtype=np.intp), Stream.keyed(b"%d" % seed))
    counts = np.bincount(codes, minlength=len(weights))
    shares = np.diff(cumulative[0], prepend=0)
    assert (np.abs(counts - rows * shares) <= 1 + 1e-6).all()
    assert not counts[shares == 0].any()
