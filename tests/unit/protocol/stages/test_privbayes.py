"""Method privbayes: the papers' numbers of tables, picks and parents, alone and with several parties."""

from fractions import Fraction

import numpy as np
import pytest

from protocol.errors import PlanError
from protocol.plan.terms import Terms
from protocol.run.agreement import agree
from tests.support.small_runs import BITS, MIXED, NO_NOISE, SMALL_BITS, Driver, plan_of, random_codes, terms_of

SPLIT = (Fraction(30), Fraction(70))


def privbayes(schema=BITS, rows=(300, 200), **wishes) -> Terms:
    wishes = {"method": "privbayes", "split": SPLIT, "noise": "local"} | wishes
    plan = plan_of(schema, rows, 100, **wishes)
    return agree(plan, schema, SMALL_BITS, fewest=1)


def finished(terms: Terms) -> Driver:
    rows = [member.rows for member in terms.plan.members]
    return Driver(terms, random_codes(terms.schema, rows)).finish()


def counted(terms: Terms) -> list[tuple[int, ...]]:
    return [one.table.variables for one in finished(terms).state.knowledge.released]


@pytest.mark.parametrize("rows", [(500,), (300, 200)], ids=["central", "federated"])
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_the_first_families_of_a_network_of_bits_follow_from_the_next_one(rows, degree):
    insiders = len(rows) - 1
    found = counted(privbayes(rows=rows, insiders=insiders, degree=degree))
    assert [len(table) for table in found] == [degree + 1] * (5 - degree)


@pytest.mark.parametrize("schema", [BITS, MIXED], ids=["bits", "mixed"])
def test_every_family_is_counted_if_the_plan_says_so(schema):
    terms = privbayes(schema, family_tables="every")
    run = finished(terms)
    families = run.state.knowledge.network.families
    if terms.plan.estimate == "network":
        assert [one.table.variables for one in run.state.knowledge.released] == [
            tuple(sorted(family.variables)) for family in families
        ]
    assert len(run.state.knowledge.released) == terms.domain.count


def test_tables_share_the_budget_evenly_and_fewer_of_them_hold_less_noise():
    for tables, count in (("maximal", 3), ("every", 5)):
        run = finished(privbayes(degree=2, family_tables=tables))
        plan = run.terms.plan
        expected = plan.noise_mode.retained_variance(plan.definition.rate(SPLIT[1] / count))
        assert {one.table.variance for one in run.state.knowledge.released} == {expected}


def test_a_plan_that_counts_maximal_families_keeps_the_text_of_older_plans():
    assert "family_tables" not in plan_of().model_dump(mode="json")
    assert privbayes(family_tables="every").plan.model_dump(mode="json")["family_tables"] == "every"


def test_alone_every_variable_but_the_first_is_one_private_choice_of_the_first_budget():
    (initial,) = [step for step in privbayes(rows=(500,), insiders=0).steps if step.stage == "initial"]
    assert initial.budget == SPLIT[0]
    assert privbayes(rows=(500,), insiders=0).plan.picks == (5,)


@pytest.mark.parametrize("score", ["I", "F", "R"])
def test_every_score_of_the_paper_places_all_variables(score):
    network = finished(privbayes(score=score)).state.knowledge.network
    assert {family.child for family in network.families} == set(range(5))


def test_score_m_is_another_method_s():
    with pytest.raises(PlanError, match="score M picks pair by pair"):
        privbayes(score="M")


def test_the_degree_of_bits_is_lemma_4_8_s_for_each_number_of_tables():
    def most(tables: str, theta: int) -> int:
        n, e2 = 30_000, Fraction(7, 10)
        useful = [k for k in range(1, 5) if n * e2 / ((5 - k if tables == "maximal" else 5) * 2 ** (k + 2)) >= theta]
        return max(useful, default=0)

    found = {
        (tables, theta): terms_of(
            rows=(20_000, 10_000), method="privbayes", family_tables=tables, theta=theta, noise="local"
        ).limits.degree
        for tables in ("maximal", "every")
        for theta in (4, 100, 300, 400)
    }
    assert found == {(tables, theta): most(tables, theta) for tables, theta in found}
    assert len(set(found.values())) > 2


def test_of_other_domains_the_cells_of_a_family_are_limited():
    """n e2 / (2 d theta) cells, section 5.2."""
    assert terms_of(MIXED, (20_000, 10_000), method="privbayes").limits.cells == int(30_000 * 0.7 / (2 * 5 * 4))


def test_where_no_variable_may_have_a_parent_nothing_is_spent_on_structure():
    for schema in (BITS, MIXED):
        terms = terms_of(schema, (60, 40), 1, method="privbayes", noise="local")
        assert terms.plan.split == (0, 1)
        assert [step.stage for step in terms.steps] == ["joining", "parameters"]
        run = Driver(terms, random_codes(schema, (60, 40))).finish()
        assert len(run.state.knowledge.released) == 5


@pytest.mark.parametrize("encoding", ["native", "binary", "gray", "hierarchical"])
def test_without_noise_the_tables_are_those_of_all_rows(encoding):
    terms = terms_of(MIXED, (300, 200), NO_NOISE, method="privbayes", encoding=encoding, noise="local")
    codes = random_codes(MIXED, (300, 200))
    run = Driver(terms, codes).finish()
    for one in run.state.knowledge.released:
        own = [rows.over(terms.domain).table(one.table.variables) for rows in run.rows]
        assert np.array_equal(one.table.counts, sum(own))
