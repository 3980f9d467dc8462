"""The worst that a person with several rows, or at several parties, can do: searched exhaustively on small tables."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pytest

from protocol.picks import by_model
from protocol.picks.scores import SCORES, scoring
from protocol.plan.plan import Plan
from protocol.privacy.mechanisms import DEFINITIONS
from protocol.stages.methods import steps
from protocol.tables.counting import Rows
from protocol.tables.domain import Domain
from tests.support.small_runs import plan_of

CELLS = 4


def tables(rows: int) -> Iterator[np.ndarray]:
    """Every table of so many rows over a few cells."""
    for filled in combinations_with_replacement(range(CELLS), rows):
        yield np.bincount(filled, minlength=CELLS)


def changed(counts: np.ndarray, most: int) -> list[np.ndarray]:
    """Every table that differs in the values of at most `most` rows."""
    moved = [after for after in tables(int(counts.sum())) if np.abs(after - counts).sum() <= 2 * most]
    assert len(moved) > 1
    return moved


def largest_moves(rows: int, parties: int) -> tuple[int, int]:
    """The largest distance in L1, and the largest squared distance in L2, between sums with and without the change."""
    moves = {tuple(after - before) for before in tables(rows + 1) for after in changed(before, rows)}
    sums = [np.sum(chosen, axis=0) for chosen in product(sorted(moves), repeat=parties)]
    return max(int(np.abs(one).sum()) for one in sums), max(int((one**2).sum()) for one in sums)


@pytest.mark.parametrize(("rows", "parties"), [(1, 1), (2, 1), (3, 1), (1, 2), (2, 2), (1, 3)])
def test_the_noise_of_a_sum_is_worth_its_budget_at_the_worst_change_and_no_less(rows, parties):
    l1, l2 = largest_moves(rows, parties)
    assert (l1, l2) == (2 * rows * parties, 2 * (rows * parties) ** 2)
    plan, budget = plan_of(rows_per_person=rows, parties_per_person=parties), Fraction(3, 7)
    unit = plan.in_sums(budget)
    assert plan.definition.rate(unit) * l1 == budget  # a cell's loss is the rate, for every count that it moves
    concentrated = DEFINITIONS["zcdp"]
    assert concentrated.rate(concentrated.of_row(budget, rows * parties)) * l2 / 2 == budget  # |x|^2 / 2 s


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_rows_that_move_together_move_a_score_by_at_most_their_number_times_its_sensitivity(rows):
    domain = Domain.of_sizes([2, 2])
    for name, before in product(SCORES, [*tables(rows), *tables(rows + 1), *tables(rows + 3)]):
        rule = scoring(name, int(before.sum()), domain)
        after = np.stack([before, *changed(before, rows)]).reshape(-1, 2, 2)
        scores = rule.scores(after)
        assert np.abs(scores - scores[0]).max() <= rows * rule.sensitivity


def test_the_bound_on_scores_is_met():
    """Three rows that move together move score F by three rows' worth: fewer would be understated."""
    rule = scoring("F", 6, Domain.of_sizes([2, 2]))
    scores = rule.scores(np.stack([[6, 0, 0, 0], [3, 0, 0, 3]]).reshape(-1, 2, 2))
    assert abs(int(scores[1] - scores[0])) == 3 * rule.sensitivity


@pytest.mark.parametrize("rows", [2, 3])
def test_rows_that_move_together_move_the_distance_from_the_model_as_little(rows):
    domain = Domain.of_sizes([2, 2])
    reference = Rows(domain, [np.tile(column, by_model.REFERENCE_ROWS // 4) for column in ([0, 0, 1, 1], [0, 1, 0, 1])])
    scores = {}
    for before in tables(rows + 1):
        cells = np.repeat(np.arange(CELLS), before)
        own = Rows(domain, [cells // 2, cells % 2])
        scores[tuple(before)] = int(by_model.gains(own, reference, [(0, 1)], 0.1)[0])
    most = rows * by_model.sensitivity(rows + 1)
    for before in tables(rows + 1):
        for after in changed(before, rows):
            assert abs(scores[tuple(after)] - scores[tuple(before)]) <= most


PLANS = [
    {"update": "accumulate"},
    {"update": "joint", "rounds": 3},
    {"update": "turns"},
    {"method": "guided"},
    {"method": "privbayes"},
    {"method": "privabn"},
    {"method": "jtree"},
    {"method": "dp-ccbn"},
    {"method": "independent"},
]
ROWS = (300, 20, 10, 1)  # the parties pick unequally, and the last may pick nothing


@pytest.mark.parametrize("privacy", ["pure", "zcdp"])
@pytest.mark.parametrize("wishes", PLANS, ids=lambda wishes: "-".join(map(str, wishes.values())))
def test_a_party_s_price_is_the_worst_that_a_run_costs_anybody_with_rows_there(wishes, privacy):
    for rows, parties in product((1, 3), range(1, len(ROWS) + 1)):
        plan = plan_of(
            rows=ROWS, rows_per_person=rows, parties_per_person=parties, insiders=0, privacy=privacy, **wishes
        )
        for party in range(plan.parties):
            worst = max(lost(plan, {party, *others}) for others in combinations(range(plan.parties), parties - 1))
            spends = [step.spends.get(party, Fraction(0)) for step in steps(plan, 5)]
            assert sum(spends) == worst <= plan.definition.budget(plan.epsilon, plan.delta)


def lost(plan: Plan, at: set[int]) -> Fraction:
    """What a run costs a person with all rows allowed at these parties: by the definition, step by step."""
    return sum((_lost_in(plan, step, at) for step in steps(plan, 5)[1:]), Fraction(0))


def _lost_in(plan, step, at):
    if not step.is_alone:
        return of_rows(plan, step.budget, plan.rows_per_person * len(at))
    answering = [party for party in step.parties if party in at and not _is_blind(plan, step)]
    return len(answering) * of_rows(plan, step.budget, plan.rows_per_person)


def _is_blind(plan, step):
    """Whether all that is placed is the run's first variable, which is drawn without a look at rows."""
    return step.stage == "initial" and plan.picks[step.parties[0]] == 1 and not any(plan.picks[: step.parties[0]])


def of_rows(plan, budget, rows):
    return budget * (rows if plan.privacy == "pure" else rows**2)


def test_a_party_is_charged_for_other_parties_with_its_first_answer_after_joining():
    plan = plan_of(rows=ROWS, parties_per_person=2, update="accumulate")
    found = steps(plan, 5)
    assert not found[0].spends
    alone = {p: sum(s.spends[p] for s in found[2:] if s.is_alone and p in s.spends) for p in range(4)}
    for party in range(4):
        first = next(step for step in found[1:] if party in step.parties)
        others = max(spend for other, spend in alone.items() if other != party)
        assert first.spends[party] == plan.split[0] + others


def test_sums_of_few_parties_lose_less_than_the_plan_pays_for():
    plan = plan_of(rows=ROWS, parties_per_person=3, rows_per_person=2)
    assert lost(plan, {0}) < lost(plan, {0, 1}) < lost(plan, {0, 1, 2}) <= plan.epsilon
