"""Bins joined from a grid: by hand, and of whatever can be counted."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.model.bin_edges import bin_starts, divided
from protocol.tables.domain import Variable
from protocol.tables.marginal import Table
from tests.support.effort import examples


@pytest.mark.parametrize(
    ("counts", "bins", "starts"),
    [
        ([8] * 8, 4, (0, 2, 4, 6)),  # evenly
        ([0, 0, 8, 8, 8, 8, 0, 0, 0], 4, (0, 2, 4, 6)),  # both ends alone, and two between them
        ([8, 8, 8, 8, 0, 0], 5, (0, 1, 2, 3, 4)),  # one end alone
        ([27_000, 8, 8, 8, 8, 8], 4, (0, 1, 3, 5)),  # a heap is a bin of its own: 30, then 2 of each
        ([0, 0, 0, 5, 0, 0, 0], 4, (0, 3, 4, 5)),  # fewer places with rows than bins
        ([0] * 6, 4, (0, 3, 4, 5)),  # nothing at all
        ([1_000_000, 0, 1], 3, (0, 1, 2)),
    ],
)
def test_a_division_by_hand(counts: list[int], bins: int, starts: tuple[int, ...]) -> None:
    assert divided(counts, bins) == starts


@settings(max_examples=examples(100), deadline=None)
@given(
    st.lists(st.one_of(st.just(0), st.integers(0, 9), st.integers(0, 10**9)), min_size=5, max_size=60),
    st.integers(4, 59),
)
def test_every_division_has_so_many_bins_with_something_of_the_grid_in_each(counts: list[int], bins: int) -> None:
    bins = min(bins, len(counts) - 1)
    starts = divided(counts, bins)
    assert (len(starts), starts[0]) == (bins, 0)
    assert all(
        before < after for before, after in zip((*starts, len(counts)), (*starts, len(counts))[1:], strict=False)
    )


@pytest.mark.parametrize("beginnings", [9, 10])
def test_no_bin_begins_where_none_may(beginnings: int) -> None:
    counts = np.array([5, 5, 0, 0, 0, 0, 0, 0, 100, 9000])
    starts = bin_starts(Table((0,), counts, 1e-6), Variable("x", 10, 0, ordered=10), 6, int(counts.sum()), beginnings)
    assert len(starts) == 6
    assert (starts[-1] == 9) == (beginnings == 10)


def test_bins_lie_where_rows_lie_although_noise_is_everywhere() -> None:
    """15,000 rows in a tenth of the range: nearly all edges lie there, in each of three draws of the noise."""
    data = np.random.default_rng(1)
    rows = np.bincount(np.clip(data.normal(90, 3, 15_000), 0, 149).astype(int), minlength=150)
    for _ in range(3):
        noisy = rows + np.rint(data.laplace(0, 15, 150)).astype(np.int64)
        grid = Table((0,), np.append(noisy, 40), 2 * 15.0**2)
        starts = bin_starts(grid, Variable("x", 151, 0, ordered=150), 12, 15_040, 150)
        assert sum(75 < start < 105 for start in starts) >= 9
