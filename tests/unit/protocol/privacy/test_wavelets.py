"""The price of wavelet noise at the worst change of one row, searched exhaustively, and what ranges and groups gain."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from protocol.plan.trees import wavelets_help, wavelets_of
from protocol.privacy.mechanisms import PURE, ZCDP, PrivacyDefinition
from protocol.privacy.wavelets import MANY, Wavelet, dearest_change, ordered_wavelet, taxonomy_wavelet
from protocol.tables.schema import Schema

DEFINITIONS = [PURE, ZCDP]
WAVELETS = [
    *(ordered_wavelet(ordered, size) for ordered, size in [(2, 2), (3, 3), (4, 5), (7, 7), (8, 9), (13, 14), (16, 16)]),
    taxonomy_wavelet([[0, 3, 1], [[2, 5], [4, 7, 6]], 8]),
    taxonomy_wavelet([[[1, 0]], 2]),
]


def coefficients(wavelet: Wavelet) -> np.ndarray:
    """One row for each category: the coefficients of a table that holds one row there."""
    return wavelet.tree.coefficients(np.eye(len(wavelet.tree.order), dtype=np.int64))


def cost(wavelet: Wavelet, definition: PrivacyDefinition, before: int, after: int) -> Fraction:
    """What a change of category costs at a budget of 1, from the noise that is drawn: losses or divergences add up."""
    moved = np.abs(coefficients(wavelet)[after] - coefficients(wavelet)[before])
    rates = [definition.rate(share) for share in wavelet.shares(definition)]
    by_node = [rates[level] for level, _ in wavelet.tree.nodes]
    # A Laplace noise loses its rate for each count that it moves; a Gaussian one costs x^2 / 2 s.
    of_one = [int(x) if definition is PURE else Fraction(int(x) ** 2, 2) for x in moved]
    return sum((rate * x for rate, x in zip(by_node, of_one, strict=True)), Fraction(0))


@pytest.mark.parametrize("definition", DEFINITIONS, ids=["pure", "zcdp"])
@pytest.mark.parametrize("wavelet", WAVELETS, ids=lambda own: f"{len(own.tree.order)} categories")
def test_the_dearest_change_of_a_row_costs_the_budget_exactly(wavelet: Wavelet, definition: PrivacyDefinition) -> None:
    changes = combinations(range(len(wavelet.tree.order)), 2)
    assert max(cost(wavelet, definition, *pair) for pair in changes) == 1


def test_whatever_the_division_over_levels_the_dearest_change_is_found() -> None:
    wavelet = ordered_wavelet(6, 7)
    for budgets in ([1, 0, 0, 0], [0, 0, 0, 5], [3, 1, 2, 7], [0, 4, 1, 1]):
        by_node = np.array([budgets[level] for level, _ in wavelet.tree.nodes])
        rows = coefficients(wavelet)
        worst = max(Fraction(int((by_node * (a - b) ** 2).sum()), 2) for a, b in combinations(rows, 2))
        assert dearest_change(wavelet.tree, [Fraction(one) for one in budgets], ZCDP.cost_of_two) == worst


def queries(wavelet: Wavelet) -> list[Sequence[int]]:
    """Places of the tree that are counted together."""
    count = len(wavelet.tree.order)
    if wavelet.groups:
        return [*([place] for place in range(count)), *(range(*group) for group in wavelet.groups)]
    return [range(first, end) for first in range(count) for end in range(first + 1, count + 1) if end - first < count]


@pytest.mark.parametrize("definition", DEFINITIONS, ids=["pure", "zcdp"])
@pytest.mark.parametrize("wavelet", WAVELETS[2:], ids=lambda own: f"{len(own.tree.order)} categories")
def test_the_gain_is_the_mean_variance_of_all_queries(wavelet: Wavelet, definition: PrivacyDefinition) -> None:
    tree, budget = wavelet.tree, Fraction(1, 1000)
    variances = [definition.variance(definition.rate(budget * share)) for share in wavelet.shares(definition)]
    spread = np.array([tree.counts(0, unit) for unit in np.eye(len(tree.order) - 1)])[:, list(tree.order)]
    whole = sum(
        float((spread[:, list(one)].sum(axis=1) ** 2 * tree.by_node(variances)).sum()) for one in queries(wavelet)
    )
    count, plain = len(tree.order), definition.variance(definition.rate(budget))
    beside = sum(plain * len(one) * (count - len(one)) / count for one in queries(wavelet))
    assert wavelet.gain(definition) == pytest.approx(whole / beside)
    of_cells = (spread**2 * tree.by_node(variances)[:, None]).sum() / count
    assert wavelet.noise(variances).variance == pytest.approx(of_cells)


def test_ranges_gain_with_gaussian_noise_and_lose_with_laplace_noise_below_many_hundreds_of_values() -> None:
    assert [round(ordered_wavelet(size, size).gain(ZCDP), 2) for size in (16, 32, 100, 256)] == [0.86, 0.68, 0.42, 0.23]
    assert [round(ordered_wavelet(size, size).gain(PURE), 2) for size in (32, 100, 512)] == [2.96, 2.68, 1.22]
    assert ordered_wavelet(1000, 1000).gain(PURE) < 1


def test_trees_are_for_columns_with_many_values_and_an_order_or_a_taxonomy() -> None:
    codes = [f"{letter}{number}" for letter in "ABCD" for number in range(8)]
    attributes = [
        {"name": "age", "kind": "integer", "min": 0, "max": MANY - 1, "missing": ["?"]},
        {"name": "few", "kind": "integer", "min": 0, "max": MANY - 2},
        {"name": "code", "kind": "categorical", "values": codes, "taxonomy": {"prefix": [1]}, "missing": [""]},
        {"name": "name", "kind": "categorical", "values": codes},
        {"name": "day", "kind": "date", "min": "2020-01-01", "max": "2022-12-31", "resolution": "month"},
    ]
    found = wavelets_of(Schema.parse({"attributes": attributes}))
    assert list(found) == [0, 2, 4]
    assert found[0].tree.order == tuple(range(MANY + 1))
    assert found[0].tree.levels[0] == ((0, MANY, MANY + 1),)  # the missing category has no place in the order
    assert found[2].groups == ((0, 8), (8, 16), (16, 24), (24, 32))


@pytest.mark.parametrize(("values", "definition", "helps"), [(100, ZCDP, True), (100, PURE, False), (50, ZCDP, False)])
def test_recommended_plans_take_them_where_the_variance_of_ranges_is_half_or_less(
    values: int, definition: PrivacyDefinition, helps: bool
) -> None:
    schema = Schema.parse({"attributes": [{"name": "n", "kind": "integer", "min": 1, "max": values}]})
    assert wavelets_help(schema, definition) == helps == (wavelets_of(schema)[0].gain(definition) <= 0.5)
