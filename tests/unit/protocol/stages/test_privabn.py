"""Method privabn: what is chosen among at each moment, how often at most, and when a family is finished."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from protocol.picks.by_score import family_scores, noise_costs
from protocol.picks.scores import scoring
from protocol.plan.terms import Terms
from protocol.stages.definitions.privabn import most_choices, noise_of_cell, options
from protocol.stages.registry import stage_of
from protocol.tables.schema import Schema
from tests.support.small_runs import BITS, MIXED, NO_NOISE, Driver, random_codes, terms_of

ROWS = (4000, 3000, 2000)


def privabn(schema=BITS, rows=ROWS, epsilon=10, **wishes) -> Terms:
    return terms_of(schema, rows, epsilon, **({"method": "privabn", "noise": "local"} | wishes))


def test_a_variable_is_chosen_with_one_parent_or_none_and_then_parent_by_parent():
    terms = privabn()
    assert set(options(terms, [1, 3], None)) == {
        *((child, ()) for child in (0, 2, 4)),
        *((child, (parent,)) for child in (0, 2, 4) for parent in (1, 3)),
    }
    assert options(terms, [1, 3, 4], (0, (3,))) == [(0, (3,)), (0, (1, 3)), (0, (3, 4))]


def test_generalised_parents_are_offered_too_and_no_variable_twice():
    terms = privabn(MIXED, encoding="hierarchical")
    domain = terms.domain
    base = next(v for v in range(domain.count) if len(domain.variants[v]) > 1)
    child = next(v for v in range(domain.count) if v != base)
    for variant in domain.variants[base]:
        grown = options(terms, [base], (child, (variant,)))
        assert grown == [(child, (variant,))]
    assert {parents for own, parents in options(terms, [base], None) if own == child} == {
        (),
        *((variant,) for variant in domain.variants[base]),
    }


def test_no_family_is_offered_that_is_larger_than_theta_admits():
    terms = privabn(MIXED, epsilon=1)
    for family in (None, (0, (1,)), (4, (1,))):
        for child, parents in options(terms, [1, 2, 3], family):
            assert terms.limits.admits(terms.domain, child, parents)


@pytest.mark.parametrize("picks", [(5, 0, 0), (2, 2, 1), (0, 0, 5)])
def test_the_choices_of_all_parties_are_at_most_the_parents_that_all_variables_may_have(picks):
    terms = privabn(picks=picks, degree=2, theta=Fraction(1))
    assert sum(most_choices(terms, party) for party in range(3)) == 0 + 1 + 2 + 2 + 2
    assert [most_choices(terms, party) > 0 for party in range(3)] == [
        sum(picks[:party]) + own > 1 and own > 0 for party, own in enumerate(picks)
    ]


def test_a_data_owner_is_told_of_every_choice_that_may_be_made():
    terms = privabn(picks=(3, 0, 2))
    told = {step.parties[0]: stage_of(terms, step).most_choices(terms, step.parties[0]) for step in terms.steps[1:-1]}
    assert told == {0: 0 + 1 + 2, 2: 3 + 4}
    pairs = terms_of(BITS, ROWS, 10, method="guided", views="single", split=(1, 2, 3, 4), further=(2, 1, 0))
    found = [stage_of(pairs, step).most_choices(pairs, 0) for step in pairs.steps if step.stage == "further"]
    assert found[0] == 2


def test_without_parents_variables_are_placed_without_reading_rows():
    terms = privabn(degree=0, split=(Fraction(1), Fraction(9)))
    assert [most_choices(terms, party) for party in range(3)] == [0, 0, 0]
    families = Driver(terms, random_codes(BITS, ROWS)).run_to("parameters").state.knowledge.families
    assert [family.parents for family in families] == [()] * 5
    assert privabn(degree=0).plan.split == (0, 10)


def test_a_choice_is_paid_for_by_an_equal_part_of_the_budget(monkeypatch):
    terms, seen = privabn(), []

    def kept(rows, among, score, epsilon, mechanism, stream, noise):
        seen.append(epsilon)
        return among[-1]  # never stops

    monkeypatch.setattr("protocol.stages.definitions.privabn.choose", kept)
    run = Driver(terms, random_codes(BITS, ROWS)).run_to("parameters")
    steps = [step for step in terms.steps if step.stage == "growth"]
    paid = [
        terms.plan.definition.choice_epsilon(step.budget / most_choices(terms, step.parties[0]), terms.plan.choice)
        for step in steps
        for _ in range(most_choices(terms, step.parties[0]))
    ]
    assert seen == paid
    assert sum(seen[: most_choices(terms, 0)]) == steps[0].budget
    assert [len(family.parents) for family in run.state.knowledge.families] == [0, 1, 2, 3, 4]


def test_without_noise_a_column_gets_the_parents_that_decide_it_and_no_others():
    """The last column is the parity of two others, which only both of them together tell; the fourth follows one."""
    data = np.random.default_rng(3)
    columns = [data.integers(0, 2, sum(ROWS)).astype(np.uint8) for _ in range(3)]
    columns += [columns[0].copy(), columns[1] | columns[2]]
    parts = np.split(np.arange(sum(ROWS)), np.cumsum(ROWS)[:-1])
    schema = Schema.parse({"attributes": [{"name": n, "kind": "categorical", "values": ["n", "y"]} for n in "abcde"]})
    terms = privabn(schema, epsilon=NO_NOISE, estimate="network")
    run = Driver(terms, [[column[part] for column in columns] for part in parts]).finish()
    joined = {frozenset(family.variables) for family in run.state.knowledge.network.families}
    assert any({0, 3} <= own for own in joined)
    assert any({1, 2, 4} <= own for own in joined)


def test_half_of_the_noise_of_a_family_s_table_is_taken_off_its_score():
    terms = privabn(MIXED, epsilon=1)
    run = Driver(terms, random_codes(MIXED, ROWS))
    families, noise = [(4, ()), (4, (1,)), (4, (1, 2))], noise_of_cell(terms)
    rule = scoring("R", ROWS[0], terms.domain)
    costs = noise_costs(terms.domain, families, rule, noise) * float(rule.unit)
    assert costs == pytest.approx([2 * noise / 2, 6 * noise / 2, 24 * noise / 2], abs=float(rule.unit))
    assert all(a < b for a, b in pairwise(costs))
    assert family_scores(run.rows[0], families, rule)[0] == 0
    assert not noise_costs(terms.domain, families, rule, 0.0).any()
