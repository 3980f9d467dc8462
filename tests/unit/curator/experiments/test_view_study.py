"""Views and the marginals that they answer: coverings, agreement, and the table of maximum entropy."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from crypto.randomness import Stream
from curator.experiments.view_study import (
    DESIGNS,
    agreeing,
    averaged_error,
    covering_design,
    covering_triples,
    marginal,
    marginal_errors,
    reconciled,
)
from protocol.tables.counting import Rows
from protocol.tables.encoding import Encoding
from protocol.tables.marginal import Table
from tests.support.small_runs import BITS, MIXED, random_codes

ROWS = 400


def rows_of(schema):
    encoding = Encoding.of(schema, "native")
    (codes,) = random_codes(schema, [ROWS])
    return Rows(encoding.domain, encoding.encode(codes)), encoding.domain


def noisy(rows, variables, deviation=9.0):
    counts = rows.table(variables)
    noise = np.random.default_rng(sum(variables)).normal(0, deviation, counts.shape)
    return Table(variables, counts + noise, deviation**2)


@pytest.mark.parametrize(("make", "ways"), [(covering_design, 2), (covering_triples, 3)])
@pytest.mark.parametrize("count", [3, 5, 16, 23])
def test_every_set_lies_in_a_view(make, ways, count):
    for k in {ways, min(6, count), 8}:
        views = make(count, k)
        covered = {part for view in views for part in combinations(view, ways)}
        assert covered == set(combinations(range(count), ways))
        assert max(map(len, views)) == min(k, count)


def test_the_error_of_a_design_by_hand():
    sizes, views = (2, 2, 2), [(0, 1), (0, 2), (1, 2), (0, 1, 2)]
    pair = 1 / (1 / 4 + 1 / 8)  # from its own view and from the view of all three
    assert averaged_error(sizes, views) == pytest.approx(16 * 3 * pair)
    assert averaged_error(sizes, [(0, 1, 2)], 3) == pytest.approx(8)


def test_views_agree_on_all_that_they_share():
    rows, domain = rows_of(MIXED)
    views = agreeing([noisy(rows, one) for one in [(0, 1, 2), (1, 2, 3), (0, 2, 4), (1, 4)]], domain, ROWS)
    for one, other in combinations(views, 2):
        shared = tuple(v for v in one.variables if v in other.variables)
        found = [view.project(shared, domain).counts for view in (one, other)]
        np.testing.assert_allclose(*found, atol=1e-9)
        assert one.counts.sum() == pytest.approx(ROWS)


def test_what_views_share_is_the_mean_of_what_they_say():
    rows, domain = rows_of(BITS)
    exact, other = Table((0, 1), rows.table((0, 1)), 1.0), noisy(rows, (1, 2))
    views = agreeing([exact, Table(other.variables, other.counts, 3.0)], domain, ROWS)
    said = [one.project((1,), domain).counts for one in (exact, other)]
    said = [one + (ROWS - one.sum()) / 2 for one in said]
    np.testing.assert_allclose(views[0].project((1,), domain).counts, (3 * said[0] + said[1]) / 4)


def test_a_marginal_inside_a_view_is_that_views():
    rows, domain = rows_of(MIXED)
    views = reconciled([noisy(rows, (0, 1, 2), 0.1), noisy(rows, (2, 3), 0.1)], domain, ROWS)
    np.testing.assert_allclose(marginal(views, (0, 2), domain, ROWS), rows.table((0, 2)), atol=2)


def test_entropy_is_the_largest_that_views_allow():
    """Columns that no view holds together are independent given the columns between them."""
    rows, domain = rows_of(MIXED)
    views = [Table(one, rows.table(one).astype(float), 1.0) for one in [(0, 1), (1, 2), (3,)]]
    found = marginal(views, (0, 1, 2, 3), domain, ROWS)
    chain = rows.table((0, 1))[:, :, None] * rows.table((1, 2))[None] / rows.table((1,))[None, :, None]
    np.testing.assert_allclose(found, chain[..., None] * rows.table((3,)) / ROWS, rtol=1e-6)


def test_all_pairs_of_three_columns_are_kept_at_once():
    rows, domain = rows_of(BITS)
    pairs = [(0, 1), (0, 2), (1, 2)]
    found = marginal([Table(one, rows.table(one).astype(float), 1.0) for one in pairs], (0, 1, 2), domain, ROWS)
    for one in pairs:
        dropped = tuple(axis for axis in range(3) if axis not in one)
        np.testing.assert_allclose(found.sum(axis=dropped), rows.table(one), atol=0.1)


@pytest.mark.parametrize("design", DESIGNS)
def test_errors_vanish_with_the_noise_up_to_what_views_do_not_hold(design):
    rows, domain = rows_of(BITS)
    errors = [
        marginal_errors(rows, domain, design, Fraction(epsilon), (1, 2, 3), Stream.keyed(b"views"))
        for epsilon in ("0.05", "1000000")
    ]
    assert all(errors[1][ways] < errors[0][ways] for ways in errors[0])
    assert errors[1]["2-way"] < 1e-3
    assert errors[1]["3-way"] < (1e-3 if design == "priview-triples" else 0.05)
