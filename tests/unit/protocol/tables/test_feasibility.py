"""Impossible cells of tables, by hand: an attribute of three values in two bits, beside one of two."""

import numpy as np

from protocol.tables.domain import Domain, Variable
from protocol.tables.encoding import Block
from protocol.tables.feasibility import feasible_cells, structural_projection
from protocol.tables.marginal import Table

DOMAIN = Domain.of_sizes([2, 2, 2])
THREE_VALUES = Block((0, 1), np.array([[True, True], [True, False]]))  # 00, 01, 10 decode, 11 does not
BOTH = [THREE_VALUES, Block((2,), np.array([True, True]))]


def test_cells_that_need_an_invalid_code_are_impossible() -> None:
    assert feasible_cells((0, 1), BOTH, DOMAIN).tolist() == [[True, True], [True, False]]
    assert feasible_cells((1, 2, 0), BOTH, DOMAIN).tolist() == [[[True, True]] * 2, [[True, False]] * 2]


def test_where_every_cell_is_possible_there_is_nothing_to_say() -> None:
    assert feasible_cells((0, 2), BOTH, DOMAIN) is None
    assert feasible_cells((0, 1), BOTH[1:], DOMAIN) is None
    assert feasible_cells((), BOTH, DOMAIN) is None


def test_two_attributes_restrict_a_table_together() -> None:
    four = Domain.of_sizes([2] * 4)
    blocks = [THREE_VALUES, Block((3, 2), np.array([[False, True], [True, True]]))]  # in the order 3, 2
    feasible = feasible_cells((0, 1, 2, 3), blocks, four)
    assert feasible.sum() == 3 * 3
    assert not feasible[1, 1].any()
    assert not feasible[:, :, 0, 0].any()


def test_a_generalised_code_is_possible_if_a_code_below_it_is() -> None:
    domain = Domain((Variable("A", 4, 0), Variable("A'", 2, 0, (0, 0, 1, 1))))
    for valid, coarse in (([1, 0, 0, 0], [True, False]), ([1, 0, 0, 1], None)):
        feasible = feasible_cells((1,), [Block((0,), np.array(valid, dtype=bool))], domain)
        assert coarse == (None if feasible is None else feasible.tolist())


def test_impossible_cells_are_emptied_before_the_rest_is_projected() -> None:
    noisy = Table((0, 1), np.array([[5, 3], [2, 40]]), variance=7.0)
    projected = structural_projection(noisy, BOTH, DOMAIN, 13)  # 5 + 3 + 2 is 10: one more for each possible cell
    assert projected.counts.tolist() == [[6, 4], [3, 0]]
    assert (projected.variables, projected.variance) == ((0, 1), 7.0)


def test_a_table_without_impossible_cells_is_projected_whole() -> None:
    noisy = Table((0, 2), np.array([[5, -3], [2, 1]]))
    assert structural_projection(noisy, BOTH, DOMAIN, 8).counts.tolist() == [[5, 0], [2, 1]]
