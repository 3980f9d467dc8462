"""Draws of counts that noisy coefficients correct."""

import numpy as np
import pytest

from protocol.model.haar_counts import told_by_halves
from protocol.model.ordered_counts import DRAWS, middle, possible_counts
from protocol.privacy.mechanisms import ZCDP
from protocol.privacy.wavelets import ordered_wavelet
from protocol.tables.domain import Variable
from protocol.tables.haar import HaarNoise
from protocol.tables.marginal import Table, averaged, nonnegative, project_to_simplex

SIZE = 40
TREE = ordered_wavelet(SIZE, SIZE)
TRUE = np.round(2000 * np.exp(-0.5 * ((np.arange(SIZE) - 14) / 5) ** 2))


def released(seed: int, scale: float) -> Table:
    """The counts with the noise of a wavelet whose price allows plain noise of this deviation."""
    shares = TREE.shares(ZCDP)
    noise = TREE.noise([scale**2 / float(share) for share in shares])
    strays = np.random.default_rng(seed).normal(size=SIZE - 1) * np.sqrt(TREE.tree.by_node(noise.variances))
    counts = TREE.tree.counts(TRUE.sum(), TREE.tree.coefficients(TRUE) + strays)
    return Table((0,), counts, noise.variance, noise)


def test_draws_keep_their_sums_and_follow_coefficients_as_far_as_these_are_more_precise() -> None:
    draws = np.random.default_rng(1).uniform(50, 150, (DRAWS, SIZE))
    draws[:, 0] = 0.0
    draws *= 4000 / draws.sum(axis=1, keepdims=True)
    wanted = np.arange(SIZE, dtype=float)
    coefficients = TREE.tree.coefficients(wanted * 4000 / wanted.sum())
    for variance, distance in ((1e-6, 0.0), (1e12, None)):
        noise = HaarNoise(TREE.tree, (variance,) * len(TREE.tree.levels))
        found = told_by_halves(draws, coefficients, noise, np.zeros((DRAWS, SIZE - 1)))
        assert found.min() >= 0
        assert found.sum(axis=1) == pytest.approx(draws.sum(axis=1))
        if distance is None:
            assert found == pytest.approx(draws, rel=1e-3, abs=1e-3)
        else:
            assert np.median(found, axis=0) == pytest.approx(wanted * 4000 / wanted.sum(), abs=1)


def test_ranges_of_the_estimate_are_nearer_with_wavelet_noise_than_with_plain_noise_of_the_same_price() -> None:
    variable, squares = Variable("x", SIZE, 0, ordered=SIZE), np.zeros(2)
    for seed in range(6):
        plain = TRUE + np.random.default_rng(100 + seed).normal(size=SIZE) * 60
        for place, table in enumerate([Table((0,), plain, 60.0**2), released(seed, 60)]):
            found = middle(possible_counts(table, variable, TRUE.sum()), SIZE)
            squares[place] += ((found - TRUE).cumsum() ** 2).sum()
    assert squares[1] < 0.8 * squares[0]


def test_non_negative_counts_keep_the_sums_of_nodes_where_the_simplex_moves_them() -> None:
    squares = np.zeros(2)
    for seed in range(20):
        table = released(seed, 100)
        strays = [nonnegative(table, TRUE.sum()) - TRUE, project_to_simplex(table.counts, TRUE.sum()) - TRUE]
        squares += [(one.cumsum() ** 2).sum() for one in strays]
        assert nonnegative(table, TRUE.sum()).min() >= 0
    assert squares[0] < 0.7 * squares[1]


def test_an_average_with_another_table_knows_the_noise_of_its_coefficients() -> None:
    random, kept = np.random.default_rng(5), []
    for seed in range(600):
        table = released(seed, 30)
        whole = averaged([table, Table((0,), TRUE + random.normal(size=SIZE) * 40, 1600.0)])
        assert whole.noise is not None
        kept.append(TREE.tree.coefficients(np.asarray(whole.counts) - TRUE) ** 2)
    told = np.add.reduceat(np.mean(kept, axis=0), np.cumsum([0, *TREE.tree.cells[:-1]])) / TREE.tree.cells
    assert told == pytest.approx(whole.noise.variances, rel=0.25)
    assert whole.variance == pytest.approx(1 / (1 / table.variance + 1 / 1600))
