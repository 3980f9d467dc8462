from fractions import Fraction
from itertools import pairwise
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.options import PICKING_RULES, Update
from protocol.plan.step import Step
from protocol.stages.methods import METHODS, steps
from protocol.stages.pick_pairs import PickPairs
from protocol.stages.registry import UPDATES
from tests.support.small_runs import BITS, MIXED, plan_of

E = (Fraction(1, 10), Fraction(2, 10), Fraction(3, 10), Fraction(4, 10))


def plan(update="accumulate", insiders=0, split=E, **wishes):
    if wishes.get("method", "dp-subn") == "dp-subn":
        wishes["update"] = update
    return plan_of(insiders=insiders, split=split, **wishes)


def prices(plan, variables=5):
    found = steps(plan, variables)
    return [sum(step.charge(party) for step in found) for party in range(plan.parties)]


def test_steps_of_the_sequential_mode():
    names = [step.name for step in steps(plan(picks=(3, 0, 2)), 5)]
    assert names == [
        "joining",
        "correlations",
        *["initial/1", "initial/3"],
        *["update/1", "update/2", "update/3"],
        "parameters",
    ]


def test_everybody_answers_a_pass_and_one_party_an_update():
    found = {step.name: step.parties for step in steps(plan(), 5)}
    assert found["correlations"] == found["parameters"] == found["joining"] == (0, 1, 2)
    assert found["initial/2"] == (1,)
    assert found["update/2"] == (1,)


def test_joint_updates_share_their_budget_over_the_rounds():
    found = [step for step in steps(plan("joint", rounds=4), 5) if step.stage == "update"]
    assert [step.budget for step in found] == [Fraction(3, 40)] * 4
    assert all(step.parties == (0, 1, 2) for step in found)


def test_the_update_rules_that_pick_pairs_are_those_with_a_stage_of_picks():
    stages = {rule: UPDATES[rule].stages for rule in get_args(Update)}
    assert {rule for rule, own in stages.items() if any(isinstance(one, PickPairs) for one in own)} == PICKING_RULES


def test_phases_without_budget_are_left_out():
    nothing = Fraction(0)
    names = [step.name for step in steps(plan(split=(nothing, nothing, nothing, E[3])), 5)]
    assert names == ["joining", "parameters"]
    assert [step.name for step in steps(plan(method="dp-ccbn", split=(nothing, E[3])), 5)] == ["joining", "parameters"]


def test_dp_ccbn_places_one_variable_per_iteration():
    found = steps(plan(method="dp-ccbn", split=(Fraction(1), Fraction(2))), 5)
    assert [(step.name, step.budget) for step in found[1:-1]] == [
        (f"candidates/{i}", Fraction(1, 4)) for i in range(1, 5)
    ]
    assert found[-1].budget == 2


def test_dp_ccbn_over_one_variable_compares_nothing():
    assert [s.name for s in steps(plan(method="dp-ccbn", split=(E[0], E[1])), 1)] == ["joining", "parameters"]


# Prices by hand, K = 3


@pytest.mark.parametrize("insiders", [0, 1, 2])
def test_sequential_mode_costs_every_party_each_budget_once(insiders):
    assert prices(plan("accumulate", insiders)) == [1, 1, 1]


@pytest.mark.parametrize("insiders", [0, 1, 2])
def test_joint_mode_costs_the_same(insiders):
    assert prices(plan("joint", insiders, rounds=7)) == [1, 1, 1]


def test_replace_charges_a_party_once_for_every_later_release():
    # (K - k + 1) e3: 3, 2, 1 times 0.3 beside 0.1 + 0.2 + 0.4.
    assert prices(plan("replace")) == [Fraction(16, 10), Fraction(13, 10), Fraction(10, 10)]


def test_the_very_first_variable_costs_nothing():
    one_each = plan(picks=(1, 3, 1))
    assert prices(one_each) == [Fraction(8, 10), 1, 1]
    first_skipped = plan(picks=(0, 1, 4))
    assert prices(first_skipped) == [Fraction(8, 10), Fraction(8, 10), 1]


def test_who_places_nothing_pays_nothing_for_placing():
    assert prices(plan(picks=(5, 0, 0))) == [1, Fraction(8, 10), Fraction(8, 10)]


@pytest.mark.parametrize("method", ["privbayes", "privabn", "jtree", "dp-ccbn", "independent"])
def test_two_budgets_cost_their_sum(method):
    assert prices(plan(method=method, split=(Fraction(1, 3), Fraction(2, 3)))) == [1, 1, 1]


def test_the_paper_preset_costs_the_first_party_exactly_epsilon():
    for epsilon in ("0.8", "1/7"):
        paper = plan_of(MIXED, preset="paper", epsilon=epsilon)
        assert prices(paper, 9)[0] == Fraction(epsilon) == max(prices(paper))


def test_a_step_without_a_charge_is_free():
    assert Step("joining", "joining", (0,)).charge(0) == 0


@st.composite
def generated_plans(draw):
    method = draw(st.sampled_from(["dp-subn", "guided", "privbayes", "privabn", "jtree", "dp-ccbn", "independent"]))
    update = draw(st.sampled_from(["accumulate", "replace", "joint", "turns"]))
    parties = draw(st.integers(2, 5))
    picks = draw(st.lists(st.integers(0, 5), min_size=parties, max_size=parties))
    budgets = st.sampled_from([Fraction(0), Fraction(1, 7), Fraction(2)])
    split = [draw(budgets) for _ in METHODS[method].budgets]
    if method in ("dp-subn", "guided") and not split[0]:
        split[2] = Fraction(0)  # agreement refuses updates without correlations
        if method == "guided" or update == "turns":
            split[0] = Fraction(1, 7)  # and picks by the model without a first model
    split[-1] = Fraction(1, 3)
    return plan_of(
        BITS,
        draw(st.lists(st.integers(1, 100), min_size=parties, max_size=parties)),
        method=method,
        split=tuple(split),
        picks=tuple(picks),
        **({"update": update} if method == "dp-subn" else {}),
        further=(1,) * parties,
        rounds=draw(st.integers(1, 4)),
        insiders=draw(st.integers(0, parties - 1)),
    )


@given(generated_plans(), st.integers(1, 9))
@settings(deadline=None, max_examples=150)
def test_every_schedule_obeys_the_transition_table(plan, variables):
    found = steps(plan, variables)
    stages = [step.stage for step in found]
    assert stages[0] == "joining"
    assert all(later in METHODS[plan.method].order[earlier] for earlier, later in pairwise(stages))
    assert len({step.name for step in found}) == len(found)
    assert all(step.parties for step in found)
    assert all(set(step.charges) <= set(step.parties) for step in found)


@given(generated_plans(), st.integers(2, 9))
@settings(deadline=None, max_examples=150)
def test_no_price_exceeds_what_the_budgets_say(plan, variables):
    exposures = plan.parties if plan.rule == "replace" else 1
    weights = (1, 1, exposures, 1) if plan.method in ("dp-subn", "guided") else (1, 1)
    most = sum(budget * times for budget, times in zip(plan.split, weights, strict=True))
    assert max(prices(plan, variables)) <= most


def test_every_transition_can_happen():
    """The picture drawn from the table has no arrow that no run takes."""
    nothing, some = Fraction(0), Fraction(1, 10)
    seen = {method: set() for method in METHODS}
    plans = [
        plan(split=(e1, e2, e3, some), update=update)
        for e1 in (nothing, some)
        for e2 in (nothing, some)
        for e3 in ((nothing, some) if e1 else (nothing,))
        for update in ("accumulate", "joint")
    ]
    for method, views in (("guided", "pairs"), ("guided", "single"), ("dp-subn", "pairs"), ("dp-subn", "halves")):
        update = {"update": "turns"} if method == "dp-subn" else {"rounds": 2}
        for e2, e3 in ((some, some), (some, nothing), (nothing, some), (nothing, nothing)):
            wishes = {"method": method, "views": views, "split": (some, e2, e3, some), "further": (1, 1, 1)}
            plans += [plan_of(**wishes, **update, edges=part) for part in (nothing, some)]
            if views == "pairs":
                asking = {"dependence": some, "alone_below": some}
                plans += [plan_of(**wishes, **update, **asking, edges=part) for part in (nothing, some)]
    plans.append(plan(method="jtree", split=(some, some), views="halves"))
    for method in ("privbayes", "privabn", "jtree", "dp-ccbn"):
        plans += [plan(method=method, split=(e1, some)) for e1 in (nothing, some)]
    plans.append(plan(method="independent", split=(some, some)))
    alone = plan_of(update="turns", views="single", split=(some, nothing, nothing, some), further=(0, 0, 0))
    for one, variables in [*((one, 5) for one in plans), (alone, 1)]:  # a single column has no pairs
        stages = [step.stage for step in steps(one, variables)]
        seen[one.method] |= set(pairwise(stages))
    for name, method in METHODS.items():
        assert seen[name] == {(earlier, later) for earlier, allowed in method.order.items() for later in allowed}
