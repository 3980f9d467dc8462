"""Whatever a plan says, it is agreed on or refused in words: nothing else comes out of judging it.

A curator writes plans, and a party that stopped at one would find it in its inbox again.
"""

from fractions import Fraction
from functools import cache
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.errors import PlanError
from protocol.options import Choice, EncodingName, Method, Noise, Privacy, ScoreName, Update
from protocol.plan.plan import Estimate, Plan, TableBudgets, Views
from protocol.run.agreement import agree
from protocol.tables.schema import Schema
from tests.support.effort import examples
from tests.support.small_runs import SMALL_BITS, plan_of

ROWS = (30, 20, 10)
SHARES = st.sampled_from([Fraction(0), Fraction(1, 10), Fraction(1), Fraction(5)])
FEW = st.lists(st.integers(0, 3), max_size=4).map(tuple)
CHANGES = {
    "method": st.sampled_from(get_args(Method)),
    "update": st.sampled_from(get_args(Update)),
    "noise": st.sampled_from(get_args(Noise)),
    "privacy": st.sampled_from(get_args(Privacy)),
    "delta": st.sampled_from([Fraction(0), Fraction(1, 10**9)]),
    "encoding": st.sampled_from(get_args(EncodingName)),
    "score": st.sampled_from(get_args(ScoreName)),
    "choice": st.sampled_from(get_args(Choice)),
    "views": st.sampled_from(get_args(Views)),
    "estimate": st.sampled_from(get_args(Estimate)),
    "table_budgets": st.sampled_from(get_args(TableBudgets)),
    "merging": st.booleans(),
    "insiders": st.integers(0, 3),
    "rounds": st.integers(1, 3),
    "degree": st.sampled_from([None, 0, 1, 9]),
    "split": st.lists(SHARES, min_size=1, max_size=5).map(tuple),
    "picks": FEW,
    "further": FEW,
    "epsilon": st.sampled_from([Fraction(1), Fraction(20)]),
}


@cache
def schema(attributes: int) -> Schema:
    names = [f"a{number}" for number in range(attributes)]
    return Schema.parse({"attributes": [{"name": name, "kind": "categorical", "values": ["n", "y"]} for name in names]})


@cache
def usual(attributes: int, method: str, update: str | None) -> Plan:
    return plan_of(schema(attributes), ROWS, 20, method=method, update=update)


def judged(plan: Plan, attributes: int) -> tuple[list[Fraction], str]:
    """Every party's price of a plan that is agreed on, or why it is refused."""
    try:
        terms = agree(plan, schema(attributes), SMALL_BITS)
    except PlanError as refusal:
        return [], str(refusal)
    return [terms.price(party) for party in range(plan.parties)], ""


@settings(max_examples=examples(600), deadline=None)
@given(
    attributes=st.sampled_from([1, 2, 3]),
    method=st.sampled_from(get_args(Method)),
    update=st.sampled_from([None, *get_args(Update)]),
    changes=st.fixed_dictionaries({}, optional=CHANGES),
)
def test_a_plan_is_agreed_on_or_refused(attributes: int, method: str, update: str | None, changes: Any) -> None:
    plan = usual(attributes, method, update if method == "dp-subn" else None).model_copy(update=changes)
    prices, refusal = judged(plan, attributes)
    assert "\n" not in refusal
    assert max(prices, default=0) <= plan.epsilon


@pytest.mark.parametrize("attributes", [1, 2, 3])
@pytest.mark.parametrize("epsilon", ["0.01", "1", "100"])
@pytest.mark.parametrize("method", get_args(Method))
def test_every_method_plans_tables_of_few_columns(method: str, epsilon: str, attributes: int) -> None:
    for rows in ((2, 1), ROWS):
        update = "turns" if method == "dp-subn" else None
        plan = plan_of(schema(attributes), rows, epsilon, method=method, update=update, noise="distributed")
        _, refusal = judged(plan, attributes)
        assert not refusal or "too wide" in refusal
