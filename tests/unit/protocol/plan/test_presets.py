from fractions import Fraction

import pytest

from protocol.errors import PlanError
from protocol.plan.plan import Plan
from protocol.plan.presets import make_plan
from tests.support.small_runs import BITS, MIXED, members, plan_of

ROWS = (50, 30, 20)


def plan(schema=MIXED, method="dp-subn", preset="sound", epsilon="4/5", **wishes) -> Plan:
    return make_plan("name", schema, members(ROWS), Fraction(epsilon), method, preset, **wishes)


def test_the_paper_preset_is_the_papers():
    paper = plan(preset="paper")
    assert (paper.insiders, paper.noise, paper.update, paper.encoding) == (0, "selected", "replace", "binary")
    assert (paper.score, paper.choice, paper.theta, paper.frontier_theta) == ("I", "exponential", 6, 2)
    assert (paper.cover_objective, paper.cover_budgets) == ("paper", "equal")
    assert paper.noise_shares == 1


def test_the_paper_preset_quarters_epsilon_but_prices_its_updates_honestly():
    quarter = Fraction(1, 5)
    assert plan(preset="paper").split == (quarter, quarter, quarter / 3, quarter)
    assert plan(preset="paper", update="accumulate").split == (quarter,) * 4


def test_the_paper_preset_deals_variables_out_evenly_and_the_last_takes_the_rest():
    assert plan(BITS, preset="paper").picks == (1, 1, 3)
    assert plan(MIXED, preset="paper").picks == (3, 3, 3)  # 2 + 2 + 2 + 2 + 1 bits


def test_the_sound_preset_deals_them_out_by_rows():
    assert plan(MIXED).picks == (3, 1, 1)  # 2.5, 1.5, 1.0: the tie goes to the earlier


def test_the_sound_preset_protects_against_one_insider():
    chosen = plan()
    assert (chosen.insiders, chosen.noise_shares, chosen.update, chosen.encoding) == (1, 2, "turns", "native")
    assert chosen.noise == "selected"
    assert sum(chosen.split) == chosen.epsilon == Fraction(4, 5)


@pytest.mark.parametrize(
    ("schema", "method", "preset", "score"),
    [
        (MIXED, "dp-subn", "sound", "M"),
        (BITS, "dp-subn", "sound", "M"),
        (BITS, "dp-ccbn", "sound", "F"),
        (BITS, "dp-subn", "paper", "I"),
        (BITS, "privbayes", "paper", "F"),
        (BITS, "independent", "paper", "F"),  # PrivBayes has its own score
        (MIXED, "independent", "sound", "R"),
    ],
)
def test_the_score_follows_from_method_and_domain(schema, method, preset, score):
    assert plan(schema, method, preset).score == score


@pytest.mark.parametrize("method", ["privbayes", "independent"])
def test_independent_and_privbayes_have_the_papers_theta_and_beta(method):
    chosen = plan(method=method, epsilon="40")
    assert chosen.theta == 4
    assert chosen.split == (12, 28)


def test_wishes_come_first_and_none_is_no_wish():
    chosen = plan(insiders=2, theta=None, rows=7, key_bits=None)
    assert (chosen.insiders, chosen.theta, chosen.rows, chosen.key_bits) == (2, 6, 7, 3072)
    assert plan().rows == 100


def test_wishes_for_whole_families_are_heard_in_a_model_of_every_table():
    chosen = plan(update="joint")
    assert (chosen.score, chosen.estimate, chosen.picks_pairs) == ("R", "graphical-model", False)
    assert plan(encoding="binary").estimate == "network"


def test_no_paper_has_method_guided():
    with pytest.raises(PlanError, match="method guided is in no paper: choose preset sound"):
        plan(method="guided", preset="paper")


@pytest.mark.parametrize("method", ["dp-subn", "privbayes", "privabn", "jtree", "dp-ccbn", "independent"])
@pytest.mark.parametrize("preset", ["paper", "sound"])
def test_every_preset_adds_up_to_epsilon_at_most(method, preset):
    assert sum(plan(method=method, preset=preset).split) <= Fraction(4, 5)


@pytest.mark.parametrize(
    ("wish", "value"),
    [("insiders", -1), ("rounds", 0), ("degree", -1), ("key_bits", 17), ("rows", 0), ("noise", "none")],
)
def test_a_wish_out_of_range_is_one_sentence(wish, value):
    with pytest.raises(PlanError) as refused:
        plan(**{wish: value})
    text = str(refused.value)
    assert text.startswith(f"{wish.replace('_', ' ')} of {value!r} cannot be planned: ")
    assert "\n" not in text


# The plan itself


def test_equal_plans_have_equal_hashes_and_every_field_counts():
    plan_one = plan_of()
    assert plan_one.hash() == plan_of().hash()
    changes = {
        "run": "other",
        "epsilon": Fraction(2),
        "split": tuple(reversed(plan_one.split)),
        "insiders": 0,
        "key_bits": 1024,
        "rows": 61,
        "members": tuple(reversed(plan_one.members)),
    }
    hashes = {plan_one.model_copy(update={name: value}).hash() for name, value in changes.items()}
    assert len(hashes | {plan_one.hash()}) == len(changes) + 1


def test_a_plan_cannot_be_changed():
    with pytest.raises(ValueError, match="frozen"):
        plan_of().epsilon = Fraction(100)
