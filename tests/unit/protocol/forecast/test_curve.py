"""Error by epsilon: the points are plans of their own, and enough is enough."""

from fractions import Fraction

import pytest

from protocol.errors import PlanError
from protocol.forecast.curve import EPSILONS, CurvePoint, enough, error_curve
from protocol.forecast.error import predicted
from tests.support.small_runs import MIXED, terms_of

ROWS = (3000, 2000, 1000)


def points(*errors: float) -> list[CurvePoint]:
    return [CurvePoint(Fraction(2**step), error, error, error, "guided") for step, error in enumerate(errors)]


def test_every_point_is_the_prediction_of_its_own_plan():
    found = error_curve(lambda epsilon: terms_of(MIXED, ROWS, epsilon, method="guided"))
    assert [one.epsilon for one in found] == list(EPSILONS)
    for one in found:
        said = predicted(terms_of(MIXED, ROWS, one.epsilon, method="guided"))
        assert (one.error, one.low, one.high, one.method) == (said.error, said.low, said.high, "guided")
    errors = [one.error for one in found]
    assert errors == sorted(errors, reverse=True)


def test_what_cannot_be_planned_has_no_point():
    def terms(epsilon):
        if epsilon < 1:
            raise PlanError("too little")
        return terms_of(MIXED, ROWS, epsilon, method="guided")

    assert {one.epsilon for one in error_curve(terms)} == {epsilon for epsilon in EPSILONS if epsilon >= 1}


@pytest.mark.parametrize(
    ("errors", "found"),
    [
        ((0.8, 0.4, 0.2, 0.1), None),  # every doubling halves the error
        ((0.8, 0.4, 0.39, 0.38), 2),
        ((0.8, 0.7, 0.3, 0.29), 4),  # little at first, much later: only the end counts
        ((0.5, 0.5), 1),
        ((0.5,), None),
        ((), None),
    ],
)
def test_enough_is_where_every_further_doubling_helps_little(errors, found):
    assert enough(points(*errors)) == found


def test_a_gap_in_the_curve_is_no_doubling():
    whole = points(0.5, 0.45, 0.44, 0.43)
    assert enough([whole[0], whole[2], whole[3]]) == 4
