"""Estimation: exact tables are met, noisy ones are weighed by their variance, and contradictions are averaged."""

import numpy as np
import pytest

from protocol.model.estimation import Weighted, fit
from protocol.model.evidence import Room
from protocol.model.run_model import model_of, network_of
from protocol.privacy.mechanisms import PURE
from protocol.tables.domain import Domain
from protocol.tables.marginal import Table

ROOM = Room(1 << 15)
SIZES = (2, 3, 4)


def random_table(seed=0, rows=1000):
    return (
        np.random.default_rng(seed)
        .multinomial(rows, np.random.default_rng(seed + 1).dirichlet(np.ones(24)))
        .reshape(SIZES)
    )


def weighted(table):
    return Weighted(table.variables, table.counts, np.full(table.counts.shape, 1 / table.variance))


def fitted(tables, total=1000, sizes=SIZES):
    even = [np.full(size, 1 / size) for size in sizes]
    return fit(sizes, [table.variables for table in tables], [weighted(table) for table in tables], total, even)


def test_exact_tables_are_answered_exactly_and_what_they_leave_open_is_independent():
    whole = random_table()
    tables = [Table((0, 1), whole.sum(axis=2), 1.0), Table((1, 2), whole.sum(axis=0), 1.0)]
    model = fitted(tables)
    for table in tables:
        assert model.shares(table.variables) == pytest.approx(table.counts / 1000, abs=2e-4)


def test_precise_tables_of_skewed_columns_are_met():
    draw, total, variance = np.random.default_rng(3), 10**7, 2000.0
    sizes = (16, 8, 16, 7, 14, 6, 5, 2, 16, 2, 16, 16, 9, 2)
    above = {1: 0, 3: 0, 7: 0, 4: 3, 5: 3, 2: 4, 6: 2, 8: 4, 9: 2, 10: 2, 11: 2, 12: 2, 13: 2}
    columns = {0: draw.dirichlet(np.full(sizes[0], 0.2))}
    tables, exact = [], {}
    for below, parent in above.items():
        given = 0.3 * draw.dirichlet(np.full(sizes[below], 0.2))
        given = given + 0.7 * draw.dirichlet(np.full(sizes[below], 0.2), sizes[parent])
        pair = columns[parent][:, None] * given
        columns[below] = pair.sum(axis=0)
        variables, pair = ((parent, below), pair) if parent < below else ((below, parent), pair.T)
        exact[variables] = pair
        tables.append(Table(variables, np.rint(pair * total + draw.normal(0, variance**0.5, pair.shape)), variance))
    model = fit(sizes, [*exact], [weighted(table) for table in tables], total, [columns[v] for v in range(len(sizes))])
    apart = [np.abs(model.shares(pair) - table).sum() / 2 for pair, table in exact.items()]
    assert np.mean(apart) < 0.0008  # half as many steps leave twice as much


def test_two_answers_to_one_question_are_weighed_by_their_variances():
    one, other = np.array([600.0, 400.0]), np.array([300.0, 700.0])
    model = fitted([Table((0,), one, 1.0), Table((0,), other, 3.0)], sizes=(2,))
    assert model.shares((0,)) == pytest.approx([0.525, 0.475], abs=1e-3)


def test_negative_counts_become_small_shares_and_shares_add_up():
    noisy = np.array([[500.0, -80.0, 90.0], [300.0, 250.0, -60.0]])
    model = fitted([Table((0, 1), noisy, 100.0)])
    shares = model.shares((0, 1))
    assert shares.sum() == pytest.approx(1)
    assert shares.min() >= 0
    assert shares[0, 1] < 0.01


def test_a_more_precise_table_of_one_variable_corrects_a_pair():
    pair = np.array([[250.0, 250.0, 0.0], [250.0, 250.0, 0.0]])
    tables = [Table((0, 1), pair, 10000.0), Table((0,), np.array([800.0, 200.0]), 1.0)]
    assert fitted(tables).shares((0,)) == pytest.approx([0.8, 0.2], abs=0.01)


def test_the_network_of_a_model_has_every_variable_and_every_measured_pair():
    domain = Domain.of_sizes(SIZES)
    whole = random_table()
    tables = [Table((0, 1), whole.sum(axis=2), 1.0), Table((1, 2), whole.sum(axis=0), 1.0)]
    network = network_of(tables, domain, 1000, PURE, ROOM)
    assert sorted(family.child for family in network.families) == [0, 1, 2]
    assert {tuple(sorted(edge)) for edge in network.edges()} == {(0, 1), (1, 2)}


def test_views_of_three_are_used_as_their_pairs():
    domain = Domain.of_sizes(SIZES)
    whole = np.zeros(SIZES)
    whole[0, 0, 0] = whole[1, 1, 1] = 500
    model = model_of([Table((0, 1, 2), whole, 1.0)], domain, 1000, PURE, ROOM)
    assert model.model.shares((0, 1))[0, 0] == pytest.approx(0.5, abs=0.01)


def test_a_negative_weight_takes_out_what_another_table_says_again():
    pair, single = np.array([[30.0, 30.0], [30.0, 10.0]]), np.array([50.0, 50.0])
    tables = [Table((0, 1), pair, 1.0), Table((0,), pair.sum(axis=1), -2.0), Table((0,), single, 0.1)]
    # Without its rows' sums the pair says nothing about its first variable alone.
    assert fitted(tables, 100, (2, 2)).shares((0,)) == pytest.approx([0.5, 0.5], abs=1e-3)


def test_every_table_speaks_for_its_single_variables_even_where_none_of_its_pairs_is_held():
    random, domain, one = np.random.default_rng(5), Domain.of_sizes((2,) * 9), np.array([0.3, 0.7])
    rows, deviation = 10_000, 400.0
    cells = rows * np.einsum("i,j,k->ijk", one, one, one)
    tables = [
        Table((0, a, a + 1), cells + random.normal(size=(2, 2, 2)) * deviation, deviation**2) for a in range(1, 8)
    ]
    found = model_of(tables, domain, rows, PURE, Room(0)).model.shares((0,))
    both = [table.counts.sum(axis=(1, 2)) / rows for table in tables]
    answers = [(first + 1 - second) / 2 for first, second in both]  # as there are exactly so many rows
    assert found[0] == pytest.approx(np.mean(answers), abs=5e-3)
    assert np.std(answers) > 0.02


def test_pairs_of_one_view_do_not_count_what_they_share_again():
    random, domain, rows = np.random.default_rng(8), Domain.of_sizes((2, 2, 2, 2)), 10_000
    whole = random.multinomial(rows, random.dirichlet(np.full(16, 0.3))).reshape((2,) * 4).astype(float)
    view = Table((0, 1, 2, 3), whole, 16.0)
    other = Table((0,), np.array([5000.0, 5000.0]), 8 * 16.0)  # as precise as the view about this variable
    found = model_of([view, other], domain, rows, PURE, ROOM).model.shares((0,))[0]
    assert found == pytest.approx((whole[0].sum() / rows + 0.5) / 2, abs=2e-3)


def test_what_is_left_where_weights_cancel_upsets_nothing_whatever_it_says():
    pair, left_over = Table((0, 1), np.array([[40.0, 10.0], [10.0, 40.0]]), 1.0), np.array([1e22, -1e22])
    alone = fitted([pair], 100, (2, 2))
    both = fitted([pair, Table((0,), left_over, 1e30)], 100, (2, 2))
    assert both.shares((0, 1)) == pytest.approx(alone.shares((0, 1)), abs=1e-6)
    assert alone.shares((0, 1)) == pytest.approx(pair.counts / 100, abs=1e-3)


def pairs_of(correlations, deviation, seed, rows=20_000):
    """Noisy pairs of a hub with other variables, and the true cells' difference in each."""
    random, cells = np.random.default_rng(seed), rows / 4 * np.array([[1, -1], [-1, 1]])
    return [
        Table((0, 1 + place), rows / 4 + correlation * cells + random.normal(size=(2, 2)) * deviation, deviation**2)
        for place, correlation in enumerate(correlations)
    ]


def correlation(shares):
    return float((shares * [[1, -1], [-1, 1]]).sum())


def said_and_found(correlations, deviation, seed, rows=20_000):
    tables = pairs_of(correlations, deviation, seed, rows)
    model = fitted(tables, rows, (2,) * (len(tables) + 1))
    said, found = ([correlation(of(t)) for t in tables] for of in (lambda t: t.counts / rows, _answer(model)))
    return np.array(said), np.array(found)


def _answer(model):
    return lambda table: model.shares(table.variables)


def test_noise_alone_is_hardly_believed_and_dependence_is():
    said, found = said_and_found([0.0] * 20, 400.0, 7)
    assert np.abs(found).mean() < 0.5 * np.abs(said).mean()
    said, found = said_and_found([0.5] * 10 + [-0.5] * 10, 400.0, 7)
    assert found == pytest.approx(said, abs=0.05)
    said, found = said_and_found([0.0] * 19 + [0.8], 4.0, 7)
    assert found == pytest.approx(said, abs=2e-3)


def test_the_prior_lowers_the_error_of_many_weak_pairs():
    true = np.random.default_rng(3).normal(size=20) * 0.03
    said, found = said_and_found(true, 400.0, 4)
    assert np.abs(found - true).mean() < 0.8 * np.abs(said - true).mean()


def test_a_view_without_noise_is_answered_as_it_is():
    whole = np.random.default_rng(1).multinomial(1000, np.random.default_rng(2).dirichlet(np.ones(24))).reshape(SIZES)
    found = model_of([Table((0, 1, 2), whole, 0.0)], Domain.of_sizes(SIZES), 1000, PURE, ROOM).model
    for pair in ((0, 1), (0, 2), (1, 2)):
        others = tuple({0, 1, 2} - set(pair))
        assert found.shares(pair) == pytest.approx(whole.sum(axis=others) / 1000, abs=5e-3)
