"""Wavelet noise in runs: exact counts without noise, exact prices, and plans that take it or cannot."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from crypto.paillier_secret import SecretKey
from crypto.randomness import Stream
from protocol.errors import PlanError
from protocol.forecast.costs import forecast
from protocol.forecast.error import evidence_of
from protocol.plan.rationale import reasons
from protocol.privacy.wavelets import dearest_change
from protocol.run.kept_knowledge import knowledge_from_bytes, knowledge_to_bytes
from protocol.run.synthesis import synthetic_codes
from protocol.run.task_cost import task_cost
from protocol.stages.registry import blank_columns
from protocol.tables.schema import Schema
from tests.support.small_runs import (
    LONG,
    NO_NOISE,
    SMALL_BITS,
    Driver,
    layout_of,
    plan_of,
    pooled,
    random_codes,
    terms_of,
)

ROWS = (300, 200, 150)
WAVELET: dict[str, Any] = {"method": "guided", "noise_shape": "wavelet"}
CODES = random_codes(LONG, ROWS)


@pytest.mark.parametrize(
    "wishes",
    [{}, {"noise": "selected"}, {"noise": "local"}, {"method": "jtree"}, {"method": "dp-subn", "update": "turns"}],
    ids=str,
)
def test_without_noise_the_coefficients_tell_every_count(wishes: dict[str, Any]) -> None:
    terms = terms_of(LONG, ROWS, NO_NOISE, **(WAVELET | wishes))
    run = Driver(terms, CODES, SecretKey.generate(SMALL_BITS)).run_to("levels")
    task = run.tasks()[0]
    run.finish_step()
    columns = pooled(LONG, CODES)
    released = [one.table for one in run.state.knowledge.released]
    assert [table.variables for table in released] == [(0,), (1,), (2,), (3,)]
    for table, column, size in zip(released, columns, LONG.sizes, strict=True):
        assert table.counts.tolist() == np.bincount(column, minlength=size).tolist()
    assert [table.noise is not None for table in released] == [False, True, True, False]
    cells = 2 + (61 - 1) + (40 - 1) + 3  # of a tree over so many categories
    assert task_cost(terms, terms.steps[1], task).cells == forecast(terms).steps[1].cells == cells


@pytest.mark.parametrize("privacy", ["pure", "zcdp"])
def test_the_levels_of_a_column_cost_its_share_of_the_pass_at_the_dearest_change(privacy: str) -> None:
    terms = terms_of(LONG, ROWS, 2, privacy=privacy, **WAVELET)
    plain = terms_of(LONG, ROWS, 2, privacy=privacy, method="guided", noise_shape="cells")
    step, definition, views = terms.steps[1], terms.plan.definition, terms.single_cover.views
    assert step.stage == "levels"
    assert terms.price(0) == plain.price(0)
    rates = iter(layout_of(terms, step, views, sum(ROWS)).rates)
    for variable, rate in enumerate(layout_of(plain, plain.steps[1], views, sum(ROWS)).rates):
        if variable not in terms.wavelets:
            assert next(rates) == rate
            continue
        tree = terms.wavelets[variable].tree
        budgets = [next(rates) / definition.rate(Fraction(1)) for _ in tree.levels]
        assert dearest_change(tree, budgets, definition.cost_of_two) == rate / definition.rate(Fraction(1))


def test_the_forecast_and_the_released_tables_name_the_same_noise() -> None:
    terms = terms_of(LONG, ROWS, 2, **WAVELET)
    run = Driver(terms, CODES, clear=True).run_to("levels")
    run.finish_step()
    released = [one.table for one in run.state.knowledge.released]
    for blank, table in zip(blank_columns(terms), released, strict=True):
        assert (blank.variables, blank.variance, blank.noise) == (table.variables, table.variance, table.noise)
    (evidence,) = evidence_of(terms)
    assert {table.variance for table in released} >= set(evidence.single.values())


def test_what_the_curator_keeps_between_steps_is_read_back_whole() -> None:
    run = Driver(terms_of(LONG, ROWS, 2, **WAVELET), CODES, clear=True).run_to("levels")
    run.finish_step()
    kept = knowledge_to_bytes(run.state.knowledge)
    again = knowledge_from_bytes(kept)
    assert knowledge_to_bytes(again) == kept
    assert [one.table.noise for one in again.released] == [one.table.noise for one in run.state.knowledge.released]
    older = kept.replace(b'"noise":null,', b"").replace(b'"format":2', b'"format":1')
    assert knowledge_from_bytes(older).released[0].table.noise is None


def test_a_run_with_wavelets_ends_and_its_rows_are_of_the_schema() -> None:
    terms = terms_of(LONG, ROWS, 4, privacy="zcdp", **WAVELET)
    run = Driver(terms, CODES, clear=True).finish()
    columns = zip(*synthetic_codes(terms, run.state.knowledge, 500, Stream.keyed(b"rows")), strict=True)
    for column, size in zip(map(np.concatenate, columns), LONG.sizes, strict=True):
        assert len(column) == 500
        assert column.max() < size


def test_the_noise_in_the_coefficients_of_an_opened_sum_is_that_of_the_plan() -> None:
    """Thirty runs: mean squares of every coefficient, and of all fine ones. False-alarm rate below 1e-6."""
    terms = terms_of(LONG, ROWS, 1, privacy="zcdp", **WAVELET)
    true, squares = np.bincount(pooled(LONG, CODES)[1], minlength=61), []
    for _ in range(30):
        run = Driver(terms, CODES, clear=True, entropy=True).run_to("levels")
        run.finish_step()
        table = run.state.knowledge.released[1].table
        assert table.noise is not None
        squares.append(table.noise.tree.coefficients(np.asarray(table.counts) - true) ** 2)
    assert table.noise is not None
    ratio = np.mean(squares, axis=0) / table.noise.tree.by_node(table.noise.variances)
    fine = np.concatenate([[False] * sum(table.noise.tree.cells[:3]), [True] * sum(table.noise.tree.cells[3:])])
    assert 0.5 < ratio[fine].mean() < 2
    assert ratio.min() > 1 / 8
    assert ratio.max() < 6


# Plans


def test_a_plan_without_wavelets_does_not_tell_of_them() -> None:
    assert "noise_shape" not in plan_of(LONG, ROWS, method="guided").model_dump(mode="json")
    assert plan_of(LONG, ROWS, **WAVELET).model_dump(mode="json")["noise_shape"] == "wavelet"


AGES = Schema.parse(
    {
        "attributes": [
            {"name": "age", "kind": "integer", "min": 0, "max": 99},
            {"name": "ill", "kind": "categorical", "values": ["no", "yes"]},
        ]
    }
)


def test_the_recommended_settings_take_wavelets_where_ranges_gain_by_them() -> None:
    assert plan_of(AGES, ROWS, method="guided", privacy="zcdp").noise_shape == "wavelet"
    assert plan_of(AGES, ROWS, method="guided").noise_shape == "cells"
    assert plan_of(AGES, ROWS, method="guided", privacy="zcdp", noise_shape="cells").noise_shape == "cells"
    assert plan_of(AGES, ROWS, method="privbayes", privacy="zcdp").noise_shape == "cells"
    terms = terms_of(AGES, ROWS, 2, method="guided", privacy="zcdp")
    assert any("age lies in wavelets" in reason and "0.42 times" in reason for reason in reasons(terms))


@pytest.mark.parametrize(
    ("schema", "wishes", "why"),
    [
        (LONG, {"method": "privbayes"}, "this plan does not count them so: choose method guided"),
        (LONG, {"method": "dp-subn", "update": "accumulate"}, "this plan does not count them so: choose method guided"),
        (LONG, {"method": "independent"}, "this plan does not count them so: choose method guided"),
        ("few", {}, "columns with 32 or more values that have an order or a taxonomy, and the schema has none"),
    ],
    ids=["privbayes", "families", "independent", "few values"],
)
def test_wavelets_where_nothing_can_have_them_are_refused(schema: Any, wishes: dict[str, Any], why: str) -> None:
    if schema == "few":
        attributes = [{"name": name, "kind": "integer", "min": 0, "max": 19} for name in ("a", "b")]
        schema = Schema.parse({"attributes": attributes})
    with pytest.raises(PlanError, match=why):
        terms_of(schema, ROWS, 1, **(WAVELET | wishes))
