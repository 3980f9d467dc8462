"""Slopes inside bins: their direction, their limits, and values that follow them."""

import numpy as np
import pytest

from crypto.randomness import Stream
from protocol.tables.attributes import Integer, Real
from protocol.tables.kinds.slopes import FEWEST_ROWS, offsets_in_bins, places, slopes

ALIKE = np.ones(5)


def drawn_in_bin(rows, held, rise, seed):
    """The values of rows in the second of two bins."""
    bins, held = np.ones(rows, np.uint8), np.array([3, held], np.uint64)
    return offsets_in_bins(bins, held, np.array([1.0, rise]), Stream.keyed(seed))


def test_density_falls_as_the_neighbours_do():
    found = slopes(np.array([16_000, 4000, 1000, 500, 250]), ALIKE)
    assert found == pytest.approx([-np.log(4), -np.log(4), -np.log(2), -np.log(2), -np.log(2)])


def test_a_top_a_trough_and_even_counts_have_no_slope():
    assert slopes(np.array([100, 500, 100, 500, 100]), ALIKE)[1:-1].tolist() == [0, 0, 0]
    assert slopes(np.full(5, 300), ALIKE).tolist() == [0] * 5
    assert slopes(np.array([300]), np.ones(1)).tolist() == [0]


def test_beside_a_spike_the_slope_is_the_gentler_one():
    found = slopes(np.array([100, 100, 110, 50_000, 100]), ALIKE)
    assert found[2] == pytest.approx(np.log(1.1))


def test_a_few_rows_make_no_slope():
    assert slopes(np.array([0, 3, FEWEST_ROWS, 1, 0]), np.array([1, 10, 100, 10, 1])).tolist() == [0] * 5


def test_wide_bins_count_by_their_density():
    assert slopes(np.array([100, 200, 400, 800, 1600]), np.array([1, 2, 4, 8, 16])).tolist() == [0] * 5


@pytest.mark.parametrize("rise", [-700.0, -3.0, -1e-3, 0.0, 1e-9, 2.0, 700.0])
def test_places_are_quantiles_of_the_density(rise):
    shares = np.linspace(0, 1, 101)
    found = places(shares, np.zeros(101, np.intp), np.array([rise]))
    assert found.min() >= 0
    assert found.max() <= 1
    assert (np.diff(found) >= 0).all()
    if abs(rise) < 100:
        assert (found[0], found[-1]) == pytest.approx((0, 1))
    if 0.01 < abs(rise) < 100:
        assert np.expm1(rise * found) / np.expm1(rise) == pytest.approx(shares)


@pytest.mark.parametrize("held", [1, 2, 7, 10**6, 2**40, 2**40 + 1, 2**63])
def test_values_stay_in_their_bin(held):
    for rise in (-30.0, 0.0, 30.0):
        drawn = drawn_in_bin(2000, held, rise, b"inside")
        assert int(drawn.max()) < held


def test_values_of_a_bin_follow_its_slope():
    drawn = drawn_in_bin(100_000, 10, np.log(4.0), b"slope")
    counts = np.bincount(drawn.astype(int), minlength=10) / 100_000
    edges = 4.0 ** np.linspace(0, 1, 11)
    assert counts == pytest.approx(np.diff(edges) / 3, abs=0.008)  # six standard deviations


def test_fine_values_are_uniform_inside_parts_of_unequal_length():
    held = 2**40 + 2**39 + 12_345
    drawn = drawn_in_bin(200_000, held, 0.0, b"parts")
    tenths = np.bincount((drawn // np.uint64(held // 10 + 1)).astype(int), minlength=10)
    assert len(np.unique(drawn)) > 199_900
    assert np.abs(tenths - 20_000).max() < 850  # six standard deviations


def test_a_drawn_column_has_a_mean_nearer_to_the_real_one_than_uniform_bins():
    """Values that fall off steeply, in ten bins: uniform values would lie 0.2 too high."""
    real = np.random.default_rng(1).exponential(0.6, 50_000).clip(0, 9.99)
    column = Real(kind="real", name="x", min=0, max=10, bins=10, decimals=2)
    texts = column.texts(real.astype(np.uint8), Stream.keyed(b"column"))
    assert np.mean([float(text) for text in texts]) == pytest.approx(real.mean(), abs=0.08)
    uniform = (real.astype(int) + 0.5).mean()
    assert uniform - real.mean() > 0.1


def test_a_missing_value_is_no_neighbour():
    column = Integer(kind="integer", name="x", min=0, max=19, bins=2, missing=("",))
    codes = np.array([0] * 5000 + [1] * 5000 + [2] * 40_000, np.uint8)
    drawn = [int(text) for text in [*column.texts(codes, Stream.keyed(b"missing"))][:10_000]]
    assert np.mean(drawn) == pytest.approx(9.5, abs=0.4)
