"""Schedules in which the simulation has found a mistake, in their simplest form, under the name of the mistake.

`tests/simulation/mutants.py` has mistakes that were put into the product to see whether they would be found.
"""

from collections.abc import Mapping

import pytest

from tests.simulation.schedules import CURATOR, Cancel, Death, Full, Jump, Lost, Restored, Schedule
from tests.simulation.trial import judge
from tests.simulation.world import staged

FOUND: Mapping[str, Schedule] = {
    "a curator that could not write its claim on the database kept the lock": Schedule(
        "parameters alone",
        (Death(CURATOR, "serve", 1, "before", 0, 0.02), Full(CURATOR, "commit", 2, 1)),
    ),
    "an answer computed anew, for a curator that died before it had stored the first": Schedule(
        "replace, local", (Death(CURATOR, "commit", 34, "before", 0, 0.0),)
    ),
    "a joined run without frozen rows": Schedule(
        "dp-ccbn, distributed", (Death("party-1", "rename", 1, "torn", 0, 0.5),)
    ),
    "rows of a run that was over stayed until the curator could be reached": Schedule(
        "replace, local",
        (Death("party-2", "checkpoint", 2, "after", 0.7, 0.5), Jump(CURATOR, 49, -310, 5.0)),
    ),
    "a run finished that a party had been told was cancelled, as the curator was set back to before that": Schedule(
        "turns, local", (Lost("party-2", 19, "request", False), Restored(42, 8), Cancel(44)), seed=5000317
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found_stays_mended(name: str) -> None:
    with staged():
        world = judge(FOUND[name])
    assert world.happened == list(FOUND[name].faults)
    assert world.ends == ["finished"]
