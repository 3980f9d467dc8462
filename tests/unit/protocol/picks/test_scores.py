from fractions import Fraction
from itertools import product
from math import log2

import gmpy2
import numpy as np
import pytest

from protocol.errors import OperatorError
from protocol.picks.maximum_joint import by_dynamic_programme, by_enumeration, surplus
from protocol.picks.scores import LARGEST_ROWS, LARGEST_TABLE, mutual_information_sensitivity, scoring
from protocol.tables.domain import Domain

BINARY = Domain.of_sizes([2, 2])
GENERAL = Domain.of_sizes([3, 4])
DATA = np.random.default_rng(31)


def value(name, table, domain=BINARY):
    counts = np.array([table], dtype=np.int64)
    rule = scoring(name, int(counts.sum()), domain)
    return int(rule.scores(counts)[0]) * rule.unit


def tables(many, shape, rows):
    return DATA.multinomial(rows, DATA.dirichlet(np.ones(np.prod(shape)) * 0.4, many)).reshape(many, *shape)


def plain_information(table):
    p = table / table.sum()
    independent = p.sum(1, keepdims=True) * p.sum(0, keepdims=True)
    return sum(a * log2(a / b) for a, b in zip(p.ravel(), independent.ravel(), strict=True) if a)


def plain_distance_to_independence(table):
    rows = int(table.sum())
    child, parents = table.sum(1).tolist(), table.sum(0).tolist()
    cells = ((int(table[x, p]), child[x] * parents[p]) for x in range(len(child)) for p in range(len(parents)))
    return sum((abs(Fraction(own, rows) - Fraction(both, rows**2)) for own, both in cells), Fraction(0)) / 2


def plain_distance_to_maximum(table):
    """Equation 9 of PrivBayes, over all assignments."""
    rows = int(table.sum())
    best = Fraction(-1)
    for codes in product((0, 1), repeat=table.shape[1]):
        held = [sum(int(table[x, p]) for p, z in enumerate(codes) if z == x) for x in (0, 1)]
        best = max(best, -sum(max(Fraction(1, 2) - Fraction(rows_held, rows), Fraction(0)) for rows_held in held))
    return best


@pytest.mark.parametrize("rows", [2, 100, LARGEST_ROWS])
def test_perfect_dependence_by_hand(rows):
    table = [[rows // 2, 0], [0, rows // 2]]
    assert abs(value("I", table) - 1) <= scoring("I", rows, BINARY).unit
    assert 0 <= Fraction(1, 2) - value("R", table) < scoring("R", rows, BINARY).unit
    assert value("F", table) == 0


@pytest.mark.parametrize("rows", [4, 100, LARGEST_ROWS])
def test_independence_by_hand(rows):
    table = [[rows // 4, rows // 4], [rows // 4, rows // 4]]
    assert abs(value("I", table)) <= scoring("I", rows, BINARY).unit
    assert value("R", table) == 0
    assert value("F", table) == Fraction(-1, 2)


def test_f_by_hand():
    # X = 0 keeps 6 of 10 rows, X = 1 at most 3: the nearest maximum joint distribution is 0.1 + 0.1 + 0.2 away.
    assert value("F", [[6, 0, 0, 0], [1, 1, 1, 1]]) == Fraction(-2, 10)


@pytest.mark.parametrize("name", ["I", "F", "R"])
def test_one_row_has_a_score_and_a_sensitivity(name):
    rule = scoring(name, 1, BINARY)
    assert rule.sensitivity > 0
    scores = rule.scores(np.array([[[1, 0], [0, 0]], [[0, 0], [0, 1]]]))
    assert scores[0] == scores[1]
    assert rule.span(2) >= 0


@pytest.mark.parametrize("rows", [1, 7, 1000, 50_000, 3_000_000])
@pytest.mark.parametrize("shape", [(2, 2), (2, 8), (3, 5), (16, 40)])
def test_i_and_r_equal_the_plain_scores_to_a_step(shape, rows):
    for name, plain in (("I", plain_information), ("R", plain_distance_to_independence)):
        rule = scoring(name, rows, GENERAL)
        some = tables(5, shape, rows)
        for table, score in zip(some, rule.scores(some).tolist(), strict=True):
            assert -1e-9 <= (plain(table) - score * rule.unit) <= rule.unit * Fraction(1001, 1000) + 1e-9


@pytest.mark.parametrize("rows", [1, 7, 60_000, 1_000_000])
@pytest.mark.parametrize("cells", [1, 2, 4, 8])
def test_f_equals_the_plain_score_whichever_way_it_is_computed(cells, rows):
    rule = scoring("F", rows, BINARY)
    some = tables(3, (2, cells), rows)
    expected = [plain_distance_to_maximum(table) for table in some]
    assert [score * rule.unit for score in rule.scores(some).tolist()] == expected
    assert [(score - 2 * rows) * rule.unit for score in by_enumeration(some, rows).tolist()] == expected
    assert [(by_dynamic_programme(table, rows) - 2 * rows) * rule.unit for table in some] == expected


def test_f_of_four_and_five_parents():
    for many, cells, rows in ((2, 16, 200), (40, 16, 20_000), (2, 32, 300)):
        some = tables(many, (2, cells), rows)
        found = surplus(some, rows)
        assert found.tolist() == [by_dynamic_programme(table, rows) for table in some]


def test_f_with_sums_beyond_32_bits():
    rows = LARGEST_ROWS
    assert by_enumeration(np.array([[[rows, 0], [0, 0]]]), rows).tolist() == [rows]


def test_many_tables_are_scored_in_pieces():
    some = tables(20_000, (2, 8), 500)
    for name in "IFR":
        rule = scoring(name, 500, BINARY)
        assert np.array_equal(rule.scores(some)[-3:], rule.scores(some[-3:]))


def test_no_overflow_at_the_largest_number_of_rows():
    rows = LARGEST_ROWS
    diagonal = np.diag([rows // 40] * 40)[np.newaxis]
    rule = scoring("R", rows, GENERAL)
    assert 0 <= Fraction(39, 40) - int(rule.scores(diagonal)[0]) * rule.unit < rule.unit
    rule = scoring("I", rows, GENERAL)
    assert abs(float(int(rule.scores(diagonal)[0]) * rule.unit) - log2(40)) < 1e-9


@pytest.mark.parametrize("rows", [2, 10, 48_842, 10**8, LARGEST_ROWS])
def test_sensitivities_exceed_the_papers_by_little(rows):
    n = Fraction(rows)
    f = scoring("F", rows, BINARY)
    assert f.sensitivity * f.unit == 1 / n
    r = scoring("R", rows, GENERAL)
    assert 3 / n + 2 / n**2 <= r.sensitivity * r.unit <= (3 / n + 2 / n**2) * Fraction(1002, 1000)
    for domain, binary in ((BINARY, True), (GENERAL, False)):
        i = scoring("I", rows, domain)
        bound = mutual_information_sensitivity(rows, binary)
        assert bound < i.sensitivity * i.unit <= bound * Fraction(11, 10)


def test_lemma_4_1_by_hand():
    assert 0 <= mutual_information_sensitivity(2, True) - 1 < 1e-30
    expected = log2(1.5) + 0.5 * log2(3)
    assert abs(float(mutual_information_sensitivity(2, False)) - expected) < 1e-15
    assert abs(float(mutual_information_sensitivity(100, True)) - (log2(100) + 99 * log2(100 / 99)) / 100) < 1e-15


def test_lemma_4_1_is_attained_and_covered():
    before, after = [[0, 0], [0, 100]], [[1, 0], [0, 99]]
    rule = scoring("I", 100, BINARY)
    moved = value("I", after) - value("I", before)
    assert moved <= rule.sensitivity * rule.unit
    assert moved >= mutual_information_sensitivity(100, True) - rule.unit


def test_the_sensitivity_of_f_is_attained():
    assert value("F", [[2, 0], [0, 2]]) - value("F", [[2, 0], [1, 1]]) == Fraction(1, 4)


def test_the_sensitivity_of_r_is_nearly_attained():
    # A rare code of X meets a rare code of the parents too seldom; another rare pair meets twice as often as by chance.
    before = np.array([[1, 100, 9_899], [100, 200, 9_700], [9_899, 9_700, 960_401]])
    after = before + np.array([[-1, 0, 0], [0, 1, 0], [0, 0, 0]])
    rule = scoring("R", 10**6, GENERAL)
    moved = abs(value("R", after, GENERAL) - value("R", before, GENERAL))
    assert Fraction(29, 10) / 10**6 < moved <= rule.sensitivity * rule.unit


def test_log2_is_as_good_as_the_error_bound_of_i_assumes():
    numbers = np.unique(np.concatenate([np.arange(2, 5000), (2 ** DATA.uniform(1, 31, 20_000)).astype(np.int64)]))
    computed = numbers * np.log2(numbers)
    with gmpy2.context(precision=120):
        for number, own in zip(numbers.tolist(), computed.tolist(), strict=True):
            exact = number * gmpy2.log2(gmpy2.mpz(number))
            assert abs(gmpy2.mpfr(own) - exact) <= exact / 2**49


@pytest.mark.parametrize(
    ("name", "rows", "domain"),
    [("F", 10, GENERAL), ("G", 10, BINARY), ("R", 0, BINARY), ("R", LARGEST_ROWS + 1, BINARY)],
)
def test_what_cannot_be_scored_is_refused(name, rows, domain):
    with pytest.raises(OperatorError):
        scoring(name, rows, domain)


def test_a_family_of_too_many_cells_is_refused():
    counts = np.broadcast_to(np.int64(0), (1, 2, LARGEST_TABLE))
    with pytest.raises(OperatorError, match="too large to be scored"):
        scoring("R", 10, BINARY).scores(counts)
