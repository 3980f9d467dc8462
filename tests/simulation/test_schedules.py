"""Runs with faults, drawn by numbers: whatever goes wrong, nothing happens that `simulation.md` counts as a failure.

`make faults` tries many more of them.
"""

from collections import ChainMap

import pytest

from tests.simulation.schedules import WAYS, all_kinds, drawn, kind_of
from tests.simulation.trial import tally, usual
from tests.simulation.world import staged
from tests.support.effort import examples

# How many schedules of each kind of run: more of the quicker ones.
NUMBERS = dict.fromkeys(WAYS, 30) | {"parameters alone": 130, "independent": 50, "joint, selected": 20}
assert sum(NUMBERS.values()) >= 500


@pytest.mark.parametrize("way", WAYS)
def test_no_schedule_fails(way: str) -> None:
    with staged():
        schedules = [drawn(way, number, usual(way)) for number in range(examples(NUMBERS[way]))]
        assert tally(schedules).trials == len(schedules)


def test_every_kind_of_fault_is_drawn() -> None:
    way = "accumulate, distributed"
    counts = ChainMap(dict(usual(way)), dict(usual("parameters alone")))
    seen = {kind_of(fault) for number in range(4000) for fault in drawn(way, number, counts).faults}
    assert all_kinds(counts) - seen == set()


def test_a_number_draws_the_same_schedule_again() -> None:
    """Without which no failure could be looked at again: the run takes the same course, too."""
    way = "accumulate, distributed"
    with staged():
        schedule = drawn(way, 1, usual(way))
        assert schedule == drawn(way, 1, usual(way)) != drawn(way, 2, usual(way))
        first, second = tally([schedule]), tally([schedule])
    assert (first.states, first.faults, first.ends) == (second.states, second.faults, second.ends)
