"""The distance whatever the levels are: least over all shifts, moved by a changed row no further than by that row."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from protocol.picks.unlike_levels import distances, tolerance
from tests.support.effort import examples

SHAPES = [(2, 2), (2, 5), (5, 2), (7, 4), (16, 11)]
ROWS = [3, 400, 10**6, 2 * 10**9]


def levels_of(rng, size):
    shares = rng.dirichlet(np.full(size, rng.choice([0.05, 1.0]))) + 1e-5
    return shares / shares.sum()


def drawn(seed, shape, rows):
    """A party's difference from a reference, the reference's levels, and a blur, as scores make them."""
    rng = np.random.default_rng(seed)
    levels = tuple(levels_of(rng, size) for size in shape)
    own = rng.multinomial(rows, rng.dirichlet(np.full(shape[0] * shape[1], rng.choice([0.02, 0.5])))).reshape(shape)
    blur = np.sqrt(np.maximum(rows * np.outer(*levels), 1)) * (1 + rows / 2**17)
    return own - rows * np.outer(*levels), levels, blur


def distance(difference, levels, blur, rows):
    return float(distances([difference], [levels], [blur], tolerance(rows))[0])


def size(difference, blur):
    return float((np.hypot(difference, blur) - blur).sum())


@given(st.integers(0, 2**32), st.sampled_from(SHAPES), st.sampled_from(ROWS))
@settings(deadline=None, max_examples=examples(150))
def test_the_search_ends_and_no_shift_of_levels_comes_nearer(seed, shape, rows):
    difference, levels, blur = drawn(seed, shape, rows)
    found = distance(difference, levels, blur, rows)
    assert found <= size(difference, blur) + tolerance(rows)
    rng = np.random.default_rng(seed + 1)
    for scale in (0.001, 0.03, 1.0):
        first, second = (rng.normal(size=len(own)) * scale * rows for own in levels)
        shifted = difference - np.outer(first, levels[1]) - np.outer(levels[0], second)
        assert size(shifted, blur) >= found - tolerance(rows)


@pytest.mark.parametrize("shape", [(2, 3), (4, 3)])
def test_a_general_minimiser_finds_the_same(shape):
    for seed in range(20):
        difference, (first, second), blur = drawn(seed, shape, 400)

        def shifted(z, difference=difference, first=first, second=second, blur=blur):
            return size(difference - np.outer(z[: len(first)], second) - np.outer(first, z[len(first) :]), blur)

        least = minimize(shifted, np.zeros(sum(shape)), method="BFGS", options={"gtol": 1e-9, "maxiter": 5000}).fun
        assert distance(difference, (first, second), blur, 400) == pytest.approx(least, abs=0.05)


def test_a_reference_with_other_levels_is_near_and_one_with_other_dependence_is_not():
    first, second = np.array([0.5, 0.3, 0.2]), np.array([0.6, 0.4])
    blur = np.full((3, 2), 5.0)
    other_levels = np.outer([300.0, -200.0, -100.0], second) + np.outer(first, [-50.0, 50.0])
    dependence = 100 * np.array([[1.0, -1.0], [-1.0, 1.0], [0.0, 0.0]])
    near, far = (distance(one, (first, second), blur, 1000) for one in (other_levels, dependence))
    assert near < 0.1
    assert far > 0.4 * size(dependence, blur)


@given(st.integers(0, 2**32), st.sampled_from(SHAPES), st.sampled_from(ROWS), st.data())
@settings(deadline=None, max_examples=examples(150))
def test_a_changed_row_moves_it_by_at_most_two_cells(seed, shape, rows, data):
    """Two cells are one row of half the distance, which is what a score counts."""
    difference, levels, blur = drawn(seed, shape, rows)
    cells = list(itertools.product(*map(range, shape)))
    taken, added = data.draw(st.sampled_from(cells)), data.draw(st.sampled_from(cells))
    moved = difference.copy()
    moved[taken] -= 1
    moved[added] += 1
    change = distance(moved, levels, blur, rows) - distance(difference, levels, blur, rows)
    assert abs(change) <= 2 + tolerance(rows) + 1e-9 * rows


def test_many_tables_at_once_are_searched_each_for_itself():
    many = [drawn(seed, SHAPES[seed % len(SHAPES)], 400) for seed in range(30)]
    together = distances(*map(list, zip(*many, strict=True)), tolerance(400))
    alone = [distance(*one, 400) for one in many]
    assert together == pytest.approx(alone, abs=2 * tolerance(400))
