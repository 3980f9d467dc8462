"""What the services take of a machine: memory after work, and processor time while nothing happens.

The figures are printed (`pytest -s`); the bounds are loose, because other programs share the machine.
"""

import time
from pathlib import Path

import psutil
import pytest

from curator.experiments.sample_data import SCHEMA
from protocol.tables.schema import Schema
from tests.end_to_end.cluster import Cluster, Program, cluster
from tests.end_to_end.conftest import PARTIES
from tests.support.programs import start_script

LARGEST_MB = 250
IDLE_SECONDS = 6.0
MOST_IDLE_SHARE = 0.02  # of one processor; 0.005 is the aim, which one tick of the system's clock may exceed


def megabytes(program: Program) -> float:
    return float(psutil.Process(program.process.pid).memory_info().rss) / (1 << 20)


def processor_seconds(program: Program) -> float:
    times = psutil.Process(program.process.pid).cpu_times()
    return float(times.user + times.system)


@pytest.mark.exhaustive
def test_memory_after_a_run_of_many_rows_and_attributes(tmp_path: Path) -> None:
    schema = Schema.model_validate(SCHEMA)
    # From the scripts: forked programs would count what they share with the fork server as theirs.
    with cluster(tmp_path / "large", schema, begin_process=start_script) as large:
        large.add("north", "south", rows=20_000)
        large.acquaint("north", "south")
        large.enrol("north", "south")
        large.serve("north", "south")
        run = large.finished("north", "south", key_bits=2048, noise="selected", epsilon="1")
        assert len(large.get(run, "table.csv", rows=50_000).splitlines()) == 50_001
        large.get(run, "table.parquet")
        found = {program.name: megabytes(program) for program in large.programs}
        print("".join(f"\n{name}: {size:.0f} MB after a run of 2 x 20,000 rows" for name, size in found.items()))
        assert max(found.values()) < LARGEST_MB, found


def test_nobody_works_while_nothing_happens(home: Cluster) -> None:
    """Whoever works all the time works in each of three spans; what follows a run may still go on in the first."""
    home.finished(*PARTIES)
    programs = [home.curator, *(home.sites[name].running for name in PARTIES)]
    time.sleep(1)
    for _ in range(3):
        before = [processor_seconds(program) for program in programs]
        time.sleep(IDLE_SECONDS)
        shares = [
            (processor_seconds(program) - then) / IDLE_SECONDS for program, then in zip(programs, before, strict=True)
        ]
        print("".join(f"\n{one.name}: {share:.2%} of a processor" for one, share in zip(programs, shares, strict=True)))
        if max(shares) < MOST_IDLE_SHARE:
            break
    assert max(shares) < MOST_IDLE_SHARE, shares
