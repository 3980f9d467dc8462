"""What a budget means for one person: the factor is never too small, and no promise stands without its conditions."""

import math
import re
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.plan.promises import People, about_one_person, odds_factor, owners_conditions, promises, protected_from
from tests.support.small_runs import plan_of


@pytest.mark.parametrize(
    ("epsilon", "factor"),
    [
        ("0", "1.00"),
        ("4/5", "2.23"),
        ("1", "2.72"),
        ("1/3", "1.40"),
        ("2", "7.39"),
        ("7", "1096.64"),
        ("8", "more than 1,000"),
    ],
)
def test_the_factor_is_e_to_the_epsilon_rounded_up(epsilon: str, factor: str) -> None:
    assert odds_factor(Fraction(epsilon)) == factor


@given(st.fractions(min_value=0, max_value=7))
def test_the_factor_is_never_below_the_truth_and_at_most_a_cent_above(epsilon: Fraction) -> None:
    shown = float(odds_factor(epsilon))
    truth = math.exp(epsilon)
    assert truth * (1 - 1e-12) <= shown <= truth * (1 + 1e-12) + 0.01


@pytest.mark.parametrize("epsilon", [Fraction(10**9), Fraction(10**40), Fraction(10**40, 3)])
def test_no_epsilon_is_too_large_to_be_told(epsilon: Fraction) -> None:
    assert odds_factor(epsilon) == "more than 1,000"
    assert "protects nobody" in about_one_person(epsilon, Fraction(0))


@pytest.mark.parametrize(
    ("insiders", "words"),
    [
        (0, "the curator and the public, but from none of the other parties"),
        (1, "the curator, the public, and any 1 other party"),
        (3, "the curator, the public, and any 3 other parties that pool what they know"),
    ],
)
def test_it_is_said_from_whom_one_is_protected(insiders: int, words: str) -> None:
    assert protected_from(insiders) == words
    first = owners_conditions(insiders)[0]
    assert first.startswith(f"The people in your table are protected from {words}. ")
    assert first.endswith("They are not protected from the curator together with other parties.")


def test_every_condition_of_the_specification_is_named() -> None:
    told = " ".join(owners_conditions(1))
    for condition in ("one row, at one party", "follow the protocol", "number of your rows", "together with", "2^-94"):
        assert condition in told


def test_delta_is_never_kept_quiet() -> None:
    delta = Fraction(1, 10**9)
    told = about_one_person(Fraction(4, 5), delta)
    assert "a factor 2.23, plus delta = 1/1000000000, compared with" in told
    assert "delta" not in about_one_person(Fraction(4, 5), Fraction(0))
    plan = plan_of(privacy="zcdp")
    assert plan.delta
    for promise in promises(plan)[:2]:
        assert f"δ = {plan.delta}" in promise.text
    assert "(ε, δ)-differentially private" in promises(plan)[0].text
    assert "δ" not in promises(plan_of())[0].text


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 10**9)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(8)])
def test_odds_are_compared_with_other_values_of_the_same_row(epsilon: Fraction, delta: Fraction) -> None:
    """Rows may depend on each other, so that no factor bounds what an attacker learns in all."""
    told = about_one_person(epsilon, delta)
    assert re.search(r"person's row holding (any )?other values\.$", told)
    assert "attacker's odds" not in told


def test_what_is_over_is_told_as_it_was() -> None:
    assert "has left" in about_one_person(Fraction(1), Fraction(0), is_over=True)
    assert "Nothing that depends on anybody's row left" in about_one_person(Fraction(0), Fraction(0), is_over=True)


@pytest.mark.parametrize(
    ("people", "words"),
    [
        (
            People(),
            "Every person has one row, at one party. Anyone with several rows, or with rows at several parties,",
        ),
        (People(3), "Every person has at most 3 rows, at one party. Anyone with more rows, or with rows at several"),
        (People(3, 2), "Every person has at most 3 rows, at each of at most 2 parties. Anyone with more rows, or with"),
        (
            People(1, 2),
            "Every person has one row, at each of at most 2 parties. Anyone with several rows, or with rows",
        ),
    ],
)
def test_owners_read_for_whom_the_promise_holds_and_whether_that_was_checked(people: People, words: str) -> None:
    told = owners_conditions(1, people)
    assert told[1].startswith(words)
    assert told[2].startswith("Rows per person at your hospital: not checked: no person key.")
    checked = owners_conditions(1, replace(people, is_checked=True))[2]
    assert checked.startswith("Rows per person at your hospital: checked, by your column of person keys.")


def test_a_plan_says_at_which_parties_rows_per_person_were_checked() -> None:
    plan = plan_of(rows_per_person=3, parties_per_person=2)
    members = [
        one.model_copy(update={"rows_per_person": bound}) for one, bound in zip(plan.members, (3, None, 1), strict=True)
    ]
    told = promises(plan.model_copy(update={"members": tuple(members)}))
    assert "the values of one person's rows (at most 3 rows, at each of at most 2 parties)" in told[0].text
    assert told[2].text == "This holds for everybody who has at most 3 rows, at each of at most 2 parties."
    assert told[2].condition.startswith(
        "Rows per person: checked, by person keys, at party-1, party-3; not checked: no person key at party-2."
    )
    assert "one person's rows change" in told[1].text


def test_of_many_parties_few_are_named() -> None:
    told = promises(plan_of(rows=(10,) * 14))[2].condition
    assert "party-10 and 4 more" in told
    assert "party-11" not in told
