"""Runs with faults, drawn by numbers: whatever goes wrong, nothing happens that `simulation.md` counts as a failure.

`make faults` tries many more of them.
"""

from collections import ChainMap
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.simulation.schedules import WAYS, all_kinds, composed, drawn, kind_of
from tests.simulation.trial import judge, tally, usual
from tests.simulation.world import staged
from tests.support.effort import examples

QUICKEST = "parameters alone"
# How many schedules of each kind of run: more of the quicker ones.
NUMBERS = dict.fromkeys(WAYS, 4) | {QUICKEST: 380, "independent": 40, "guided, local": 10}
FOUND_BY_HYPOTHESIS = 10
assert sum(NUMBERS.values()) + FOUND_BY_HYPOTHESIS >= 500


@pytest.mark.parametrize("way", WAYS)
def test_no_schedule_fails(way: str) -> None:
    with staged():
        schedules = [drawn(way, number, usual(way)) for number in range(examples(4 * NUMBERS[way]))]
        assert tally(schedules).trials == len(schedules)


@settings(max_examples=examples(4 * FOUND_BY_HYPOTHESIS), deadline=None)
@given(way=st.sampled_from([*WAYS]), random=st.randoms(use_true_random=False))
def test_hypothesis_finds_no_schedule_that_fails(way: str, random: Random) -> None:
    """It would show the simplest one, and try it again."""
    with staged():
        judge(composed(way, random, usual(way)))


def test_every_kind_of_fault_is_drawn() -> None:
    way = "accumulate, distributed"
    counts = ChainMap(dict(usual(way)), dict(usual(QUICKEST)))
    seen = {kind_of(fault) for number in range(8000) for fault in drawn(way, number, counts).faults}
    assert all_kinds(counts) - seen == set()


def test_a_number_draws_the_same_schedule_again() -> None:
    """Without which no failure could be looked at again: the run takes the same course, too."""
    way = "accumulate, distributed"
    with staged():
        schedule = drawn(way, 1, usual(way))
        assert schedule == drawn(way, 1, usual(way)) != drawn(way, 2, usual(way))
        first, second = tally([schedule]), tally([schedule])
    assert (first.states, first.faults, first.ends) == (second.states, second.faults, second.ends)
