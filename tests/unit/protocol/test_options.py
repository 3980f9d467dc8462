"""The list of plan options: complete, in plain words, and true about defaults."""

from fractions import Fraction
from typing import get_args

import pytest

from protocol.options import PLAN_OPTIONS, Noise, PlanOption
from protocol.plan.plan import Plan
from tests.support.small_runs import BITS, MIXED, plan_of

OPTIONS = list(PLAN_OPTIONS.values())


def test_the_options_are_fields_of_the_plan() -> None:
    assert PLAN_OPTIONS.keys() < Plan.model_fields.keys()
    assert all(PLAN_OPTIONS[name].name == name for name in PLAN_OPTIONS)


@pytest.mark.parametrize(
    ("name", "kind"), [("noise", "choice"), ("insiders", "number"), ("degree", "number"), ("delta", "exact")]
)
def test_the_kind_follows_from_the_type(name: str, kind: str) -> None:
    assert PLAN_OPTIONS[name].kind == kind


def test_a_list_of_exact_numbers_is_a_kind_too() -> None:
    assert PLAN_OPTIONS["split"].kind == "exacts"
    assert PLAN_OPTIONS["noise"].choices == get_args(Noise)
    assert PLAN_OPTIONS["split"].choices == ()


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_the_words_are_there_and_fit_together(option: PlanOption) -> None:
    words = option.words
    assert words.label[0].isupper()
    for text in (words.help, words.default):
        assert text
        assert not text.endswith(".")
        assert "|" not in text  # it goes into a table
        assert "\n" not in text
    assert bool(words.metavar) != bool(option.choices)
    assert option.sentence.startswith(words.help)
    assert words.concerns in option.sentence
    assert words.is_required or option.sentence.endswith(f"({words.default})")


@pytest.mark.parametrize("name", ["method", "preset", "noise", "privacy", "update", "encoding", "score"])
def test_choices_that_need_words_have_them(name: str) -> None:
    option = PLAN_OPTIONS[name]
    for choice in option.choices:
        assert any(f"{choice}{mark}" in option.words.help for mark in (":", ",")), choice


def said(name: str) -> str:
    """The default's first word: what the preset takes for dp-subn."""
    return PLAN_OPTIONS[name].words.default.split(";")[0]


def test_the_defaults_are_those_of_the_sound_preset() -> None:
    plan = plan_of(MIXED, preset="sound", key_bits=None)
    for name in ("preset", "privacy", "insiders", "noise", "update", "encoding", "choice", "theta", "key_bits"):
        assert said(name) == str(getattr(plan, name)), name
    assert said("score").startswith(f"{plan.score} where pairs are picked")
    assert said("method") == "recommended"
    assert plan.rows == plan.total_rows
    assert plan.degree is None
    assert Fraction(said("delta")) == plan_of(MIXED, preset="sound", privacy="zcdp").delta


def test_what_is_said_of_other_defaults_is_true() -> None:
    paper = plan_of(preset="paper")
    for name in ("insiders", "update", "encoding", "score"):
        assert f"with preset paper {getattr(paper, name)}" in PLAN_OPTIONS[name].words.default
    assert f"preset paper {paper.choice}" in PLAN_OPTIONS["choice"].words.default
    families = plan_of(BITS, update="joint")
    assert f"joint: {families.rounds}" in PLAN_OPTIONS["rounds"].words.default
    assert (
        f"with methods guided, privbayes, privabn and jtree {plan_of(method='guided').noise}"
        in PLAN_OPTIONS["noise"].words.default
    )
    assert f"else {families.score} for bits" in PLAN_OPTIONS["score"].words.default
    assert f"{plan_of(MIXED, update='joint').score} otherwise" in PLAN_OPTIONS["score"].words.default
    theta = plan_of(method="independent").theta
    assert f"with methods privbayes and independent {theta}" in PLAN_OPTIONS["theta"].words.default
