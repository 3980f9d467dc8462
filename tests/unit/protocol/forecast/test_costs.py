"""A plan's forecast agrees with what the run then does, and with hand-computed errors."""

import math
from fractions import Fraction

import pytest

from crypto.sampling.laplace import laplace_variance
from protocol.forecast.costs import forecast
from protocol.plan.plan import Member
from protocol.plan.presets import make_plan
from protocol.plan.terms import Terms
from protocol.run.agreement import agree
from protocol.tables.schema import Schema
from tests.support.small_runs import layout_of


def terms_of(sizes: list[int], rows: list[int], **wishes: object) -> Terms:
    attributes = [
        {"name": f"a{i}", "kind": "categorical", "values": [str(v) for v in range(size)]}
        for i, size in enumerate(sizes)
    ]
    schema = Schema.parse({"title": "t", "attributes": attributes})
    members = [
        Member(name=f"p{k}", rows=n, signing_key=bytes([k + 1]) * 32, exchange_key=bytes([k + 101]) * 32)
        for k, n in enumerate(rows)
    ]
    method = wishes.pop("method", "dp-subn")
    wishes = ({"update": "accumulate"} if method == "dp-subn" else {}) | wishes
    return agree(make_plan("run", schema, members, Fraction(1), method, **wishes), schema)  # type: ignore[arg-type]


def test_prices_are_those_of_the_terms() -> None:
    terms = terms_of([2, 3, 4], [100, 200])
    assert forecast(terms).prices == (terms.price(0), terms.price(1)) == (Fraction(17, 20), 1)


def test_correlations_are_forecast_exactly() -> None:
    terms = terms_of([2, 3, 4, 5], [1000, 2000])
    (step,) = (s for s in forecast(terms).steps if s.name == "correlations")
    layout = layout_of(terms, terms.steps[1], terms.cover.views, 3000)
    assert step.cells == sum(terms.cover.view_cells) == layout.size
    assert step.ciphertexts == terms.plan.noise_mode.ciphertexts(layout)
    assert step.bytes_per_party == step.ciphertexts * 768


def test_the_error_of_one_table_is_half_its_expected_absolute_noise_over_the_rows() -> None:
    terms = terms_of([2, 2], [1000, 1000], noise="local", split=(Fraction(0), Fraction(0), Fraction(0), Fraction(1)))
    (step,) = (s for s in forecast(terms).steps if s.name == "parameters")
    per_cell = math.sqrt(2 * laplace_variance(Fraction(1, 2 * step.tables)) / 2)
    cells = step.cells // step.tables
    assert step.error == pytest.approx(cells * per_cell / (2 * 2000))


def test_every_pass_of_dp_ccbn_is_forecast_and_phase_2_sends_no_tables() -> None:
    steps = forecast(terms_of([2] * 5, [4000, 4000], method="dp-ccbn")).steps
    assert [s.cells > 0 for s in steps] == [False, True, True, True, True, True]
    assert [s.name for s in steps if s.error is None] == ["joining"]


def test_totals_add_up() -> None:
    found = forecast(terms_of([2, 3, 4], [500, 500, 500]))
    assert found.bytes_per_party == sum(s.bytes_per_party for s in found.steps) > 0
    assert found.seconds > 0


def test_a_plan_that_moves_is_weighed_without_searching_its_views_and_limits_again(monkeypatch):
    sizes, rows = [2, 3, 4] * 20, [3000] * 5
    for method in ("dp-subn", "dp-ccbn"):
        forecast(terms_of(sizes, rows, method=method))

    def searched(*_arguments: object) -> None:
        raise AssertionError("a domain that was searched before is searched again")

    monkeypatch.setattr("protocol.views.cover.Search", searched)
    monkeypatch.setattr("protocol.network.workload.count_candidates", searched)
    monkeypatch.setattr("protocol.stages.candidates.candidates", searched)
    for method in ("dp-subn", "dp-ccbn"):
        forecast(terms_of(sizes, [*rows, 10], method=method, insiders=0, noise="local"))


def test_the_tables_of_a_guided_run_are_counted_before_and_after_further_picks():
    terms = terms_of([5, 6, 7, 8], [9000, 9000], method="guided", split=(Fraction(1, 4),) * 4, further=(1, 1))
    steps = {step.name: step for step in forecast(terms).steps}
    assert steps["tables/1"].tables == steps["parameters"].tables == 4
    assert steps["tables/1"].bytes_per_party == 8 * steps["tables/1"].cells > 0
