"""No changed row moves a score further than its sensitivity, and no score leaves its span."""

import numpy as np
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
