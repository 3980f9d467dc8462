"""Method jtree: which pairs become edges, how large cliques and clusters may be, and what is counted."""

import math
from fractions import Fraction

import numpy as np
import pytest

from protocol.errors import PlanError
from protocol.plan.terms import Terms
from protocol.stages.definitions.jtree import dependent_pairs
from protocol.tables.schema import Schema
from tests.support.small_runs import BITS, CITIES, MIXED, NO_NOISE, Driver, random_codes, terms_of

ROWS = (5000, 4000)
# Columns in three groups that know nothing of each other: two, one and three.
GROUPS = ((0, 1), (2,), (3, 4, 5))


def schema(size: int, count: int = 6) -> Schema:
    values = [f"value {code}" for code in range(size)]
    return Schema.parse(
        {"attributes": [{"name": f"a{v}", "kind": "categorical", "values": values} for v in range(count)]}
    )


def grouped(size: int, rows=ROWS) -> list[list[np.ndarray]]:
    data, parties = np.random.default_rng(5), []
    for count in rows:
        heads = {group: data.integers(0, size, count) for group in GROUPS}
        of = {v: head for group, head in heads.items() for v in group}
        fresh = data.integers(0, size, (6, count))
        parties.append([np.where(data.random(count) < 0.8, of[v], fresh[v]).astype(np.uint8) for v in range(6)])
    return parties


def jtree(of: Schema, epsilon: object = 20, rows=ROWS, **wishes) -> Terms:
    return terms_of(of, rows, epsilon, **({"method": "jtree", "noise": "local"} | wishes))


@pytest.mark.parametrize("size", [2, 6])
def test_pairs_that_depend_are_edges_and_others_hardly_ever(size):
    terms = jtree(schema(size), Fraction(size, 10))
    run = Driver(terms, grouped(size)).run_to("parameters")
    found = dependent_pairs(terms, run.state.knowledge)
    inside = {pair for group in GROUPS for pair in [(a, b) for a in group for b in group if a < b]}
    assert set(found[: len(inside)]) == inside
    assert len(found) <= len(inside) + 3  # of 11


@pytest.mark.parametrize("views", ["pairs", "halves"])
def test_halves_tell_the_same_edges_as_whole_columns(views):
    terms = jtree(schema(6), views=views)
    run = Driver(terms, grouped(6)).run_to("parameters")
    assert set(dependent_pairs(terms, run.state.knowledge)[:4]) == {(0, 1), (3, 4), (3, 5), (4, 5)}


def test_views_of_whole_columns_are_taken_where_they_pay():
    assert jtree(BITS, 1).plan.views == "pairs"
    assert jtree(CITIES, 1).plan.views == "halves"
    assert [step.stage for step in jtree(CITIES, 1).steps] == ["joining", "levels", "correlations", "clusters"]
    assert jtree(CITIES, 1, encoding="binary").plan.views == "pairs"


@pytest.mark.parametrize(("size", "epsilon"), [(2, 20), (2, 1), (6, 20), (6, 1)])
def test_every_cluster_is_useful_and_every_family_lies_in_one(size, epsilon):
    terms = jtree(schema(size), epsilon)
    run = Driver(terms, grouped(size)).run_to("parameters")
    known = run.state.knowledge
    tables = next(iter(run.tasks().values())).tables
    assert all(any(set(family.variables) <= set(table) for table in tables) for family in known.families)
    most = terms.cluster_cells[len(tables) - 1]
    several = [math.prod(terms.domain.sizes[v] for v in table) for table in tables if len(table) > 1]
    assert max(several, default=0) <= most
    # n e2 / (2 m theta), with one full share of noise.
    assert most == int(sum(ROWS) * terms.plan.split[1] / (2 * len(tables) * terms.plan.theta))


def test_a_degree_limits_the_cliques():
    terms = jtree(schema(2), NO_NOISE, degree=1)
    run = Driver(terms, grouped(2)).run_to("parameters")
    assert max(len(family.parents) for family in run.state.knowledge.families) == 1


def test_without_noise_clusters_count_all_rows():
    terms = jtree(MIXED, NO_NOISE, (300, 200))
    run = Driver(terms, random_codes(MIXED, (300, 200))).finish()
    counted = [one.table for one in run.state.knowledge.released if one.step == "parameters"]
    assert counted
    for table in counted:
        own = [rows.over(terms.domain).table(table.variables) for rows in run.rows]
        assert np.array_equal(table.counts, sum(own))


@pytest.mark.parametrize("wishes", [{"split": (Fraction(0), Fraction(20))}, {}], ids=["no views", "one column"])
def test_without_correlations_every_column_is_counted_alone(wishes):
    terms = jtree(schema(3, 1 if not wishes else 6), **wishes)
    codes = [columns[: terms.domain.count] for columns in grouped(3)]
    run = Driver(terms, codes).run_to("parameters")
    assert [step.stage for step in terms.steps] == ["joining", "clusters"]
    assert not any(family.parents for family in run.state.knowledge.families)
    run.finish_step()
    counted = {v for one in run.state.knowledge.released for v in one.table.variables}
    assert counted == set(range(terms.domain.count))


def test_with_a_delta_a_wished_split_is_of_proportions_and_a_single_column_needs_no_views():
    terms = jtree(schema(2), 3, privacy="zcdp", delta=Fraction(1, 10**6), split=(Fraction(3, 2),) * 2)
    assert terms.price(0) <= 3
    assert terms.plan.split[0] == terms.plan.split[1]
    alone = jtree(schema(2, 1), split=(Fraction(1), Fraction(1)))
    assert [step.stage for step in alone.steps] == ["joining", "clusters"]


def test_a_plan_that_makes_no_sense_is_refused():
    with pytest.raises(PlanError, match="takes its pairs from views"):
        jtree(MIXED, views="single")
    with pytest.raises(PlanError, match="need a model of all"):
        jtree(MIXED, views="halves", estimate="network")
    with pytest.raises(PlanError, match="needs whole attributes"):
        jtree(MIXED, encoding="binary", estimate="graphical-model")
