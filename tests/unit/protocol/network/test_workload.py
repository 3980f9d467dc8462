import pytest

from protocol.errors import PlanError
from protocol.network.limits import Limits
from protocol.network.parent_sets import candidates
from protocol.network.workload import (
    LARGEST_CHOICE,
    LARGEST_COMPARISON,
    affordable,
    bearable,
    compared_cells,
    largest_choice,
)
from protocol.tables.domain import Domain


def test_bearable_limits_stay():
    small = Domain.of_sizes([2] * 8)
    for limits in (Limits(degree=3), Limits(cells=16), Limits(cells=16, degree=1)):
        assert affordable(small, limits, "R", comparing_all=True) == limits


def test_the_largest_choice_of_four_bits_by_hand():
    # degree 1: 2 placed, 2 free: 4; 3 placed, 1 free: 3.
    assert largest_choice(Domain.of_sizes([2] * 4), Limits(degree=1)) == 4


def test_one_variable_leaves_no_choice():
    assert largest_choice(Domain.of_sizes([5]), Limits(cells=10)) == 1


def test_cells_compared_by_hand():
    # Three bits, degree 1: after one placed two tables of 4 cells, after two placed two more.
    assert compared_cells(Domain.of_sizes([2, 2, 2]), Limits(degree=1)) == 16


def work(domain: Domain, limits: Limits) -> int:
    """Cells of one choice's families."""
    return largest_choice(domain, limits) * (limits.cells or 2 ** (1 + limits.degree))


def test_a_degree_is_lowered_until_the_work_is_bearable():
    wide = Domain.of_sizes([2] * 60)
    degree = affordable(wide, Limits(degree=20), "R", comparing_all=False).degree
    assert degree is not None
    assert work(wide, Limits(degree=degree)) < LARGEST_CHOICE <= work(wide, Limits(degree=degree + 1))


def test_cells_are_halved_until_the_work_is_bearable():
    wide = Domain.of_sizes([2] * 30 + [3] * 30)
    cells = affordable(wide, Limits(cells=1 << 20), "R", comparing_all=False).cells
    assert cells in [1 << power for power in range(20)]
    assert work(wide, Limits(cells=cells)) < LARGEST_CHOICE


def test_score_f_is_kept_to_degrees_that_are_worked_out_together():
    bits = Domain.of_sizes([2] * 8)
    assert affordable(bits, Limits(degree=5), "F", comparing_all=False) == Limits(degree=3)
    assert affordable(bits, Limits(degree=2), "F", comparing_all=False) == Limits(degree=2)
    assert affordable(bits, Limits(cells=16), "F", comparing_all=False) == Limits(cells=16, degree=3)
    assert affordable(bits, Limits(degree=5), "F", comparing_all=True) == Limits(degree=5)  # nobody scores there


def test_score_f_goes_further_as_far_as_its_work_with_the_rows_is_bearable():
    bits = Domain.of_sizes([2] * 16)
    assert affordable(bits, Limits(degree=6), "F", False, rows=20_000) == Limits(degree=6)
    few = [affordable(bits, Limits(degree=9), "F", False, rows=rows).degree for rows in (1_000, 20_000, 10**6, 10**9)]
    assert few == sorted(few, reverse=True)
    assert few[-1] == 3 < few[0]
    assert affordable(bits, Limits(degree=6), "R", False, rows=10**9) == affordable(bits, Limits(degree=6), "R", False)


def test_comparing_all_families_is_bearable_for_smaller_degrees_only():
    domain = Domain.of_sizes([2] * 20)
    chosen = affordable(domain, Limits(degree=10), "R", comparing_all=True)
    assert compared_cells(domain, chosen) <= LARGEST_COMPARISON < compared_cells(domain, Limits(degree=10))
    assert affordable(domain, Limits(degree=10), "R", comparing_all=False).degree > chosen.degree


def test_counting_stops_where_it_is_too_much():
    domain = Domain.of_sizes([2] * 20)
    exact = 0
    for stage in range(1, 20):
        options = candidates(domain, range(stage), range(stage, 20), Limits(degree=5))
        exact += sum(domain.cells((child, *parents)) for child, parents in options)
    counted = compared_cells(domain, Limits(degree=5))
    assert counted == exact or LARGEST_COMPARISON < counted <= exact


def test_what_is_too_much_even_without_parents_is_refused():
    # d sizes in d - 1 stages: 66 tables of 2^16 cells are more than 2^22.
    domain = Domain.of_sizes([1 << 16] * 12)
    with pytest.raises(PlanError, match="even without parents, 12 variables make too many cells to compare"):
        affordable(domain, Limits(cells=8), "R", comparing_all=True)
    with pytest.raises(PlanError, match="even without parents"):
        affordable(domain, Limits(degree=0), "R", comparing_all=True)
    assert affordable(domain, Limits(cells=8), "R", comparing_all=False) == Limits(cells=8)


def test_a_frontier_stays_small_enough_to_send():
    assert bearable(Domain.of_sizes([2] * 64), Limits(degree=30)) == Limits(degree=15)
    assert LARGEST_COMPARISON >= 64 * 2 ** (15 + 1)
    assert bearable(Domain.of_sizes([9] * 4), Limits(cells=1 << 40)) == Limits(cells=1 << 20)
    assert bearable(Domain.of_sizes([2] * 5), Limits(cells=100, degree=2)) == Limits(cells=100, degree=2)
