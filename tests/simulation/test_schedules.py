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

QUICKEST = "parameters alone"
# How many schedules of each kind of run: more of the quicker ones.
NUMBERS = dict.fromkeys(WAYS, 2) | {QUICKEST: 450, "guided, local": 6}
FOUND_BY_HYPOTHESIS = 10
assert sum(NUMBERS.values()) + FOUND_BY_HYPOTHESIS >= 500
AT_ONCE = 20  # in one test, so that several processes share the work
BATCHES = [
    (way, range(start, min(start + AT_ONCE, NUMBERS[way]))) for way in WAYS for start in range(0, NUMBERS[way], AT_ONCE)
]


@pytest.mark.parametrize(("way", "numbers"), BATCHES, ids=[f"{way}, {numbers[0]}" for way, numbers in BATCHES])
def test_no_schedule_fails(way: str, numbers: range) -> None:
    with staged():
        assert tally([drawn(way, number, usual(way)) for number in numbers]).trials == len(numbers)


@settings(max_examples=FOUND_BY_HYPOTHESIS, deadline=None)
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
