from fractions import Fraction
from math import comb

import numpy as np
import pytest

from crypto.randomness import Stream
from protocol.errors import OperatorError
from protocol.network.limits import Limits
from protocol.network.parent_sets import candidates, count_candidates
from protocol.picks.by_score import choose, family_scores
from protocol.picks.scores import scoring
from protocol.tables.counting import Rows
from protocol.tables.domain import Domain, Variable

DATA = np.random.default_rng(41)
STREAM = Stream.keyed(b"selection", "test")
CERTAIN = Fraction(10**6)


def rows_with_one_dependence(sizes, child, parents, count=2000):
    """Independent columns, but the child follows from its parents."""
    columns = [DATA.integers(0, size, count).astype(np.uint16) for size in sizes]
    columns[child] = (sum(columns[p] for p in parents) % sizes[child]).astype(np.uint16)
    return Rows(Domain.of_sizes(sizes), columns)


def plain_counts(rows, family):
    child, parents = family
    return rows.table((child, *parents)).reshape(1, rows.domain.sizes[child], -1)


def test_candidates_are_every_unplaced_variable_with_each_maximal_set():
    domain = Domain.of_sizes([2, 2, 2, 3])
    assert candidates(domain, [0, 1], [2, 3], Limits(degree=1)) == [(2, (0,)), (2, (1,)), (3, (0,)), (3, (1,))]
    assert candidates(domain, [0, 1], [2, 3], Limits(cells=8)) == [(2, (0, 1)), (3, (0,)), (3, (1,))]
    assert candidates(domain, [], [2], Limits(cells=8)) == [(2, ())]


def test_candidates_are_counted_without_being_built():
    domain = Domain.of_sizes([2] * 200)
    placed, unplaced = range(100), range(100, 200)
    assert count_candidates(domain, placed, unplaced, Limits(degree=3), 10**9) == 100 * comb(100, 3)
    assert count_candidates(domain, placed, unplaced, Limits(degree=3), 1000) == 1000


@pytest.mark.parametrize("mechanism", ["permute-and-flip", "exponential"])
@pytest.mark.parametrize("score", ["I", "R", "F"])
def test_with_budget_enough_the_one_dependence_is_found(score, mechanism):
    rows = rows_with_one_dependence([2] * 6, 4, (0, 2))
    families = candidates(rows.domain, [0, 1, 2, 3], [4, 5], Limits(degree=2))
    assert choose(rows, families, score, CERTAIN, mechanism, STREAM) == (4, (0, 2))


@pytest.mark.parametrize("mechanism", ["permute-and-flip", "exponential"])
@pytest.mark.parametrize("score", ["I", "R"])
def test_it_is_found_among_variables_of_any_size(score, mechanism):
    rows = rows_with_one_dependence([4, 3, 5, 2, 6], 4, (0, 1))
    families = candidates(rows.domain, [0, 1, 2, 3], [4], Limits(cells=100))
    assert choose(rows, families, score, CERTAIN, mechanism, STREAM) == (4, (0, 1))


def test_a_single_candidate_is_chosen_at_any_budget():
    rows = rows_with_one_dependence([2, 2], 1, (0,), count=1)
    assert choose(rows, [(1, (0,))], "R", Fraction(1, 1000), "permute-and-flip", STREAM) == (1, (0,))


@pytest.mark.parametrize("score", ["I", "R", "F"])
@pytest.mark.parametrize("degree", [0, 1, 3, 6])
def test_binary_families_have_the_scores_of_their_plain_counts(score, degree):
    rows = rows_with_one_dependence([2] * 9, 7, (1, 3), count=300)
    families = candidates(rows.domain, list(range(7)), [7, 8], Limits(degree=degree))
    rule = scoring(score, rows.count, rows.domain)
    expected = [int(rule.scores(plain_counts(rows, family))[0]) for family in families]
    assert family_scores(rows, families, rule).tolist() == expected
    assert family_scores(rows, families, rule).tolist() == expected  # now remembered


def test_tables_that_fill_the_memory_are_scored_one_after_another():
    rows = rows_with_one_dependence([2001, 2100, 3], 0, (1,), count=50)
    families = [(0, (1,)), (1, (0,)), (2, (0,))]
    rule = scoring("R", rows.count, rows.domain)
    expected = [int(rule.scores(plain_counts(rows, family))[0]) for family in families]
    assert family_scores(rows, families, rule).tolist() == expected


def test_generalised_families_have_the_scores_of_their_plain_counts():
    variables = [Variable(f"v{i}", size, i) for i, size in enumerate([4, 3, 4])]
    domain = Domain((*variables, Variable("v0*", 2, 0, (0, 0, 1, 1))))
    rows = Rows(domain, [DATA.integers(0, size, 100).astype(np.uint8) for size in (4, 3, 4)])
    families = candidates(domain, [0, 1], [2], Limits(cells=24))
    assert families == [(2, (0,)), (2, (1, 3))]
    for score in ("I", "R"):
        rule = scoring(score, rows.count, domain)
        expected = [int(rule.scores(plain_counts(rows, family))[0]) for family in families]
        assert family_scores(rows, families, rule).tolist() == expected


def test_scores_of_different_names_are_remembered_apart():
    rows = rows_with_one_dependence([2] * 3, 2, (0, 1))
    families = [(2, (0, 1))]
    found = {name: family_scores(rows, families, scoring(name, rows.count, rows.domain)).tolist() for name in "IFR"}
    assert found["F"] != found["R"] != found["I"]


def test_f_is_refused_where_a_variable_is_not_binary():
    rows = rows_with_one_dependence([2, 3], 0, (1,))
    with pytest.raises(OperatorError, match="use I or R"):
        choose(rows, [(0, (1,))], "F", CERTAIN, "exponential", STREAM)
