"""Trials: one schedule in a world of its own, and the judgement on it.

It does not know where schedules come from.
"""

import gc
import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tests.simulation import homes
from tests.simulation.schedules import Counts, Schedule, simpler
from tests.simulation.verdicts import failures
from tests.simulation.world import World, staged

_COLLECT = 16  # trials between two collections of what they leave in memory


@dataclass
class Tally:
    """What many trials have come by."""

    trials: int = 0
    states: set[int] = field(default_factory=set)
    faults: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    deaths: Counter[str] = field(default_factory=Counter)

    def add(self, world: World, ends: list[str]) -> None:
        self.trials += 1
        self.states |= world.states
        self.faults.update(type(fault).__name__ for fault in world.happened)
        self.ends.update(ends)


TALLY = Tally()


def judge(schedule: Schedule) -> World:
    """Let a schedule take its course; raise AssertionError if anything happens that must not."""
    folder = Path(tempfile.mkdtemp(prefix="world", dir=homes.memory()))
    try:
        world = World(folder, schedule)
        world.run()
        found = failures(world)
        assert not found, "\n".join([*dict.fromkeys(found), f"in {schedule}"])
        TALLY.add(world, world.ends)
        return world
    finally:
        shutil.rmtree(folder)
        if TALLY.trials % _COLLECT == 0:
            gc.collect()


def simplest(schedule: Schedule) -> Schedule:
    """The simplest schedule to be found that still fails."""
    for simple in simpler(schedule):
        try:
            judge(simple)
        except AssertionError:
            return simplest(simple)
    return schedule


@cache
def usual(way: str) -> Counts:
    """How often an undisturbed run of this kind comes by every effect, message and piece of work of every node."""
    with staged():
        return dict(judge(Schedule(way)).counts)
