"""Covers of any variables, whatever is asked of them."""

from collections import Counter
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.views.cover import SMALLEST_SHARE, cover, direct_pairs, table_weights
from tests.support.effort import examples

SIZES = st.lists(st.integers(1, 30), min_size=2, max_size=28)


@settings(deadline=None, max_examples=examples(60))
@given(
    SIZES,
    st.sampled_from(["expected-error", "paper"]),
    st.sampled_from(["equal", "cube-root"]),
    st.booleans(),
    st.sampled_from([900, 5000, 2**20]),
)
def test_each_pair_once_and_no_view_too_large(sizes, objective, budgets, primes_only, largest_view):
    found = cover(sizes, objective, budgets, primes_only, largest_view)
    times = Counter(pair for view in found.views for pair in combinations(view, 2))
    assert times == Counter(combinations(range(len(sizes)), 2))
    assert max(found.view_cells) <= largest_view
    assert found == cover(sizes, objective, budgets, primes_only, largest_view)


@settings(deadline=None, max_examples=examples(60))
@given(SIZES)
def test_more_freedom_never_costs_more(sizes):
    pairs = direct_pairs(sizes, "equal").error_factor
    primes = cover(sizes, "expected-error", "equal", primes_only=True).error_factor
    powers = cover(sizes, "expected-error", "equal").error_factor
    paper = cover(sizes, "paper", "equal").error_factor
    uneven = cover(sizes, "expected-error", "cube-root").error_factor
    slack = 1 + 1e-4  # weights are whole numbers
    assert uneven <= powers * slack
    assert powers <= min(primes, paper, pairs) * slack


@given(st.lists(st.integers(1, 2**20), min_size=1, max_size=60))
def test_no_tables_share_is_far_below_an_equal_one(cells):
    weights = table_weights(cells)
    assert min(weights) * SMALLEST_SHARE * len(cells) >= sum(weights)
    assert list(weights) == [weights[cells.index(count)] for count in cells]
