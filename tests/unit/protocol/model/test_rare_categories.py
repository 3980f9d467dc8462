"""Categories that noise hides: which are merged, counted as one by every party, and spread again."""

from fractions import Fraction

import numpy as np
import pytest

import protocol.plan.terms
from crypto.randomness import Stream
from protocol.errors import CURATOR, FailedCheck, PlanError
from protocol.messages.tasks import Count, Place
from protocol.model.rare_categories import Merging, merged_by, spread_table
from protocol.model.run_model import model_of
from protocol.picks.by_model import REFERENCE_ROWS
from protocol.privacy.layout import words_from_bytes
from protocol.run.party import check
from protocol.run.synthesis import synthetic_codes
from protocol.stages.knowledge import counted_domain
from protocol.stages.reference_rows import guide_problem, reference_of
from protocol.tables.domain import Domain
from protocol.tables.marginal import Table
from protocol.tables.schema import Schema
from tests.support.small_runs import BITS, CITIES, Driver, random_codes, terms_of

ROWS = (400, 300)
MERGED = ((0, (0, 2, 2, 1, 2)),)
SINGLE = {0: Table((0,), np.array([900, 3, -5, 100, 6]), 100.0)}


def test_what_lies_below_the_noise_is_one_category_behind_those_that_do_not():
    assert merged_by([*SINGLE.values()], 1.0) == MERGED
    assert merged_by([*SINGLE.values()], 100.0) == ((0, (0, 1, 1, 1, 1)),)  # the noise of the tables to come


def test_nothing_is_merged_where_all_is_supported_or_nothing_is():
    supported = Table((0,), np.array([900, 100, 70]), 1.0)
    hidden = Table((1,), np.array([1, 2, 3]), 1e6)
    only_one = Table((2,), np.array([900, 0, 70]), 1.0)
    of_two = Table((3,), np.array([-1, 0]), 1.0)
    assert merged_by([supported, hidden, only_one, of_two], 1.0) == ()


def test_merged_categories_are_spread_by_what_is_known_of_them():
    merging = Merging.of(Domain.of_sizes((5, 2)).with_merged(MERGED), SINGLE, 1000)
    assert merging.sizes == (3, 2)
    merged, variances = merging.merge(SINGLE[0])
    assert merged.counts.tolist() == [900, 100, 4]
    assert variances.tolist() == [100, 100, 300]
    columns = [np.array([0] * 10 + [1] * 5 + [2] * 300), np.zeros(315, dtype=np.intp)]
    spread = merging.spread(columns, Stream.keyed(b"spread"))[0]
    assert set(spread[:10]) == {0}
    assert set(spread[10:15]) == {3}
    counts = np.bincount(spread[15:], minlength=5)
    assert counts[2] == 0  # its count was negative
    assert counts[4] > counts[1] > 0


def test_a_table_over_merged_categories_is_shown_over_all_of_them():
    domain = Domain.of_sizes((5, 2)).with_merged(MERGED)
    merging = Merging.of(domain, SINGLE, 1009)
    shown = spread_table(Table((2, 1), np.array([[10, 20], [30, 40], [9, 18]]), 4.0), domain, merging)
    assert shown.variables == (0, 1)
    assert shown.counts.sum(axis=0) == pytest.approx([49, 78])
    assert shown.counts[[0, 3]].tolist() == [[10, 20], [30, 40]]
    assert shown.counts[2].tolist() == [0, 0]
    assert shown.counts[4, 0] == pytest.approx(2 * shown.counts[1, 0])
    # As much noise in all ten cells together as there was in six.
    assert np.sqrt(shown.variance) * 10 == pytest.approx(np.sqrt(4.0) * 6)


# On the wire


def guided(step: str, **wishes) -> Driver:
    """Little for single variables, so that most cities are merged; party-2 keeps no noise."""
    split = tuple(map(Fraction, ("1/10", "1/5", "1/5", "1/5")))
    wishes = {"further": (1, 0), "noise": "selected", "insiders": 0} | wishes
    terms = terms_of(CITIES, ROWS, 1, method="guided", views="single", split=split, **wishes)
    return Driver(terms, random_codes(CITIES, ROWS), clear=True).run_to(step)


def test_parties_count_merged_categories_as_one():
    run = guided("parameters")
    task = run.tasks()[1]
    assert isinstance(task, Count)
    ((city, groups),) = task.merged
    assert city == 2
    assert max(groups) + 1 < len(groups) == 20
    assert any(3 in variables for variables in task.tables)  # the merged one comes behind the plan's own
    ill, grade, cities = random_codes(CITIES, ROWS)[1]
    columns = [ill, grade, cities, np.array(groups)[cities]]
    expected = []
    for variables in task.tables:
        counts = np.zeros([(2, 3, 20, max(groups) + 1)[v] for v in variables], dtype=int)
        np.add.at(counts, tuple(columns[v] for v in variables), 1)
        expected += counts.ravel().tolist()
    reply = run.answer(1, task)
    assert words_from_bytes(reply.blob).tolist() == expected


def test_a_run_over_merged_categories_yields_rows_over_all():
    run = guided("tables/1").finish()
    known = run.state.knowledge
    ((city, groups),) = known.merged
    merged = [one.table for one in known.released if 3 in one.table.variables]
    assert merged
    assert all(max(groups) + 1 in table.counts.shape for table in merged)
    cities = np.concatenate([b[city] for b in synthetic_codes(run.terms, known, 20_000, Stream.keyed(b"rows"))])
    assert len(np.unique(cities)) > max(groups) + 1


def test_merging_can_be_left_out():
    assert guided("tables/1", merging=False).tasks()[0].merged == ()


@pytest.mark.parametrize(
    ("merged", "complaint"),
    [
        (((3, (0, 0)),), "merges categories of [3] in 'tables/1', "),
        (((2, (0,) * 20), (2, (0,) * 20)), "merges categories of [2, 2] in 'tables/1', "),
        (((1, (0, 0)),), "merges the 3 categories of variable 1 in 'tables/1', but not into fewer"),
        (((1, (0, 1, 2)),), "merges the 3 categories of variable 1 in 'tables/1', but not into fewer"),
        (((1, (0, 2, 2)),), "merges the 3 categories of variable 1 in 'tables/1', but not into fewer"),
    ],
)
def test_merged_categories_are_as_many_and_become_fewer(merged, complaint):
    run = guided("tables/1")
    task = run.tasks()[0].model_copy(update={"merged": merged})
    assert refused(run, task).startswith(f"curator: {complaint}")


def test_merging_needs_a_plan_with_it_and_known_counts():
    run = guided("tables/1", merging=False)
    task = run.tasks()[0].model_copy(update={"merged": ((1, (0, 0, 1)),)})
    assert refused(run, task) == "curator: merges categories in 'tables/1', where the plan merges none"
    run = guided("levels")
    task = run.tasks()[0].model_copy(update={"merged": ((1, (0, 0, 1)),)})
    assert refused(run, task) == "curator: merges categories in 'levels', where the plan merges none"


def refused(run: Driver, task) -> str:
    with pytest.raises(FailedCheck) as error:
        check(run.parties[0], task)
    assert error.value.culprit == CURATOR
    return str(error.value)


# The model that parties compare their rows with


def test_the_curator_sends_its_model_and_every_party_draws_the_same_rows_from_it():
    run = guided("further/1")
    task = run.tasks()[0]
    assert isinstance(task, Place)
    assert task.cliques
    drawn = reference_of(run.terms, task)
    ((_, groups),) = task.merged
    assert drawn.domain.sizes == (2, 3, max(groups) + 1)
    assert drawn.count == REFERENCE_ROWS
    known = run.state.knowledge
    tables = [one.table for one in known.released]
    domain, plan = counted_domain(run.terms, known), run.terms.plan
    model = model_of(tables, domain, sum(ROWS), plan.definition, run.terms.model_room).model
    for variable in range(3):
        shares = drawn.table((variable,)) / REFERENCE_ROWS
        assert shares == pytest.approx(model.shares((variable,)), abs=1e-3)


def test_a_model_is_fitted_once_for_all_parties_of_a_round():
    run = guided("further/1", further=(1, 1))
    first = run.state.knowledge.guide
    run.finish_step()
    assert run.state.step.name == "further/2"
    assert run.state.knowledge.guide is first


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"cliques": ()}, "a model without a parent for every clique"),
        ({"parents": (0,)}, "a model without a parent for every clique"),
        ({"cliques": ((1, 1), (2,))}, "a model with a clique over (1, 1), which is no set of variables"),
        ({"cliques": ((0, 1), (3,))}, "a model with a clique over (3,), which is no set of variables"),
        ({"cliques": ((0, 1), ())}, "a model with a clique over (), which is no set of variables"),
        (
            {"cliques": ((0, 1), (1, 2)), "parents": (0, 1)},
            "a model whose clique (1, 2) is not connected by its parent",
        ),
        (
            {"cliques": ((0, 1), (2,), (1, 2)), "parents": (0, 0, 1)},
            "a model whose clique (1, 2) is not connected by its parent",
        ),
        ({"cliques": ((0, 1), (0,))}, "a model whose clique (0,) adds no variable"),
        ({"cliques": ((0,), (1,))}, "a model of 2 variables, expected 3"),
        ({"cliques": ((0, 1), (2,)), "blob": bytes(8)}, "a model of 8 bytes, "),
    ],
)
def test_a_model_that_is_none_is_refused(change, complaint):
    run = guided("further/1")
    task = run.tasks()[0].model_copy(update={"parents": (0, 0)} | change)
    assert refused(run, task).startswith(f"curator: sent with 'further/1' {complaint}")


@pytest.mark.parametrize(
    ("further", "complaint"),
    [
        (((0, 2, 2),), "further sets in 'further/1' that are not sets of variables"),
        (((0, 1, 0),), "further sets in 'further/1' that are not sets of variables"),
        (((1, 1),), "further sets in 'further/1' that are not sets of variables"),
        (((0, 9),), "further sets in 'further/1' that are not sets of variables"),
        (((0, 1), (0, 2)), "2 further sets in 'further/1', expected at most 1, all different"),
        (((0, 1),) * 2, "2 further sets in 'further/1', expected at most 1, all different"),
    ],
)
def test_further_pairs_are_pairs_and_no_more_than_were_picked(further, complaint):
    run = guided("further/1", rounds=1)
    task = run.tasks()[0].model_copy(update={"further": further})
    assert refused(run, task) == f"curator: sent {complaint}"


def test_a_model_larger_than_any_is_refused_before_it_is_looked_at():
    sizes = (400, 400, 400)
    terms = terms_of(wide(*sizes), (20000, 20000), 100, method="guided", noise="local")
    task = Place(plan="0" * 64, step="initial/1", families=(), cliques=((0, 1, 2),), parents=(0,))
    assert guide_problem(terms.domain, task, terms.model_room.numbers).startswith(
        "a model of 64000000 numbers, expected at most 1"
    )


def test_pairs_too_large_for_a_table_are_not_picked(monkeypatch):
    """The curator would refuse them after they were paid for."""
    monkeypatch.setattr(
        protocol.plan.terms, "LARGEST_VIEW", 30
    )  # grade and city, which depend on each other, have 60 cells
    terms = terms_of(CITIES, ROWS, 10**6, method="guided", views="single", noise="local", merging=False)
    run = Driver(terms, random_codes(CITIES, ROWS), clear=True).run_to("parameters")
    assert {1, 2} not in [set(family.variables) for family in run.state.knowledge.families]


def test_an_honest_run_draws_its_noise_however_different_its_tables_are():
    """The smallest share of a pass is known before the run, so that none dies of noise that cannot be drawn."""
    schema = wide(2, 2, *[100] * 8)
    terms = terms_of(schema, (4000, 4000, 4000), "0.012", method="guided", noise="distributed")
    Driver(terms, random_codes(schema, (4000, 4000, 4000))).finish()
    with pytest.raises(PlanError, match="the noise of 'parameters' is too wide"):
        terms_of(schema, (4000, 4000, 4000), "0.01", method="guided", noise="distributed")


def test_only_picks_by_the_model_go_with_merging():
    with pytest.raises(PlanError, match="merged by the counts of single variables, before pairs"):
        terms_of(CITIES, ROWS, 1, update="accumulate", merging=True)


def wide(*sizes: int) -> Schema:
    values = [[f"v{code}" for code in range(size)] for size in sizes]
    return Schema.parse(
        {"attributes": [{"name": f"a{i}", "kind": "categorical", "values": one} for i, one in enumerate(values)]}
    )


@pytest.mark.parametrize("weight", [0, 2**64 - 1])
def test_any_weights_make_rows(weight):
    """The law of a choice holds for any reference: a lying curator wastes its run, no more."""
    run = guided("further/1")
    task = run.tasks()[0]
    blob = np.full(len(task.blob) // 8, weight, dtype="<u8").tobytes()
    reply = run.answer(0, task.model_copy(update={"blob": blob}))
    assert len(reply.families) == 1


def test_other_scores_get_no_model():
    terms = terms_of(BITS, (30, 20, 10), noise="local", epsilon=50)
    run = Driver(terms, random_codes(BITS, (30, 20, 10))).run_to("initial/2")
    with pytest.raises(FailedCheck, match="sent a model with 'initial/2', which this plan's score does not use"):
        check(run.parties[1], run.tasks()[1].model_copy(update={"cliques": ((0,),)}))
