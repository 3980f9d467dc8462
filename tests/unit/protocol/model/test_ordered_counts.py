"""Counts of ordered categories from noisy counts: empty tails stay empty, bells and spikes stay, and ranges hold."""

import numpy as np
import pytest

from protocol.model.ordered_counts import DRAWS, middle, possible_counts
from protocol.model.ordered_pieces import log_normal
from protocol.tables.domain import Variable
from protocol.tables.marginal import Table, project_to_simplex

DEVIATION = 25.0
SKEWED = np.array([13_148, 1279, 313, 122, 52, 40, 8, 7, 5, 7, 4, 4, 3, 2, *[0] * 36])
BELL = np.round(15_000 * np.exp(-((np.arange(24) - 12) ** 2) / 8) / np.sqrt(8 * np.pi)).astype(int)


def noisy(counts, seed: int, deviation: float = DEVIATION) -> Table:
    """Laplace noise, of which more strays far than of normal noise."""
    noise = np.random.default_rng(seed).laplace(0, deviation / np.sqrt(2), len(counts))
    return Table((0,), np.round(np.asarray(counts) + noise), deviation**2)


def draws_of(table: Table, total: float, ordered: int | None = None):
    size = len(table.counts)
    return possible_counts(table, Variable("x", size, 0, ordered=size if ordered is None else ordered), total)


def estimate(table: Table, total: float):
    return middle(draws_of(table, total), len(table.counts))


def test_every_draw_and_the_middle_are_counts_of_all_rows():
    table = noisy(SKEWED, 1)
    draws = draws_of(table, 15_000)
    assert draws.shape == (DRAWS, len(SKEWED))
    assert (draws >= 0).all()
    assert draws.sum(axis=1) == pytest.approx(np.full(DRAWS, 15_000))
    found = middle(draws, len(SKEWED))
    assert found.sum() == pytest.approx(15_000)
    assert (found >= 0).all()


def test_the_same_counts_give_the_same_draws():
    again = draws_of(noisy(SKEWED, 1), 15_000).copy()
    assert (draws_of(noisy(SKEWED, 1), 15_000) == again).all()


def test_noise_in_an_empty_tail_hardly_moves_the_mean():
    """Ten tables; the simplex alone leaves a third of the mean too much."""
    places = np.arange(len(SKEWED)) + 0.5
    true = SKEWED @ places / SKEWED.sum()
    shifts = []
    for seed in range(10):
        table = noisy(SKEWED, seed)
        by_simplex = project_to_simplex(table.counts, 15_000) @ places / 15_000
        found = estimate(table, 15_000) @ places / 15_000
        assert by_simplex / true - 1 > 0.1
        shifts.append(found / true - 1)
    assert np.median(np.abs(shifts)) < 0.05


def test_smooth_counts_come_nearer_than_their_noise():
    apart = []
    for seed in range(10):
        table = noisy(BELL, seed)
        found, given = estimate(table, BELL.sum()), project_to_simplex(table.counts, BELL.sum())
        apart.append((np.abs(found - BELL).sum(), np.abs(given - BELL).sum()))
    found, given = np.mean(apart, axis=0)
    assert found < 0.8 * given


def test_a_spike_that_stands_out_of_noise_stays():
    counts = BELL.copy()
    counts[20] += 3000
    found = estimate(noisy(counts, 3), counts.sum())
    assert abs(found[20] - counts[20]) < 4 * DEVIATION
    assert found[21] < counts[21] + 3 * DEVIATION


# Noise as whole runs drew it: 5.4 deviations far out in an empty tail, and 4.1 in the last category of a range.
FAR_OUT = [3788, 5393, 3874, 1354, 447, 212, -26, 52, -37, 80, 26, 50, 260, 8]
AT_THE_END = [-26, -5, -59, -28, 29, -116, -2, 24, -31, -41, 458, 950, 1830, 2530, 2724, 2426, 1797, 981, 396, 235, 59,
              -58, 16, 246]  # fmt: skip


@pytest.mark.parametrize(("counts", "deviation", "place"), [(FAR_OUT, 48, 12), (AT_THE_END, 60, 23)])
def test_one_large_noise_in_an_empty_tail_makes_no_rows(counts: list[int], deviation: float, place: int):
    found = estimate(Table((0,), np.array(counts), deviation**2), 15_000)
    assert found[place] < 0.1 * counts[place]


def test_a_heap_at_the_end_of_a_range_stays():
    counts = np.array([*BELL[:20], 0, 0, 0, 900])
    assert estimate(noisy(counts, 4), counts.sum())[-1] == pytest.approx(900, abs=4 * DEVIATION)


def test_the_missing_category_is_no_neighbour():
    counts = np.array([*SKEWED, 700])
    draws = draws_of(noisy(counts, 4), counts.sum(), ordered=len(SKEWED))
    found = middle(draws, len(SKEWED))
    assert abs(found[-1] - 700) < 4 * DEVIATION
    assert found[-5:-1].sum() < 50


def test_draws_spread_as_far_as_the_estimate_errs():
    """True counts lie in the range of nineteen draws of twenty, in most cells of most tables."""
    inside = []
    for seed in range(8):
        lower, upper = np.quantile(draws_of(noisy(BELL, seed), BELL.sum()), (0.025, 0.975), axis=0)
        inside.append(((lower - 0.5 <= BELL) & (upper + 0.5 >= BELL)).mean())
    assert 0.85 < np.mean(inside) <= 1


def test_many_categories_are_estimated_in_blocks():
    counts = np.zeros(1000)
    counts[:300] = 40
    counts[700] = 2000
    found = estimate(noisy(counts, 5, 5.0), counts.sum())
    assert len(found) == 1000
    assert abs(found[700] - 2000) < 100
    assert abs(found[:300].sum() - 12_000) < 500


@pytest.mark.parametrize("size", [1, 2, 3])
def test_few_categories_are_estimated_too(size):
    counts = np.array([900, 100, 50][:size])
    assert np.abs(estimate(noisy(counts, 6, 5.0), counts.sum()) - counts).max() < 25


def test_without_noise_counts_stay_as_they_are():
    assert estimate(Table((0,), BELL, 0.0), BELL.sum()) == pytest.approx(BELL, abs=1)


def test_counts_below_zero_everywhere_are_shared_out():
    found = estimate(Table((0,), np.full(10, -50.0), 625.0), 30)
    assert found.sum() == pytest.approx(30)


def test_the_normal_distribution_is_exact_far_out():
    from scipy.special import log_ndtr

    values = np.linspace(-40, 8, 97)
    assert log_normal(values) == pytest.approx(log_ndtr(values), rel=1e-5, abs=1e-7)
