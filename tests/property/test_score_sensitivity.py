"""No changed row moves a score further than its sensitivity, and no score leaves its span."""

from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.picks.scores import SCORES, scoring
from protocol.tables.domain import Domain
from tests.support.effort import examples


@st.composite
def neighbours(draw):
    """A small table and every table that differs in one row, all of one shape."""
    child, parents = draw(st.integers(2, 4)), draw(st.integers(1, 8))
    cells = child * parents
    filled = st.lists(st.sampled_from([0, 0, 1, 1, 2, 5, 30]), min_size=cells, max_size=cells)
    counts = np.array(draw(filled.filter(any)), dtype=np.int64)
    changed = []
    for source in np.flatnonzero(counts):
        for target in range(cells):
            other = counts.copy()
            other[source] -= 1
            other[target] += 1
            changed.append(other)
    return np.stack([counts, *changed]).reshape(-1, child, parents)


@settings(deadline=None, max_examples=examples(150))
@given(neighbours())
def test_one_row_moves_no_score_further_than_its_sensitivity(tables):
    binary = tables.shape[1] == 2
    domain = Domain.of_sizes([2, 2] if binary else [3, 3])
    for name in (score.name for score in SCORES.values() if binary or not score.needs_bits):
        rule = scoring(name, int(tables[0].sum()), domain)
        scores = rule.scores(tables)
        assert np.abs(scores - scores[0]).max() <= rule.sensitivity
        assert scores.max() - scores.min() <= rule.span(tables.shape[1])


@pytest.mark.parametrize(("child", "parents", "rows"), [(2, 2, 7), (2, 3, 5), (3, 2, 5), (3, 3, 3), (2, 2, 1)])
def test_no_neighbour_of_any_small_table_moves_a_score_further_than_its_sensitivity(child, parents, rows):
    """All tables of so many rows, and every pair of them that differs in one row."""
    cells = child * parents
    filled = [np.bincount(one, minlength=cells) for one in combinations_with_replacement(range(cells), rows)]
    tables = np.array(filled, dtype=np.int64)
    one, other = np.nonzero(np.abs(tables[:, np.newaxis] - tables).sum(axis=2) == 2)
    domain = Domain.of_sizes([2, 2] if cells == 4 else [3, 3])
    for name in (score.name for score in SCORES.values() if cells == 4 or not score.needs_bits):
        rule = scoring(name, rows, domain)
        scores = rule.scores(tables.reshape(-1, child, parents))
        assert np.abs(scores[one] - scores[other]).max() <= rule.sensitivity
        assert scores.max() - scores.min() <= rule.span(child)
