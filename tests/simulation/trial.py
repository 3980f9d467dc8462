"""Trials: one schedule in a world of its own, the judgement on it, and what many of them have come by.

It does not know which schedules are tried.
"""

import gc
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tests.simulation import homes
from tests.simulation.schedules import Counts, Schedule, kind_of, simpler
from tests.simulation.verdicts import failures
from tests.simulation.world import World, staged

_COLLECT = 16  # trials between two collections of what they leave in memory


class Failed(AssertionError):
    """Something happened that must not."""


@dataclass
class Tally:
    """What trials have come by: the states of the world, the faults that happened, and how the runs ended."""

    trials: int = 0
    states: set[int] = field(default_factory=set)
    faults: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)

    def add(self, world: World) -> None:
        self.trials += 1
        self.states |= world.states
        self.faults.update(map(kind_of, world.happened))
        self.ends.update(world.ends)

    def take_in(self, other: "Tally") -> None:
        self.trials += other.trials
        self.states |= other.states
        self.faults += other.faults
        self.ends += other.ends


def judge(schedule: Schedule, circumstances: Callable[[], AbstractContextManager[None]] = nullcontext) -> World:
    """Let a schedule take its course, under some circumstances. Raise Failed with everything that must not happen."""
    folder = Path(tempfile.mkdtemp(prefix="world", dir=homes.memory()))
    try:
        world = World(folder, schedule)
        with circumstances():
            world.run()
        found = failures(world)
    except Exception as error:
        error.add_note(f"in {schedule}")
        raise
    finally:
        shutil.rmtree(folder)
    if found:
        raise Failed("\n".join([*dict.fromkeys(found), f"in {schedule}"]))
    return world


def simplest(schedule: Schedule) -> Schedule:
    """The simplest schedule to be found that still fails."""
    for simple in simpler(schedule):
        try:
            judge(simple)
        except Failed:
            return simplest(simple)
    return schedule


def tally(schedules: Iterable[Schedule], failed: Callable[[Schedule], None] | None = None) -> Tally:
    """Judge schedules one after the other. The first failure is raised, unless somebody wants to be told of all."""
    found = Tally()
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        for number, schedule in enumerate(schedules, start=1):
            try:
                found.add(judge(schedule))
            except Failed:
                if failed is None:
                    raise
                failed(schedule)
            if number % _COLLECT == 0:  # whatever trials leave in memory
                gc.collect()
    finally:
        gc.enable()
        gc.unfreeze()
    return found


@cache
def usual(way: str) -> Counts:
    """How often an undisturbed run of this kind comes by every effect, message and piece of work of every node."""
    with staged():
        return dict(judge(Schedule(way)).counts)
