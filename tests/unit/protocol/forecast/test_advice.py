"""Advice on plans: each case is found where it is, is silent where it is not, and what it recommends helps."""

import json
import re
from fractions import Fraction
from typing import Any

import pytest

from protocol.errors import AdvisedAgainst
from protocol.forecast.advice import Advice, advice, refuse_unless_meant, with_advice
from protocol.forecast.recommendation import planned
from protocol.plan.plan import Plan
from protocol.plan.terms import Terms
from protocol.tables.schema import Schema
from tests.support.small_runs import members

GOOD = (2, 5, 12, 14, 3, 4, 9)
ADULT = (16, 7, 16, 16, 16, 7, 14, 6, 5, 2, 8, 15, 16, 41, 2)


def terms_of(sizes: tuple[int, ...] = GOOD, epsilon: object = 1, rows: tuple[int, ...] = (9_000,) * 3, **wishes: Any):
    attributes = [
        {"name": f"a{place}", "kind": "categorical", "values": [f"v{value}" for value in range(size)]}
        for place, size in enumerate(sizes)
    ]
    schema = Schema.parse({"attributes": attributes})
    return planned("run", schema, members(list(rows)), Fraction(str(epsilon)), **wishes)


def said(terms: Terms, word: str) -> list[Advice]:
    return [one for one in advice(terms) if word in one.text]


def only(terms: Terms, word: str) -> Advice:
    (found,) = said(terms, word)
    return found


@pytest.mark.parametrize("wishes", [{}, {"privacy": "zcdp"}, {"method": "guided"}, {"rows": (400_000, 300_000)}])
def test_a_plan_that_works_gets_no_advice(wishes):
    assert advice(terms_of(**wishes)) == ()


def test_a_column_with_many_values_is_told_how_many_are_visible_and_a_better_grouping():
    found = only(terms_of((*GOOD, 501), rows=(2_000, 2_000, 1_000)), "a7 has 501 values for 5,000 rows")
    assert found.severity == "warning"
    visible, groups = (int(re.search(words, found.text)[1]) for words in (r"about (\d+) will", r"at most (\d+) groups"))
    assert 2 <= visible <= 20
    assert not said(terms_of((*GOOD, groups), rows=(2_000, 2_000, 1_000)), "a7 has")


def test_the_epsilon_that_it_recommends_for_such_a_column_is_enough():
    many = (*GOOD, 60)
    found = only(terms_of(many, "0.2"), "a7 has 60 values")
    needed = re.search(r"raise epsilon to about ([\d.]+)\.", found.text)[1]
    assert Fraction("0.2") < Fraction(needed) <= 8
    assert not said(terms_of(many, Fraction(needed) * Fraction(11, 10)), "a7 has")


def test_many_columns_with_many_values_are_told_shortly():
    found = advice(terms_of((60,) * 12, "0.4"))
    assert 1 <= len([one for one in found if "will be visible" in one.text]) <= 3
    assert len(found) <= 6


def test_a_column_of_identifiers_is_a_stop_whatever_the_budget():
    for epsilon in (1, 8):
        assert only(terms_of((*GOOD, 5_000), epsilon, (2_000, 3_000)), "as an identifier has").severity == "stop"
    assert not said(terms_of((*GOOD, 49), 8, (30, 30)), "as an identifier has")


@pytest.mark.parametrize(
    ("epsilon", "severity"), [("9.99", None), ("10", "warning"), ("19.9", "warning"), ("20", "stop"), ("10000", "stop")]
)
def test_an_epsilon_that_protects_little_or_nobody(epsilon, severity):
    found = said(terms_of(epsilon=epsilon), "protects")
    assert [one.severity for one in found] == ([] if severity is None else [severity])


def test_a_table_that_is_all_noise_is_a_stop_and_the_epsilon_that_it_recommends_is_enough():
    noise = only(terms_of(ADULT, "0.01", (5_000, 5_000)), "into wrong categories")
    assert noise.severity == "stop"
    needed = re.search(r"Raise epsilon to about ([\d.]+),", noise.text)[1]
    assert not said(terms_of(ADULT, needed, (5_000, 5_000)), "into wrong categories")
    assert "Epsilon 8 would not be enough" in only(terms_of(ADULT, "0.1", (8, 7)), "hides nearly all").text


def test_few_rows_are_told_with_what_noise_does_to_them():
    assert only(terms_of((2, 3), 5, (200, 100)), "only 300 rows").severity == "warning"
    assert not said(terms_of((2, 3), 5, (300, 200)), "only")


def test_relationships_that_noise_hides_are_told():
    assert only(terms_of((60,) * 12, "0.4"), "Nothing but single columns").severity == "warning"
    assert only(terms_of((*GOOD, 60), "0.5"), "Hardly any relationship of a7 (60 values)").severity == "warning"


def test_a_party_with_almost_all_rows_and_insiders_that_nobody_counts_on():
    assert only(terms_of(rows=(90_000, 5_000, 5_000)), "holds 90% of the rows").severity == "note"
    assert not said(terms_of(rows=(89_000, 6_000, 5_000)), "of the rows")
    assert only(terms_of(insiders=0), "Insiders is 0 among 3 parties").severity == "warning"
    assert not said(terms_of(insiders=0, noise="local"), "Insiders")
    assert not said(terms_of(insiders=0, rows=(5_000,) * 6), "Insiders")


def test_the_most_severe_advice_comes_first():
    found = [one.severity for one in advice(terms_of((*GOOD, 60_000), 25, (54_000, 1_000), insiders=0))]
    assert found == sorted(found, key=("stop", "warning", "note").index)
    assert {*found} == {"stop", "warning", "note"}


@pytest.mark.parametrize("wishes", [{"preset": "paper"}, {"method": "independent"}, {"method": "dp-ccbn"}])
@pytest.mark.parametrize("sizes", [(5,), (2,) * 4, GOOD])
def test_every_method_and_every_schema_can_be_advised(sizes, wishes):
    for rows in ((3, 2), (30_000, 20_000)):
        assert all(one.text.isprintable() for one in advice(terms_of(sizes, rows=rows, **wishes)))


def test_a_plan_says_against_which_advice_it_is_started_and_keeps_its_text_without_any():
    good, bad = terms_of(), terms_of(epsilon=20)
    assert with_advice(good) is good
    assert "against" not in good.plan.model_dump(mode="json")
    against = with_advice(bad)
    assert against.plan_hash != bad.plan_hash
    (sentence,) = against.plan.against
    assert "protects nobody" in sentence
    assert Plan.model_validate_json(against.plan.model_dump_json()) == against.plan
    refuse_unless_meant(good.plan, anyway=False)
    refuse_unless_meant(against.plan, anyway=True)
    with pytest.raises(AdvisedAgainst, match=r"protects nobody.*anyway"):
        refuse_unless_meant(against.plan, anyway=False)


@pytest.mark.parametrize("against", [["a\u202eb"], [""], ["x" * 1001], ["x"] * 21])
def test_sentences_that_cannot_be_shown_are_no_part_of_a_plan(against):
    text = terms_of().plan.model_dump(mode="json") | {"against": against}
    with pytest.raises(ValueError, match="against"):
        Plan.model_validate_json(json.dumps(text))


def test_what_several_rows_of_a_person_cost_is_said_where_a_plan_allows_them() -> None:
    told = terms_of(rows_per_person=4, parties_per_person=2)
    assert "noise is 4 times as large" in only(told, "rows at a party").text
    assert "2 times the noise" in only(told, "rows at 2 parties").text
    assert {one.severity for one in said(told, "A person may have")} == {"note"}
    assert not said(terms_of(), "A person may have")
