"""Edges that a run finds: their price, the bins that everybody counts afterwards, and what a party refuses."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from crypto.randomness import Stream
from protocol.errors import FailedCheck, PlanError
from protocol.messages.tasks import Count
from protocol.model.bin_edges import divided
from protocol.plan.promises import promises
from protocol.plan.rationale import reasons
from protocol.run.party import check
from protocol.run.synthesis import published_terms, synthetic_codes
from protocol.tables.found_edges import in_found_bins, with_edges
from protocol.tables.schema import Schema
from tests.support.small_runs import MIXED, NO_NOISE, SEARCHED, Driver, pooled, random_codes, terms_of

ROWS = (400, 300, 200)
PART = Fraction(1, 10)
GUIDED: dict[str, Any] = {"method": "guided", "noise": "distributed", "edges": PART}


def driver(epsilon: object = 1, **wishes: Any) -> Driver:
    terms = terms_of(SEARCHED, ROWS, epsilon, **(GUIDED | wishes))
    return Driver(terms, random_codes(SEARCHED, ROWS))


def test_rows_heaped_at_the_highest_value_leave_edges_that_can_be_written() -> None:
    terms = terms_of(SEARCHED, ROWS, NO_NOISE, **GUIDED)
    heaped = [
        [
            np.full(rows, size - 1 - bool(one.missing), np.uint8)
            for one, size in zip(SEARCHED.attributes, SEARCHED.sizes, strict=True)
        ]
        for rows in ROWS
    ]
    known = Driver(terms, heaped).finish().state.knowledge
    assert with_edges(SEARCHED, known.edges) == published_terms(terms, known).schema
    assert [starts[-1] for _, starts in known.edges] == [58, 39]


# Price


@pytest.mark.parametrize("method", ["guided", "dp-subn"])
@pytest.mark.parametrize("privacy", ["pure", "zcdp"])
def test_the_pass_costs_its_part_and_the_rest_of_the_run_the_rest(method: str, privacy: str) -> None:
    terms = terms_of(SEARCHED, ROWS, 1, **(GUIDED | {"method": method, "privacy": privacy, "update": None}))
    plan, step = terms.plan, terms.steps[1]
    budget = plan.definition.budget(plan.epsilon, plan.delta)
    assert (step.name, step.stage) == ("edges", "edges")
    assert step.spends == dict.fromkeys(range(3), PART * budget)
    assert sum(plan.split) == (1 - PART) * budget
    assert max(terms.price(party) for party in range(3)) == 1
    if privacy == "pure":
        assert step.charge(0) == PART


@pytest.mark.parametrize("privacy", ["pure", "zcdp"])
def test_the_noise_of_the_pass_hides_all_rows_of_a_person(privacy: str) -> None:
    persons = {"rows_per_person": 3, "parties_per_person": 2, "privacy": privacy}
    terms = terms_of(SEARCHED, ROWS, 1, **(GUIDED | persons))
    plan, step = terms.plan, terms.steps[1]
    part = PART * plan.definition.budget(plan.epsilon, plan.delta)
    others = terms.steps[3].spends[0]  # the first answer also pays for what another party releases alone
    assert step.spends == dict.fromkeys(range(3), part + others)
    assert step.budget == part / (6 if privacy == "pure" else 36)
    assert max(terms.price(party) for party in range(3)) <= 1


def test_a_plan_without_a_part_for_edges_is_as_it_was() -> None:
    terms = terms_of(SEARCHED, ROWS, 1, method="guided")
    assert "edges" not in terms.plan.model_dump(mode="json")
    assert "edges" not in [step.name for step in terms.steps]
    assert terms.schema is terms.agreed
    assert terms.schema.sizes == (2, 60, 41, 3)


def test_how_many_bins_come_out_is_known_before() -> None:
    terms = terms_of(SEARCHED, ROWS, 1, **GUIDED)
    assert terms.domain.sizes == terms.schema.sizes == (2, 6, 6, 3)
    assert terms.finest.domain.sizes == terms.agreed.sizes == (2, 60, 41, 3)


def test_plan_and_promises_say_what_is_found_and_what_it_costs() -> None:
    terms = terms_of(SEARCHED, ROWS, 1, **GUIDED)
    (sentence,) = [one for one in reasons(terms) if "edges" in one]
    assert sentence.startswith("0.1 of the budget finds edges where rows lie: 6 bins of days from 60, 5 bins of cost ")
    (promise,) = [one for one in promises(terms.plan) if "edges" in one.text]
    assert "1/10 of the budget" in promise.condition


@pytest.mark.parametrize(
    ("schema", "wishes", "what"),
    [
        (SEARCHED, {"edges": Fraction(1)}, "it must be 0, or lie between 0 and 1"),
        (SEARCHED, {"edges": Fraction(-1, 2)}, "it must be 0, or lie between 0 and 1"),
        (MIXED, {}, "no attribute of the schema has `find`"),
        (SEARCHED, {"method": "independent"}, "choose method dp-subn or guided with encoding native"),
        (SEARCHED, {"method": "dp-subn", "encoding": "binary"}, "choose method dp-subn or guided with encoding native"),
    ],
)
def test_plans_that_cannot_find_edges_are_refused(schema: Schema, wishes: dict[str, Any], what: str) -> None:
    with pytest.raises(PlanError, match=what):
        terms_of(schema, ROWS, 1, **(GUIDED | wishes))


# What is counted


def test_without_noise_the_edges_are_those_of_the_pooled_counts_and_later_tables_count_their_bins() -> None:
    run = driver(NO_NOISE).finish()
    known, rows = run.state.knowledge, pooled(SEARCHED, random_codes(SEARCHED, ROWS))
    counts = np.bincount(rows[1], minlength=60)
    assert known.grids[0].counts.tolist() == counts.tolist()
    (_, days), (_, cost) = known.edges
    assert (len(days), len(cost)) == (6, 5)
    assert days == divided([*counts[:58].tolist(), int(counts[58:].sum())], 6)  # no bin begins at the highest value
    found = published_terms(run.terms, known).schema
    binned = in_found_bins(SEARCHED, found, known.edges, rows)
    assert known.released
    for one in known.released:
        if len(one.table.variables) == 1:
            (variable,) = one.table.variables
            expected = np.bincount(binned[variable], minlength=found.sizes[variable])
            assert one.table.counts.tolist() == expected.tolist()


def test_the_published_schema_has_the_found_edges_and_rows_are_drawn_from_its_bins() -> None:
    run = driver(2).finish()
    known = run.state.knowledge
    found = published_terms(run.terms, known).schema
    days = found.attributes[1]
    assert days.edges[:-1] == tuple(map(Fraction, known.edges[0][1]))  # type: ignore[union-attr]
    assert days.edges[-1] == 59  # type: ignore[union-attr]
    assert found.attributes[2].edges[-1] == 4000  # type: ignore[union-attr]
    assert (found.names, found.sizes) == (SEARCHED.names, (2, 6, 6, 3))
    batches = list(synthetic_codes(run.terms, known, 900, Stream.keyed(b"rows")))
    assert sum(len(batch[1]) for batch in batches) == 900
    assert max(int(batch[1].max()) for batch in batches) < 6


def test_edges_of_whole_numbers_are_whole_although_bins_of_equal_width_are_not() -> None:
    schema = Schema.parse({"attributes": [{"name": "n", "kind": "integer", "min": 0, "max": 99, "bins": 7, "find": 4}]})
    (found,) = with_edges(schema, ((0, (0, 1, 3, 5)),)).attributes
    assert found.edges == (0, 15, 43, 72, 99)  # type: ignore[union-attr]
    (grid,) = schema.attributes
    for value in range(100):
        fine = grid.bin(Fraction(value))  # type: ignore[union-attr]
        assert found.bin(Fraction(value)) == sum(fine >= start for start in (0, 1, 3, 5)) - 1  # type: ignore[union-attr]


# What a party refuses


def told(run: Driver, edges: Any) -> tuple[Any, Count]:
    """A party that has answered the pass, and its next task with these edges."""
    task = run.run_to("levels").tasks()[0]
    assert isinstance(task, Count)
    assert task.edges
    return run.parties[0], task.model_copy(update={"edges": edges(task.edges)})


@pytest.mark.parametrize(
    "edges",
    [
        lambda _: (),
        lambda own: own[:1],
        lambda own: own[::-1],
        lambda own: ((1, own[0][1][:-1]), own[1]),
        lambda own: ((1, (1, *own[0][1][1:])), own[1]),
        lambda own: ((1, (0, *own[0][1][:0:-1])), own[1]),
        lambda own: ((1, (*own[0][1][:-1], 60)), own[1]),
    ],
    ids=["none", "too few", "another order", "too few bins", "not from the first", "falling", "beyond the grid"],
)
def test_edges_that_make_no_sense_are_refused(edges: Any) -> None:
    state, task = told(driver(), edges)
    with pytest.raises(FailedCheck, match="tells edges of bins with 'levels' that cannot be: expected"):
        check(state, task)


def test_edges_are_told_once() -> None:
    run = driver()
    run.run_to("levels").finish_step()
    task = next(one for one in run.tasks().values())
    assert not getattr(task, "edges", ())
    later = run.run_to("parameters").tasks()[0].model_copy(update={"edges": run.state.knowledge.edges})
    with pytest.raises(FailedCheck, match="tells edges of bins with 'parameters', before which none were looked for"):
        check(run.parties[0], later)  # type: ignore[arg-type]


def test_parties_that_were_told_different_edges_produce_a_sum_that_does_not_open() -> None:
    run = driver().run_to("levels")
    asked = dict(run.tasks())
    (place, starts), *rest = asked[0].edges  # type: ignore[union-attr]
    other = next(moved for moved in range(1, 60) if moved not in starts)
    changed = (place, tuple(sorted((*starts[:-1], other))))
    asked[0] = asked[0].model_copy(update={"edges": (changed, *rest)})
    replies = {party: run.answer(party, task) for party, task in asked.items()}
    run.receive(0, replies[0])
    run.receive(1, replies[1])
    with pytest.raises(FailedCheck, match="do not add up"):
        run.receive(2, replies[2])


def test_rows_are_coded_by_the_schema_that_was_agreed() -> None:
    run = driver().run_to("levels")
    assert run.rows[0].domain is run.terms.finest.domain
    assert replace(run.terms, agreed=run.terms.agreed).finest.domain == run.terms.finest.domain
