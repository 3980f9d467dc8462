"""CSFC on cases worked out by hand, among them the paper's Figure 1."""

import numpy as np
from numpy.typing import NDArray

from protocol.network.frontier import GrowingFrontier, search_frontier
from protocol.network.limits import Limits
from protocol.network.network import Family, Network
from protocol.tables.domain import Domain, Variable


def symmetric(count: int, pairs: dict[tuple[int, int], float]) -> NDArray[np.float64]:
    matrix = np.zeros((count, count))
    for (x, y), value in pairs.items():
        matrix[x, y] = matrix[y, x] = value
    return matrix


# Figure 1: X1 is the parent of X2 and X3, X3 that of X4; (X1, X4) is the strongest new pair, then (X2, X3).
# The figure's single values are not in the text; these give the sums that are.
FOUR = Domain.of_sizes([2] * 4)
FIGURE_1 = Network.of([Family(0), Family(1, (0,)), Family(2, (0,)), Family(3, (2,))], FOUR)
INFORMATION = symmetric(4, {(0, 1): 1.39, (0, 3): 1.10, (0, 2): 0.95, (1, 2): 0.90, (1, 3): 0.78, (2, 3): 0.5})


def test_sparsity_and_impact_are_those_of_figure_1() -> None:
    frontier = GrowingFrontier(FIGURE_1, INFORMATION, Limits(degree=2), FOUR)
    assert frontier.direction(0, 3) == (0, 3)  # comparable: from X1 to X4
    frontier.add(0, 3)
    assert (frontier.sparsity(1), frontier.sparsity(2)) == (3, 3)
    assert round(frontier.impact(1, 2), 12) == 2.83
    assert round(frontier.impact(2, 1), 12) == 1.39
    assert frontier.direction(1, 2) == (2, 1)  # from X3 to X2


def test_the_frontier_of_figure_1() -> None:
    frontier = search_frontier(FIGURE_1, INFORMATION, Limits(degree=2), FOUR)
    assert [frontier.parents_of(x) for x in range(4)] == [(), (0, 2), (0,), (0, 2)]


def test_equal_products_point_to_the_first_of_the_pair() -> None:
    two = Domain.of_sizes([2, 2])
    empty = Network.of([Family(0), Family(1)], two)
    frontier = search_frontier(empty, symmetric(2, {(0, 1): 0.3}), Limits(degree=1), two)
    assert frontier.edges() == [(1, 0)]


def test_a_larger_product_of_the_second_points_to_it() -> None:
    # 0 -> 2: Im(0, 1) = 0, Im(1, 0) = M(1, 2), so that line 13 fails and the edge leaves 0.
    three = Domain.of_sizes([2] * 3)
    network = Network.of([Family(0), Family(1), Family(2, (0,))], three)
    frontier = search_frontier(network, symmetric(3, {(0, 1): 0.9, (1, 2): 0.2}), Limits(degree=1), three)
    assert frontier.parents_of(1) == (0,)


def test_an_incomparable_pair_with_room_at_one_end_only_stays_apart() -> None:
    three = Domain.of_sizes([2] * 3)
    for parent, full in ((0, 1), (1, 0)):
        network = Network.of([Family(parent), Family(full, (parent,)), Family(2)], three)
        frontier = GrowingFrontier(network, np.ones((3, 3)), Limits(degree=1), three)
        assert frontier.direction(full, 2) is None
        assert frontier.direction(2, full) is None


def test_a_comparable_pair_needs_room_only_where_it_points() -> None:
    three = Domain.of_sizes([2] * 3)
    for order in ((0, 1, 2), (2, 1, 0)):  # the pair (0, 2) once with 0 first, once with 2 first
        first, middle, last = order
        network = Network.of([Family(first), Family(middle, (first,)), Family(last, (middle,))], three)
        information = symmetric(3, {(0, 2): 0.5})
        assert search_frontier(network, information, Limits(degree=1), three) == network
        wider = search_frontier(network, information, Limits(degree=2), three)
        assert wider.parents_of(last) == tuple(sorted((first, middle)))


def test_a_full_end_does_not_stop_an_edge_to_the_other() -> None:
    five = Domain.of_sizes([2] * 5)
    for full, middle, last in ((2, 3, 4), (4, 3, 2)):
        families = [Family(0), Family(1), Family(full, (0, 1)), Family(middle, (full,)), Family(last, (middle,))]
        frontier = GrowingFrontier(Network.of(families, five), np.ones((5, 5)), Limits(degree=2), five)
        assert frontier.direction(2, 4) == (full, last)  # lines 19 to 22


def test_a_network_beyond_the_limits_is_kept() -> None:
    three = Domain.of_sizes([2] * 3)
    network = Network.of([Family(0), Family(1), Family(2, (0, 1))], three)
    frontier = search_frontier(network, symmetric(3, {(0, 1): 0.5}), Limits(degree=1), three)
    assert frontier.parents_of(2) == (0, 1)
    assert frontier.edges()[0] == (1, 0)


# A of four codes, B and C of two; A' (index 3) generalises A to two.
GENERAL = Domain((Variable("A", 4, 0), Variable("B", 2, 1), Variable("C", 2, 2), Variable("A'", 2, 0, (0, 0, 1, 1))))
CHAIN = Network.of([Family(0), Family(1, (2,)), Family(2, (3,))], GENERAL)  # A' -> C -> B


def test_a_new_parent_comes_at_the_finest_level_that_fits() -> None:
    information = symmetric(3, {(0, 1): 0.5})
    for cells, parents_of_b in ((4, (2,)), (8, (2, 3)), (15, (2, 3)), (16, (0, 2))):
        frontier = search_frontier(CHAIN, information, Limits(cells=cells), GENERAL)
        assert frontier.parents_of(1) == parents_of_b
        assert frontier.parents_of(2) == (3,)  # the network's own parents keep their level


def test_sparsity_under_a_limit_on_cells_counts_the_smallest_variables_that_fit() -> None:
    sizes = Domain.of_sizes([2, 3, 2, 2])
    network = Network.of([Family(0), Family(1), Family(2), Family(3, (0,))], sizes)
    information = np.ones((4, 4))
    frontier = GrowingFrontier(network, information, Limits(cells=16), sizes)
    assert frontier.sparsity(0) == 2  # 2 * 2 * 2 = 8 cells; a third parent would make it 24
    assert frontier.sparsity(1) == 2  # 3 * 2 * 2 = 12
    assert frontier.sparsity(3) == 2 + 1  # its ancestor 0 has two places, itself one: 2 * 2 * 2, then 24
    assert GrowingFrontier(network, information, Limits(), sizes).sparsity(3) == 3 + 2


def test_sparsity_counts_an_attribute_once_and_at_its_coarsest() -> None:
    frontier = GrowingFrontier(CHAIN, np.ones((3, 3)), Limits(cells=8), GENERAL)
    assert frontier.sparsity(0) == 1  # 4 * 2 = 8
    assert frontier.sparsity(2) == 1 + 1  # 2 * 2 (A') * 2 (B) = 8, and its ancestor A
    empty = Network((Family(0), Family(1), Family(2)))
    assert GrowingFrontier(empty, np.ones((3, 3)), Limits(cells=8), GENERAL).sparsity(2) == 2  # with A' and B
