import numpy as np
import pytest

from protocol.tables.distance import average_distance


def columns(*values):
    return [np.array(column, dtype=np.uint8) for column in values]


def test_equal_tables_have_no_distance():
    table = columns([0, 1, 2, 1], [1, 0, 1, 0])
    assert average_distance(table, table, [3, 2], 2) == 0


def test_the_order_and_number_of_rows_do_not_matter():
    one = columns([0, 1], [1, 0])
    twice = columns([1, 0, 0, 1], [0, 1, 1, 0])
    assert average_distance(one, twice, [2, 2], 2) == 0


def test_tables_without_a_common_cell_are_as_far_apart_as_can_be():
    assert average_distance(columns([0, 0], [0, 0]), columns([1], [1]), [2, 2], 2) == 1


def test_one_way_distance_by_hand():
    # shares (3/4, 1/4, 0) and (1/4, 1/4, 1/2): half of 1/2 + 0 + 1/2
    assert average_distance(columns([0, 0, 0, 1]), columns([0, 1, 2, 2]), [3], 1) == pytest.approx(1 / 2)


def test_the_average_is_over_all_sets_of_attributes():
    # Marginals agree in every attribute; of the three pairs, only (0, 1) differs, and entirely.
    one = columns([0, 0, 1, 1], [0, 0, 1, 1], [0, 1, 0, 1])
    other = columns([0, 0, 1, 1], [1, 1, 0, 0], [0, 1, 0, 1])
    sizes = [2, 2, 2]
    assert average_distance(one, other, sizes, 1) == 0
    assert average_distance(one, other, sizes, 2) == pytest.approx(1 / 3)
    assert average_distance(one, other, sizes, 3) == pytest.approx(1)


def test_large_domains_do_not_overflow_the_codes_type():
    one, other = columns([255, 0], [255, 0]), columns([255, 0], [0, 255])
    assert average_distance(one, other, [256, 256], 2) == 1
