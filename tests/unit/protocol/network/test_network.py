"""Networks, the best one inside a frontier, and the tables that their parameters need, by hand."""

import numpy as np
import pytest

from protocol.network.limits import Limits
from protocol.network.network import Family, Network, best_network, family_table, maximal_families, maximal_parent_sets
from protocol.tables.domain import Domain, Variable
from protocol.tables.marginal import Table

THREE = Domain.of_sizes([2, 2, 2])
# A of four codes, B and C of two; A' (index 3) generalises A to two.
GENERAL = Domain((Variable("A", 4, 0), Variable("B", 2, 1), Variable("C", 2, 2), Variable("A'", 2, 0, (0, 0, 1, 1))))


def test_families_are_put_in_order() -> None:
    network = Network.of([Family(0, (1, 2)), Family(2, (1,)), Family(1)], THREE)
    assert [family.child for family in network.families] == [1, 2, 0]
    assert network.parents_of(0) == (1, 2)
    assert network.edges() == [(1, 2), (1, 0), (2, 0)]


def test_an_order_that_fits_stays() -> None:
    families = (Family(2), Family(0), Family(1, (2,)))
    assert Network.of(families, THREE).families == families


@pytest.mark.parametrize(
    ("families", "reason"),
    [
        ([Family(0), Family(0)], "two families"),
        ([Family(0), Family(2, (0, 1))], "no family itself"),
        ([Family(1, (3,))], "no family itself"),
        ([Family(0, (1,)), Family(1, (0,))], "cycle"),
        ([Family(1, (3,)), Family(0, (1,))], "cycle"),
        ([Family(3)], "base variables are 0 to 2"),
        ([Family(-1)], "base variables are 0 to 2"),
        ([Family(0, (2, 1))], "rising"),
        ([Family(0, (1, 1))], "rising"),
        ([Family(0, (4,))], "rising"),
        ([Family(0, (-1,))], "rising"),
        ([Family(0, (0,))], "twice"),
        ([Family(0, (3,))], "twice"),
        ([Family(1, (0, 3))], "twice"),
    ],
)
def test_what_makes_no_network_is_refused(families: list[Family], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Network.of(families, GENERAL)


def test_only_parent_sets_that_cannot_grow_are_candidates() -> None:
    four = Domain.of_sizes([2] * 4)
    assert maximal_parent_sets(Family(3, (0, 1, 2)), Limits(degree=2), four) == [(0, 1), (0, 2), (1, 2)]
    assert maximal_parent_sets(Family(3, (0, 1, 2)), Limits(), four) == [(0, 1, 2)]
    assert maximal_parent_sets(Family(3, (0, 1)), Limits(degree=0), four) == [()]
    assert maximal_parent_sets(Family(3), Limits(cells=1), four) == [()]


def test_candidates_may_be_coarser_than_in_the_frontier_but_never_finer() -> None:
    assert maximal_parent_sets(Family(1, (0, 2)), Limits(cells=8), GENERAL) == [(0,), (2, 3)]
    assert maximal_parent_sets(Family(1, (2, 3)), Limits(cells=16), GENERAL) == [(2, 3)]
    assert maximal_parent_sets(Family(1, (0, 2)), Limits(cells=4), GENERAL) == [(3,), (2,)]


def test_the_most_informative_parents_are_taken() -> None:
    frontier = Network.of([Family(0), Family(1), Family(2, (0, 1))], THREE)
    copied_from_1 = np.zeros((2, 2, 2))
    copied_from_1[0, :, 0] = copied_from_1[1, :, 1] = 25
    statistics = {0: Table((0,), np.array([50, 50])), 1: Table((1,), np.array([50, 50]))}
    statistics[2] = Table((2, 0, 1), copied_from_1)
    totals = dict.fromkeys(range(3), 100.0)
    assert best_network(frontier, statistics, totals, Limits(degree=1), THREE).parents_of(2) == (1,)
    assert best_network(frontier, statistics, totals, Limits(degree=2), THREE).parents_of(2) == (0, 1)


def test_no_statistics_are_needed_where_there_is_no_choice() -> None:
    frontier = Network.of([Family(0), Family(1, (0,)), Family(2, (1,))], THREE)
    assert best_network(frontier, {}, {}, Limits(degree=1), THREE) == frontier


def test_equal_information_goes_to_the_earlier_parents() -> None:
    frontier = Network.of([Family(0), Family(1), Family(2, (0, 1))], THREE)
    same = Table((2, 0, 1), np.full((2, 2, 2), 5))
    statistics = {0: Table((0,), np.array([20, 20])), 1: Table((1,), np.array([20, 20])), 2: same}
    totals = dict.fromkeys(range(3), 40.0)
    assert best_network(frontier, statistics, totals, Limits(degree=1), THREE).parents_of(2) == (0,)


def test_noise_beyond_the_rows_is_projected_away_before_comparing() -> None:
    # Of ten rows. As they stand the counts tie 2 to both; on the simplex only cells (0,0,0) and (1,0,1) are left.
    frontier = Network.of([Family(0), Family(1), Family(2, (0, 1))], THREE)
    noisy = np.full((2, 2, 2), -3.0)
    noisy[0, 0, 0] = noisy[1, 0, 1] = 6
    statistics = {0: Table((0,), np.array([10, 0])), 1: Table((1,), np.array([5, 5])), 2: Table((2, 0, 1), noisy)}
    best = best_network(frontier, statistics, dict.fromkeys(range(3), 10.0), Limits(degree=1), THREE)
    assert best.parents_of(2) == (1,)


def test_families_inside_others_need_no_table() -> None:
    network = Network.of([Family(0), Family(1, (0,)), Family(2, (0, 1))], THREE)
    assert maximal_families(network, THREE) == [(0, 1, 2)]
    chain = Network.of([Family(0), Family(1, (0,)), Family(2, (1,))], THREE)
    assert maximal_families(chain, THREE) == [(0, 1), (1, 2)]


def test_a_generalised_family_follows_from_the_finer_one_and_not_the_other_way() -> None:
    finer_elsewhere = Network.of([Family(0), Family(1, (3,)), Family(2, (0, 1))], GENERAL)
    assert maximal_families(finer_elsewhere, GENERAL) == [(0, 1, 2)]
    coarser_elsewhere = Network.of([Family(0), Family(1, (0,)), Family(2, (1, 3))], GENERAL)
    assert maximal_families(coarser_elsewhere, GENERAL) == [(0, 1), (1, 2, 3)]


def test_a_family_table_comes_from_where_it_is_least_noisy() -> None:
    wide = Table((0, 1, 2), np.arange(8).reshape(2, 2, 2), variance=1.0)  # variance 2 after adding cells up in pairs
    narrow = Table((0, 2), np.array([[10, 20], [30, 40]]), variance=1.5)
    noisy = Table((0, 2), np.zeros((2, 2)), variance=2.5)
    table = family_table(Family(2, (0,)), [noisy, wide, narrow], THREE)
    assert table.variables == (2, 0)
    assert table.counts.tolist() == [[10, 30], [20, 40]]
    assert family_table(Family(2, (0,)), [noisy, wide], THREE).counts.tolist() == [[0 + 2, 4 + 6], [1 + 3, 5 + 7]]


def test_a_family_table_generalises_its_parents() -> None:
    table = Table((0, 1), np.array([[1, 2], [3, 4], [5, 6], [7, 8]]), variance=1.0)
    family = family_table(Family(1, (3,)), [table], GENERAL)
    assert family.counts.tolist() == [[1 + 3, 5 + 7], [2 + 4, 6 + 8]]
    assert family.variance == 2.0


def test_a_family_that_no_table_covers_is_refused() -> None:
    with pytest.raises(ValueError, match="none of the 1 tables covers variables"):
        family_table(Family(2, (1,)), [Table((0, 2), np.zeros((2, 2)))], THREE)
