"""Attacks on the noise itself: who knows the kept noise, and what floating point gives away."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from crypto.randomness import Stream
from crypto.sampling.laplace import discrete_laplace, laplace_bound
from tests.support.float_noise import float_laplace, reachable

ALPHA = Fraction(1, 20)  # epsilon 0.1
CELLS = 20_000


def sparse_table() -> NDArray[np.int64]:
    rng = np.random.default_rng(8)
    return np.where(rng.random(CELLS) < 0.02, rng.integers(1, 50, CELLS), 0)


def release(shares: int, parties: int = 3) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The table, what is published of it, and every party's noise; the first `shares` noises are kept."""
    table, stream = sparse_table(), Stream.system()
    noise = np.array([discrete_laplace(ALPHA, CELLS, stream) for _ in range(parties)])
    return table, table + noise[:shares].sum(axis=0), noise


def zeros_without(published: NDArray[np.int64], own: NDArray[np.int64]) -> float:
    """The share of cells that are zero once a party takes its own noise out."""
    return float(np.mean(published - own == 0))


class TestPartyTakesItsKeptNoiseOut:
    def test_with_one_share_it_recognises_its_noise_and_reads_the_table(self) -> None:
        table, published, noise = release(shares=1)
        zeros = [zeros_without(published, own) for own in noise]
        assert zeros[0] > 0.97  # 98 % of the cells are empty: it was chosen
        assert max(zeros[1:]) < 0.1  # the others see that they were not
        assert np.array_equal(published - noise[0], table)

    def test_with_two_shares_a_full_share_is_left(self) -> None:
        table, published, noise = release(shares=2)
        for own in noise:
            assert zeros_without(published, own) < 0.1
            # What is left is zero with probability at most (1-q)/(1+q) = 0.025, or 500 of 20,000 cells.
            assert np.sum(published - own == table) < 620
        assert np.var((published - noise[0]) - table) > 700  # of 800, with a standard error of 13

    def test_being_chosen_stays_visible_and_need_not_be_hidden(self) -> None:
        # What two shares promise is noise that no single party knows, not that a party cannot tell that its own
        # is in: taking it out lowers the variance for the chosen (800) and raises it for others (2400).
        _, published, noise = release(shares=2)
        spreads = [np.var(published - own) for own in noise]
        assert max(spreads[:2]) < 1600 < spreads[2]


class TestFloatingPointNoise:
    """Mironov 2012: near a count, floating-point Laplace noise leaves gaps that differ from count to count."""

    SCALE = 20.0

    def test_many_outputs_betray_the_count(self) -> None:
        published = 1.0 + float_laplace(self.SCALE, CELLS, np.random.default_rng(2))
        assert reachable(published, 1.0, self.SCALE).all()
        assert np.mean(~reachable(published, 0.0, self.SCALE)) > 0.5  # certainly not from the neighbouring count

    def test_integers_reach_the_same_outputs_from_both_counts(self) -> None:
        # Every count plus noise is an integer, and all integers within the bound are noise with positive
        # probability: what count 1 publishes, count 0 publishes as well.
        bound = laplace_bound(ALPHA)
        published = 1 + discrete_laplace(ALPHA, CELLS, Stream.system())
        assert published.dtype == np.int64
        assert np.all(np.abs(published) <= bound)
        frequent = np.arange(-60, 61)
        for count in (0, 1):
            seen = count + discrete_laplace(ALPHA, CELLS, Stream.system())
            assert np.isin(frequent, seen).all()  # each is missed with probability below exp(-23)
