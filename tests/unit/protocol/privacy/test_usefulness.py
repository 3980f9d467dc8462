from fractions import Fraction

from protocol.privacy.mechanisms import PURE
from protocol.privacy.usefulness import useful_cells, useful_degree


def test_one_table_is_paid_with_half_its_budget_per_count():
    assert PURE.rate(Fraction(4, 5)) == Fraction(2, 5)


def test_degree_of_lemma_4_8_by_hand():
    # n e / ((d - k) 2^(k+2)) with n = 1000, e = 1/2, d = 5: k = 1: 500/32, 2: 500/48, 3: 500/64, 4: 500/64.
    assert useful_degree(1000, 5, Fraction(1, 2), Fraction(10)) == 2
    assert useful_degree(1000, 5, Fraction(1, 2), Fraction(8)) == 2
    assert useful_degree(1000, 5, Fraction(1, 2), Fraction(500, 64)) == 4
    assert useful_degree(1000, 5, Fraction(1, 2), Fraction(16)) == 0


def test_usefulness_is_met_with_equality():
    # 96 / ((3 - 1) 2^3) = 6 exactly, for k = 2: 96 / 16 = 6.
    assert useful_degree(96, 3, Fraction(1), Fraction(6)) == 2
    assert useful_degree(95, 3, Fraction(1), Fraction(6)) == 0


def test_the_lemma_is_not_monotonous_in_the_degree_and_the_largest_counts():
    # d - k halves from k = d - 2 to d - 1 as 2^k doubles: both ends can be useful where nothing between is.
    assert useful_degree(96, 3, Fraction(1), Fraction(6)) == 2
    assert useful_degree(1, 2, Fraction(8), Fraction(1)) == 1


def test_one_variable_has_no_parents():
    assert useful_degree(10**9, 1, Fraction(10), Fraction(6)) == 0


def test_cells_by_hand():
    # n e / (2 d theta) = 1000 * (1/2) / (2 * 5 * 6) = 8.33
    assert useful_cells(1000, 5, Fraction(1, 2), Fraction(6)) == 8
    assert useful_cells(960, 5, Fraction(1, 2), Fraction(6)) == 8
    assert useful_cells(959, 5, Fraction(1, 2), Fraction(6)) == 7
    assert useful_cells(1, 100, Fraction(1, 10), Fraction(6)) == 1  # never nothing
