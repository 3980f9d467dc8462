"""Every mutant of the product is caught, by a schedule under which the product itself does not fail."""

from pathlib import Path

import pytest

from tests.simulation.mutants import MUTANTS
from tests.simulation.trial import Failed, judge
from tests.simulation.world import staged
from tests.support.effort import mostly_exhaustive


@pytest.mark.parametrize("name", mostly_exhaustive(MUTANTS, range(0, len(MUTANTS), 4)))
def test_a_mistake_is_caught(name: str) -> None:
    mutant = MUTANTS[name]
    with staged():
        world = judge(mutant.schedule)
        with pytest.raises(Failed, match=mutant.says):
            judge(mutant.schedule, mutant.broken)
    assert world.happened == list(mutant.schedule.faults)


def test_the_note_names_every_mutant() -> None:
    note = (Path(__file__).parent / "simulation.md").read_text()
    listed = note.partition("<!-- mutants -->")[2].partition("<!-- /mutants -->")[0]
    assert listed.strip().splitlines() == [f"- {name}" for name in MUTANTS]
