"""The predicted error against simulated noise, against runs over made-up rows, and where it says that it knows none."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from crypto.randomness import Stream
from curator.experiments.simulation import make_identities, member_of, simulate
from protocol.forecast.error import predicted
from protocol.plan.presets import make_plan
from protocol.plan.terms import Terms
from protocol.plan.typical_tables import (
    STRENGTH,
    Assumed,
    drawn,
    drawn_evenly,
    noise_believed,
    noise_left,
    spread,
    strength_of_picks,
    strength_of_strongest,
    typical_size,
)
from protocol.run.agreement import agree
from protocol.run.synthesis import synthetic_codes
from protocol.stages.methods import terms_of as work_out
from protocol.tables.distance import average_distance
from protocol.tables.marginal import project_to_simplex
from protocol.tables.schema import Schema
from tests.support.small_runs import members

ROWS = 9_000
SIZES = (16, 7, 9, 12, 5, 2, 8, 20)
DECLARED = 1.5  # measured and predicted lie within it


def schema_of(sizes: tuple[int, ...]) -> Schema:
    attributes = [
        {"name": f"a{i}", "kind": "categorical", "values": [str(v) for v in range(size)]}
        for i, size in enumerate(sizes)
    ]
    return Schema.parse({"title": "t", "attributes": attributes})


def terms_of(sizes: tuple[int, ...], epsilon: str = "1", rows: int = 15_000, **wishes: Any) -> Terms:
    schema = schema_of(sizes)
    return work_out(make_plan("run", schema, members([rows] * 3), Fraction(epsilon), **wishes), schema)


@pytest.mark.parametrize("noise", [0.0003, 0.003, 0.03])
@pytest.mark.parametrize("shape", [(2, 2), (6, 8), (8, 8)])
def test_what_is_left_of_noise_is_what_a_projection_onto_the_simplex_leaves(shape, noise):
    table = np.outer(*(spread(size)[0] for size in shape)).ravel()
    draws = np.random.default_rng(1).laplace(0, noise, (200, table.size))
    left = [np.abs(project_to_simplex(table + one, 1) - table).sum() / 2 for one in draws]
    assert noise_left(shape, noise) == pytest.approx(np.mean(left), rel=0.15)


def test_of_several_tables_the_mean_has_less_noise_but_not_less_than_what_rare_cells_gain():
    one, many = noise_left((8, 8), 0.003), noise_left((8, 8), 0.003, tables=100)
    assert one / 10 < many < one / 2


def test_categories_looked_at_in_groups_hold_all_rows_and_all_categories():
    for size in (1, 2, 8, 9, 41, 1000):
        shares, counts = spread(size)
        assert shares @ counts == pytest.approx(1)
        assert counts.sum() == size
    assert typical_size(7) == 7
    assert typical_size(90) == typical_size(91) == 91


def test_rows_drawn_one_by_one_stray_as_multinomials_do():
    table = spread(8)[0]
    draws = np.random.default_rng(2).multinomial(5_000, table, 400) / 5_000
    assert drawn((8,), 5_000) == pytest.approx(np.abs(draws - table).sum(axis=1).mean() / 2, rel=0.05)


def test_the_strongest_pairs_and_picks_that_lean_are_stronger_than_the_mean():
    strengths = np.sort(np.random.default_rng(3).exponential(STRENGTH, 200_000))[::-1]
    assert strength_of_strongest(0.2) == pytest.approx(strengths[:40_000].mean(), rel=0.02)
    weights = np.exp(5 * strengths)
    assert strength_of_picks(5) == pytest.approx((weights * strengths).sum() / weights.sum(), rel=0.02)


@pytest.mark.parametrize(
    ("epsilon", "wishes", "is_told"),
    [
        ("0.3", {}, True),
        ("2", {}, True),
        pytest.param("1", {"privacy": "zcdp", "noise": "distributed"}, True, marks=pytest.mark.exhaustive),
        pytest.param("2", {"privacy": "zcdp", "noise": "distributed"}, False, marks=pytest.mark.exhaustive),
        ("0.5", {"method": "independent"}, True),
        ("0.5", {"method": "dp-ccbn"}, True),
        ("1", {"method": "dp-subn", "update": "accumulate"}, True),
    ],
)
def test_runs_over_made_up_rows_err_as_predicted(epsilon, wishes, is_told):
    """Also where the range of errors is too wide to be told, and the usual error only serves to compare plans."""
    schema, codes = schema_of(SIZES), _rows()
    identities = make_identities(3, Stream.keyed(b"identities"))
    roster = [member_of(f"p{k}", ROWS, one) for k, one in enumerate(identities)]
    terms = agree(make_plan("run", schema, roster, Fraction(epsilon), **wishes), schema)
    errors = []
    for seed in range(2):
        stream = Stream.keyed(b"%d" % seed)
        found = simulate(terms, [list(own) for own in np.split(codes, 3, axis=1)], identities, stream, False)
        batches = synthetic_codes(terms, found.state.knowledge, terms.plan.rows, stream.child("rows"))
        synthetic = [np.concatenate(columns) for columns in zip(*batches, strict=True)]
        errors.append(average_distance(list(codes), synthetic, schema.sizes, 2))
    found = predicted(terms)
    assert found.error == (found.usual if is_told else None)
    assert 1 / DECLARED < found.usual / np.mean(errors) < DECLARED


def _rows() -> np.ndarray:
    """Few common categories, and attributes that depend, some more than others, on a hidden kind of row."""
    data = np.random.default_rng(4)
    special = data.random(3 * ROWS) < 0.2
    columns = []
    for size, follows in zip(SIZES, np.linspace(0.3, 1, len(SIZES)), strict=True):
        shares = np.repeat(*(part if i == 0 else part.astype(int) for i, part in enumerate(spread(size))))
        plain, other = (data.choice(size, 3 * ROWS, p=p) for p in (shares, data.permutation(shares)))
        columns.append(np.where(special & (data.random(3 * ROWS) < follows), other, plain).astype(np.uint8))
    return np.array(columns)


def test_of_noise_no_more_dependence_is_believed_than_tables_have():
    strengths = np.random.default_rng(5).exponential(STRENGTH, 200_000)
    for noise in (0.001, 0.05, 0.5):
        assert noise_believed((5, 6), noise) == pytest.approx(np.minimum(strengths, noise).mean(), rel=0.02)
    assert (
        noise_believed((2, 2), 0.5)
        < noise_believed((2, 3), 0.5)
        < noise_believed((2, 3), 0.5, Assumed(strength=2 * STRENGTH))
    )


def test_what_public_numbers_do_not_tell_is_not_predicted_and_says_why():
    parts = predicted(terms_of(SIZES, method="dp-subn", preset="paper"))
    alone = predicted(terms_of((5,)))
    identified = predicted(terms_of((*SIZES, 45_000)))
    assert {found.error for found in (parts, alone, identified)} == {None}
    assert "parts of columns" in parts.why
    assert "single column" in alone.why
    assert "is not public" in identified.why
    assert (parts.usual, alone.usual) == (None, None)
    assert 0 < identified.usual < 1


def test_a_range_is_narrow_where_noise_decides_and_wider_where_pairs_are_left_out():
    noisy, left_out = predicted(terms_of((2,) * 16, "0.2")), predicted(terms_of(SIZES, "1"))
    assert noisy.left_out == pytest.approx(0, abs=0.01)
    assert noisy.high / noisy.low < 4.6 < left_out.high / left_out.low
    for found in (noisy, left_out):
        assert found.low < found.error / DECLARED * 1.001
        assert found.high > found.error * DECLARED * 0.999


@pytest.mark.parametrize("rows", [600, 60_000])
def test_chance_counts_where_rows_are_few_for_the_cells_of_a_pair(rows):
    """What real rows hold by chance in the cells of a pair, no model of noisy tables holds."""
    one, other = (np.arange(1, size + 1) ** -0.5 for size in (50, 60))
    table = np.outer(one / one.sum(), other / other.sum()).ravel()
    strays = np.abs(np.random.default_rng(6).multinomial(rows, table, 20) / rows - table).sum(axis=1).mean() / 2
    assert drawn((50, 60), rows, 0.5) == pytest.approx(strays, rel=0.2)
    assert drawn((50, 60), rows, 0.5, below=0.0) == 0
    sparse, dense = (predicted(terms_of((50, 60, 4), "4", rows=number)) for number in (400, 400_000))
    assert sparse.usual > 5 * dense.usual


def test_rows_drawn_evenly_stray_less_but_not_in_cells_where_less_than_a_row_is_expected():
    assert drawn_evenly((2, 2), 10_000) == pytest.approx(0.4 * drawn((2, 2), 10_000), rel=0.01)
    assert drawn_evenly((300, 300), 100, 0.0) == pytest.approx(1, abs=0.01)
