"""Which plans ask how strongly columns depend, and with which part and bound."""

import re
from fractions import Fraction
from math import sqrt
from typing import Any

import pytest

from protocol.forecast.coverage_by_views import evidence_of_columns
from protocol.forecast.error import evidence_of, predicted
from protocol.plan.plan import Plan
from protocol.plan.rationale import reasons
from protocol.tables.dependence import sensitivity
from protocol.tables.schema import Schema
from tests.support.small_runs import plan_of, terms_of

ROWS = (22_000,) * 4


def bits(count: int, values: int = 2) -> Schema:
    texts = [str(value) for value in range(values)]
    return Schema.parse(
        {"attributes": [{"name": f"c{i}", "kind": "categorical", "values": texts} for i in range(count)]}
    )


def planned(schema: Schema, epsilon: object = "0.8", **wishes: Any) -> Plan:
    return plan_of(schema, ROWS, epsilon, **({"method": "guided", "insiders": 1} | wishes))


@pytest.mark.parametrize("method", ["guided", "dp-subn"])
@pytest.mark.parametrize("epsilon", ["0.2", "0.8", "1.6"])
def test_fifty_columns_of_two_values_are_asked_about_and_forty_are_not(method: str, epsilon: str) -> None:
    own = {"method": method} | ({"update": "turns"} if method == "dp-subn" else {})
    plan = planned(bits(50), epsilon, **own)
    assert plan.views == "pairs"
    assert 0 < plan.dependence <= Fraction(3, 100)
    assert 0 < plan.alone_below < Fraction(1, 20)
    assert sum(plan.split) + plan.dependence_budget == plan.epsilon
    fewer = planned(bits(40), epsilon, **own)
    assert (fewer.views, fewer.dependence, fewer.alone_below) == ("pairs", 0, 0)


@pytest.mark.parametrize(("values", "asked", "not_asked"), [(3, 32, 20), (4, 24, 12)])
def test_fewer_columns_suffice_where_they_have_more_values(values: int, asked: int, not_asked: int) -> None:
    """A view of columns with more values has more cells, and so more noise."""
    assert planned(bits(asked, values), 4).dependence
    assert not planned(bits(not_asked, values), 4).dependence


@pytest.mark.parametrize("count", [16, 50, 100])
def test_no_plan_asks_with_zcdp_where_views_bring_columns_hardly_more_noise(count: int) -> None:
    assert not planned(bits(count), privacy="zcdp").dependence


def test_noise_of_the_answer_is_small_beside_the_bound_and_no_more_is_spent_than_that_takes() -> None:
    for count in (50, 80):
        plan = planned(bits(count), 2)
        budget = plan.in_sums(plan.dependence_budget)
        deviations = [
            sqrt(plan.noise_mode.retained_variance(plan.definition.rate_of_number(own, sensitivity((2,) * count))))
            for own in (budget, budget * (1 - Fraction(1, 1000) / plan.dependence))
        ]
        assert deviations[0] <= float(plan.alone_below) * plan.total_rows / 2.5 < deviations[1]


def test_more_columns_need_a_smaller_part() -> None:
    parts = [planned(bits(count), 4).dependence for count in (50, 64, 100)]
    assert parts == sorted(parts, reverse=True)
    assert parts[0] > 2 * parts[-1]


@pytest.mark.parametrize(
    "wishes",
    [
        {"views": "pairs"},
        {"split": (Fraction(7, 10), Fraction(0), Fraction(0), Fraction(1, 10))},
        {"dependence": Fraction(0)},
        {"ways": 3, "target": "c1"},
    ],
)
def test_nothing_is_asked_where_the_operator_has_decided(wishes: dict[str, Any]) -> None:
    assert not planned(bits(50), **wishes).dependence


def test_nothing_is_asked_where_what_is_left_would_not_bear_views() -> None:
    """Whatever the budget is, a plan that asks counts views, and others may."""
    plans = [planned(bits(50), Fraction(epsilon, 1000)) for epsilon in range(130, 190, 3)]
    assert all(plan.views == "pairs" for plan in plans if plan.dependence)
    silent = [planned(bits(50), plan.epsilon, dependence=Fraction(0)).views for plan in plans]
    assert [plan.views for plan in plans] == silent
    assert {plan.views for plan in plans} == {"pairs", "single"}
    assert any(plan.views == "pairs" and not plan.dependence for plan in plans)


def test_a_plan_that_asks_is_still_the_recommended_one_in_its_own_words() -> None:
    terms = terms_of(bits(50), ROWS, "0.8", method="guided")
    told = " ".join(reasons(terms))
    assert "as requested" not in told
    assert "With this budget every pair of columns can be counted, several pairs at a time in views." in told
    assert "of the budget finds out first" in told


def test_the_prediction_counts_columns_alone_for_tables_that_hardly_depend() -> None:
    asking = terms_of(bits(50), ROWS, "0.8", method="guided")
    silent = terms_of(bits(50), ROWS, "0.8", method="guided", dependence=Fraction(0))
    one, other = predicted(asking), predicted(silent)
    assert one.usual == pytest.approx(other.usual, rel=0.05)  # the question takes 3 % of the budget
    assert other.low is not None
    low = re.search(r"lie between (0\.\d+) and", one.why)
    assert low is not None, "a wider range is told in the reason why there is no prediction"
    assert float(low[1]) < other.low / 2


def test_a_table_that_is_taken_for_independent_is_predicted_as_columns_alone() -> None:
    terms = terms_of(bits(50), ROWS, "0.8", method="guided")
    (views,), columns = evidence_of(terms), evidence_of_columns(terms)
    assert columns.single[2] < views.single[2] / 4
    assert not columns.pairs
    assert columns.kinds == views.kinds
