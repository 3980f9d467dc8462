"""Schedules that have found something, in their simplest form, each under the name of what it found.

Most of what they found was put into the product to see whether it would be found. They do not look for anything else
than `test_schedules.py`, which need not come by them again.
"""

from collections.abc import Mapping

import pytest

from tests.simulation.schedules import CURATOR, Death, Restored, Rules, Schedule, Twice
from tests.simulation.trial import judge
from tests.simulation.world import staged

FOUND: Mapping[str, Schedule] = {
    "an answer computed anew, for a curator that died before it had stored the first": Schedule(
        "replace, local", (Death(CURATOR, "commit", 34, "before", 0, 0.0),)
    ),
    "a charge without the state that belongs to it": Schedule(
        "joint, selected", (Death("party-2", "commit", 5, "after", 0, 0.5),)
    ),
    "a state that was not kept": Schedule("replace, local", (Rules("party-2", 10, "renamed", "accept"),)),
    "a joined run without frozen rows": Schedule(
        "dp-ccbn, distributed", (Death("party-1", "rename", 1, "torn", 0, 0.5),)
    ),
    "a torn line of the audit log, written on": Schedule(
        "joint, local", (Death("party-2", "append", 2, "torn", 0.3, 0.5),)
    ),
    "answers replayed in another order than they came": Schedule(
        "replace, local", (Death(CURATOR, "serve", 32, "after", 0, 0.5),)
    ),
    "another first variable after a restart": Schedule("dp-ccbn, selected", (Restored(22, 4),)),
    "a request taken twice": Schedule("accumulate, selected", (Twice("party-2", 9, 0.5),)),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found_stays_mended(name: str) -> None:
    with staged():
        world = judge(FOUND[name])
    assert world.happened == list(FOUND[name].faults)
    assert world.ends == ["finished"]
