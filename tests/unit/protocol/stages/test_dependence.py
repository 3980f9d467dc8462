"""The question how strongly columns depend: its price, its answer, what is counted then, and what a party refuses."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from crypto.paillier_secret import SecretKey
from crypto.randomness import Stream
from protocol.errors import FailedCheck, PlanError
from protocol.messages.tasks import Contribution, Count
from protocol.plan.promises import promises
from protocol.plan.rationale import reasons
from protocol.privacy.mechanisms import PURE, ZCDP
from protocol.run import manifest
from protocol.run.kept_knowledge import knowledge_from_bytes, knowledge_to_bytes
from protocol.run.party import check
from protocol.run.scans import most_scans
from protocol.run.synthesis import synthetic_codes
from protocol.run.task_cost import task_cost
from protocol.stages.dependence import counts_alone, rows_below
from protocol.stages.registry import stage_of
from protocol.tables.dependence import dependence
from protocol.tables.schema import Schema
from tests.support.small_runs import BITS, MIXED, NO_NOISE, SEARCHED, Driver, random_codes, terms_of

ROWS = (400, 300, 200)
PART, BOUND = Fraction(1, 25), Fraction(1, 10)
ASKING: dict[str, Any] = {"views": "pairs", "dependence": PART, "alone_below": BOUND, "insiders": 1}
GUIDED: dict[str, Any] = {"method": "guided", "noise": "distributed", **ASKING}
TURNS: dict[str, Any] = {"method": "dp-subn", "update": "turns", "noise": "distributed", **ASKING}
SMALL = Schema.parse({"attributes": [{"name": name, "kind": "ordinal", "values": list("xyz")} for name in "abcd"]})


def codes(schema: Schema, independent: bool, rows: tuple[int, ...] = ROWS) -> list[list[Any]]:
    if not independent:
        return random_codes(schema, rows)
    data = np.random.default_rng(5)
    return [[data.integers(0, size, own).astype(np.uint8) for size in schema.sizes] for own in rows]


def driver(independent: bool = False, schema: Schema = BITS, epsilon: object = 40, **wishes: Any) -> Driver:
    return Driver(terms_of(schema, ROWS, epsilon, **(GUIDED | wishes)), codes(schema, independent))


# Price


@pytest.mark.parametrize("own", [GUIDED, TURNS], ids=["guided", "turns"])
@pytest.mark.parametrize("privacy", ["pure", "zcdp"])
def test_the_question_costs_its_part_and_the_rest_of_the_run_the_rest(own: dict[str, Any], privacy: str) -> None:
    terms = terms_of(BITS, ROWS, 1, **(own | {"privacy": privacy}))
    plan, step = terms.plan, terms.steps[1]
    budget = plan.definition.budget(plan.epsilon, plan.delta)
    assert (step.name, step.stage, step.parties) == ("dependence", "dependence", (0, 1, 2))
    assert step.spends == dict.fromkeys(range(3), PART * budget)
    assert sum(plan.split) == (1 - PART) * budget
    assert max(terms.price(party) for party in range(3)) == 1
    if privacy == "pure":
        assert step.charge(0) == PART


@pytest.mark.parametrize(("schema", "change"), [(BITS, 2), (SMALL, 3)])
@pytest.mark.parametrize("privacy", ["pure", "zcdp"])
def test_the_noise_hides_what_one_row_changes(schema: Schema, change: int, privacy: str) -> None:
    terms = terms_of(schema, ROWS, 4, **(GUIDED | {"privacy": privacy}))
    step = terms.steps[1]
    layout = stage_of(terms, step).layout(terms, step, ((),), sum(ROWS))
    assert (layout.cells, layout.bound) == ((1,), 900)
    (rate,) = layout.rates
    assert rate == (step.budget / change if privacy == "pure" else 2 * step.budget / change**2)


def test_the_rate_of_a_number_that_changes_like_a_table_costs_what_a_table_does() -> None:
    """A count that changes by 2 has the L1 sensitivity of a table; with zcdp its square is twice that of a table."""
    budget = Fraction(1, 7)
    assert PURE.rate_of_number(budget, 2) == PURE.rate(budget / PURE.cost_of_two)
    assert ZCDP.rate_of_number(budget, 2) == ZCDP.rate(budget / ZCDP.cost_of_two)


@pytest.mark.parametrize("privacy", ["pure", "zcdp"])
def test_the_noise_hides_all_rows_of_a_person(privacy: str) -> None:
    persons = {"rows_per_person": 3, "parties_per_person": 2, "privacy": privacy}
    terms = terms_of(BITS, ROWS, 1, **(GUIDED | persons))
    step = terms.steps[1]
    part = PART * terms.plan.definition.budget(terms.plan.epsilon, terms.plan.delta)
    assert step.budget == part / (6 if privacy == "pure" else 36)
    assert max(terms.price(party) for party in range(3)) == 1


def test_a_plan_without_the_question_keeps_its_text() -> None:
    dumped = terms_of(BITS, ROWS, 1, method="guided").plan.model_dump(mode="json")
    assert not {"dependence", "alone_below"} & set(dumped)


def test_plan_and_promises_tell_of_the_question() -> None:
    terms = terms_of(BITS, ROWS, 1, **GUIDED)
    (sentence,) = [one for one in reasons(terms) if "finds out first" in one]
    assert "0.04 of the budget finds out first" in sentence
    assert "within the parties' own rows by less than 0.1 of the rows" in sentence
    (promise,) = [one for one in promises(terms.plan) if "How strongly columns depend" in one.text]
    assert "1/25 of the budget" in promise.condition


@pytest.mark.parametrize(
    ("schema", "wishes", "what"),
    [
        (BITS, {"alone_below": Fraction(0)}, "choose a part between 0 and 1 and a bound between 0 and 1/4"),
        (BITS, {"alone_below": Fraction(1, 4)}, "choose a part between 0 and 1 and a bound between 0 and 1/4"),
        (BITS, {"dependence": Fraction(0)}, "choose a part between 0 and 1 and a bound between 0 and 1/4"),
        (MIXED, {"views": "single"}, "dependence is asked for before views of all pairs"),
        (BITS, {"method": "jtree"}, "dependence is asked for before views of all pairs"),
        (BITS, {"method": "independent", "views": None}, "dependence is asked for before views of all pairs"),
    ],
)
def test_questions_that_decide_nothing_are_refused(schema: Schema, wishes: dict[str, Any], what: str) -> None:
    with pytest.raises(PlanError, match=what):
        terms_of(schema, ROWS, 1, **(GUIDED | wishes))


def test_what_the_answer_takes() -> None:
    run = driver().run_to("dependence")
    task, step = run.tasks()[0], run.terms.steps[1]
    assert isinstance(task, Count)
    cost = task_cost(run.terms, step, task)
    assert (task.tables, cost.tables, cost.cells) == (((),), 1, 1)
    assert most_scans(run.terms, step, 0, 1) == 1
    many = Schema.parse({"attributes": [{"name": f"c{i}", "kind": "boolean"} for i in range(40)]})
    terms = terms_of(many, ROWS, 1, **GUIDED)
    assert most_scans(terms, terms.steps[1], 0, 1) == 13  # 780 pairs, 64 at once


# The answer


@pytest.mark.parametrize("own", [GUIDED, TURNS], ids=["guided", "turns"])
@pytest.mark.parametrize("schema", [BITS, SMALL], ids=["bits", "three values"])
def test_without_noise_the_answer_is_the_sum_of_what_each_party_sees_in_its_own_rows(
    own: dict[str, Any], schema: Schema
) -> None:
    run = Driver(terms_of(schema, ROWS, NO_NOISE, **own), codes(schema, False)).run_to("correlations")
    terms = run.terms
    bounds = [rows_below(terms_of(schema, (own, 1), 1, **GUIDED)) - 1 for own in ROWS]
    assert abs(sum(bounds) - rows_below(terms)) <= len(ROWS)
    expected = [dependence(rows, bound) for rows, bound in zip(run.rows, bounds, strict=True)]
    assert run.state.knowledge.dependence == pytest.approx(sum(expected), abs=len(ROWS))


@pytest.mark.parametrize("own", [GUIDED, TURNS], ids=["guided", "turns"])
@pytest.mark.parametrize("privacy", ["pure", "zcdp"])
@pytest.mark.parametrize("schema", [BITS, SMALL], ids=["bits", "three values"])
def test_independent_columns_are_counted_alone_and_dependent_ones_in_views(
    own: dict[str, Any], privacy: str, schema: Schema
) -> None:
    for independent in (True, False):
        terms = terms_of(schema, ROWS, 40, **(own | {"privacy": privacy}))
        run = Driver(terms, codes(schema, independent)).finish()
        known = run.state.knowledge
        assert counts_alone(terms, known) is independent
        told = manifest.dependence(terms, known)
        assert told is not None
        assert (told.alone, told.measured, told.below) == (independent, known.dependence, rows_below(terms))
        counted = [one.table.variables for one in known.released if one.step == "correlations"]
        singles = [(variable,) for variable in range(terms.domain.count)]
        assert counted == (singles if independent else list(terms.cover.views))
        if independent and own is GUIDED:
            assert not any(family.parents for family in known.families)
            assert all(len(one.table.variables) == 1 for one in known.released)
        assert len(known.families) == terms.domain.count
        (columns,) = synthetic_codes(terms, known, 900, Stream.keyed(b"rows"))
        assert len(columns) == len(schema.names)


def test_columns_alone_get_the_budget_of_the_views() -> None:
    run = driver(independent=True).run_to("correlations")
    task, step = run.tasks()[0], run.terms.steps[2]
    assert isinstance(task, Count)
    layout = stage_of(run.terms, step).layout(run.terms, step, task.tables, sum(ROWS))
    definition = run.terms.plan.definition
    assert layout.cells == (2,) * 5
    assert sum(layout.rates) == definition.rate(step.budget)


def test_bins_that_were_found_are_asked_about_and_counted_alone() -> None:
    wishes = {"edges": Fraction(1, 10), "alone_below": Fraction(6, 25)}
    run = driver(independent=True, schema=SEARCHED, **wishes).finish()
    assert [step.stage for step in run.terms.steps][1:4] == ["edges", "dependence", "correlations"]
    known = run.state.knowledge
    assert counts_alone(run.terms, known)
    assert [one.table.counts.size for one in known.released[:4]] == [2, 6, 6, 3]


def test_the_question_goes_through_encrypted_sums_too(small_secret: SecretKey) -> None:
    terms = terms_of(BITS, ROWS, 40, **(GUIDED | {"noise": "selected"}))
    run = Driver(terms, codes(BITS, True), small_secret).finish()
    assert counts_alone(terms, run.state.knowledge)


def test_the_answer_is_kept_with_the_knowledge() -> None:
    known = driver().run_to("correlations").state.knowledge
    assert known.dependence is not None
    assert knowledge_from_bytes(knowledge_to_bytes(known)).dependence == known.dependence


# What a party refuses


def test_other_tables_than_the_question_or_the_views_or_columns_alone_are_refused() -> None:
    run = driver().run_to("dependence")
    task = run.tasks()[0]
    party = run.parties[0]
    assert party is not None
    for tables in (((0,),), (), ((), ())):
        with pytest.raises(FailedCheck, match="asks for other views than the plan's in 'dependence'"):
            check(party, task.model_copy(update={"tables": tables}))  # type: ignore[arg-type]
    run.run_to("correlations")
    task, party = run.tasks()[0], run.parties[0]
    assert isinstance(task, Count)
    assert party is not None
    singles = tuple((variable,) for variable in range(5))
    for allowed in (run.terms.cover.views, singles):
        check(party, task.model_copy(update={"tables": allowed}))
    for refused in (singles[:-1], singles[::-1], ((0, 1),)):
        with pytest.raises(FailedCheck, match="asks for other views than the plan's in 'correlations'"):
            check(party, task.model_copy(update={"tables": refused}))
    with pytest.raises(FailedCheck, match="merges categories"):
        check(party, task.model_copy(update={"tables": singles, "merged": ((0, (0, 0)),)}))


def test_without_the_question_no_columns_are_counted_alone() -> None:
    run = driver(dependence=Fraction(0), alone_below=Fraction(0)).run_to("correlations")
    task, party = run.tasks()[0], run.parties[0]
    assert isinstance(task, Count)
    assert party is not None
    with pytest.raises(FailedCheck, match="asks for other views than the plan's in 'correlations'"):
        check(party, task.model_copy(update={"tables": tuple((variable,) for variable in range(5))}))


def test_parties_that_are_asked_for_different_tables_produce_a_sum_that_does_not_open() -> None:
    run = driver().run_to("correlations")
    asked = dict(run.tasks())
    asked[0] = asked[0].model_copy(update={"tables": tuple((variable,) for variable in range(5))})
    replies = {party: run.answer(party, task) for party, task in asked.items()}
    assert isinstance(replies[0], Contribution)
    run.receive(1, replies[1])
    run.receive(2, replies[2])
    with pytest.raises(FailedCheck, match=r"sent \d+ bytes for 'correlations', expected|do not add up"):
        run.receive(0, replies[0])


# Tables of very many columns, as recommended plans ask about them


def sixty(of_class: float, data: np.random.Generator) -> list[list[Any]]:
    """Rows of four parties in 60 columns of two values that depend on a hidden class, each by so much."""
    parties = []
    for _ in range(4):
        hidden = data.integers(0, 2, 20_000)
        base = data.uniform(0.1, 0.9, 60) * (1 - of_class)
        columns = (data.random((60, 20_000)) < base[:, None] + of_class * hidden).astype(np.uint8)
        parties.append(list(columns))
    return parties


@pytest.mark.parametrize("method", ["guided", "dp-subn"])
@pytest.mark.parametrize(
    ("of_class", "is_alone"), [(0.0, True), (0.05, True), (0.3, False)], ids=["independent", "nearly", "dependent"]
)
def test_sixty_columns_go_the_right_way(method: str, of_class: float, is_alone: bool) -> None:
    schema = Schema.parse({"attributes": [{"name": f"c{i}", "kind": "boolean"} for i in range(60)]})
    wishes = {"update": "turns"} if method == "dp-subn" else {}
    terms = terms_of(schema, (20_000,) * 4, "0.8", method=method, noise="distributed", insiders=1, **wishes)
    assert terms.plan.dependence
    run = Driver(terms, sixty(of_class, np.random.default_rng(11)), clear=True).run_to("correlations")
    assert counts_alone(terms, run.state.knowledge) is is_alone
