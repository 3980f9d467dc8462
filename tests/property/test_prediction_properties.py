"""Predicted errors lie between 0 and 1, and move the way that budgets, rows, insiders and cells push them."""

from fractions import Fraction
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.forecast.error import predicted
from protocol.plan.presets import make_plan
from protocol.plan.terms import Terms
from protocol.plan.typical_tables import noise_left
from protocol.stages.methods import terms_of as work_out
from protocol.tables.schema import Schema
from tests.support.effort import examples
from tests.support.small_runs import NO_NOISE, members

SIZES = st.lists(st.integers(2, 40), min_size=2, max_size=12)
WIDE = st.lists(st.integers(3, 40), min_size=3, max_size=12)
METHODS = st.sampled_from(["dp-subn", "guided", "privbayes", "privabn", "jtree", "dp-ccbn", "independent"])
# A step of a limit may let tables in that are noisier than what they replace: over ten times as much, that is gone.
_FALLS = 1.0
_SLACK = 1.06


def terms_of(sizes: list[int], rows: int = 20_000, epsilon: Fraction = Fraction(1), **wishes: Any) -> Terms:
    attributes = [
        {"name": f"a{i}", "kind": "categorical", "values": [str(v) for v in range(size)]}
        for i, size in enumerate(sizes)
    ]
    schema = Schema.parse({"title": "t", "attributes": attributes})
    return work_out(make_plan("run", schema, members([rows] * 3), epsilon, **wishes), schema)


def error_of(*arguments: Any, **wishes: Any) -> float:
    found = predicted(terms_of(*arguments, **wishes)).usual
    assert found is not None
    return found


@given(
    SIZES,
    st.integers(10, 10**6),
    st.fractions(Fraction(1, 100), 10) | st.just(NO_NOISE),
    METHODS,
    st.sampled_from(["pure", "zcdp"]),
)
@settings(deadline=None, max_examples=examples(40))
def test_whatever_the_plan_the_error_is_a_share_between_its_bounds_or_is_said_not_to_be_predicted(
    sizes, rows, epsilon, method, privacy
):
    delta = {"delta": Fraction(1, 10**9)} if privacy == "zcdp" else {}
    found = predicted(terms_of(sizes, rows, epsilon, method=method, privacy=privacy, **delta))
    assert found.why
    if found.error is None:
        assert found.low is None
        assert found.high is None
    else:
        assert found.low is not None
        assert found.high is not None
        assert 0 <= found.low <= found.error <= found.high <= 1


@given(WIDE, METHODS, st.integers(10, 50))
@settings(deadline=None, max_examples=examples(25))
def test_it_falls_with_rows(sizes, method, times):
    wishes = _fixed(method)
    assert error_of(sizes, 5_000 * times, **wishes) <= error_of(sizes, 5_000, **wishes) * _FALLS


@given(WIDE, METHODS, st.integers(10, 50))
@settings(deadline=None, max_examples=examples(25))
def test_it_falls_with_epsilon_however_the_budget_is_divided(sizes, method, times):
    less = error_of(sizes, epsilon=Fraction(1, 10), **_fixed(method, Fraction(1, 10)))
    more = error_of(sizes, epsilon=Fraction(times, 10), **_fixed(method, Fraction(times, 10)))
    assert more <= less * _FALLS


@given(WIDE)
@settings(deadline=None, max_examples=examples(25))
def test_it_rises_with_insiders(sizes):
    assert error_of(sizes, insiders=0, **_fixed("dp-subn")) <= error_of(sizes, insiders=1, **_fixed("dp-subn")) * _SLACK


@given(st.integers(2, 60), st.integers(2, 60), st.floats(1e-6, 1e-2), st.floats(1.0, 10.0))
def test_what_is_left_of_noise_rises_with_the_noise_and_with_cells(a, b, noise, times):
    found = noise_left((a, b), noise)
    assert 0 < found <= min(1.0, a * b * noise / 2) * 1.001
    assert found <= noise_left((a, b), noise * times) * 1.001
    assert noise_left((a,), noise) <= found * 1.001


def _fixed(method: str, epsilon: Fraction = Fraction(1)) -> dict[str, Any]:
    """The same phases at every budget: what the preset pays for changes with it."""
    if method not in ("guided", "dp-subn"):
        return {"method": method}
    split = tuple(Fraction(share, 20) * epsilon for share in (5, 2, 8, 5))
    views = "single" if method == "guided" else "halves"
    return {"method": method, "views": views, "further": (1, 1, 0), "split": split}


def test_parties_of_unequal_sizes_that_stand_alone_count_by_their_rows():
    def error(rows: list[int]) -> float:
        terms = terms_of([9] * 6, method="independent")
        unequal = tuple(one.model_copy(update={"rows": n}) for one, n in zip(terms.plan.members, rows, strict=True))
        found = predicted(work_out(terms.plan.model_copy(update={"members": unequal}), terms.schema)).usual
        assert found is not None
        return found

    alone, small = error([48_000] * 3), error([6_000] * 3)
    assert alone < error([48_000, 6_000, 6_000]) < small
