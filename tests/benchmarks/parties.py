"""Runs of many parties over HTTPS on one machine: the clock, CPU, memory, and the critical path by number of parties.

Run: python -m tests.benchmarks.parties [--parties 3 10 25 50] [--case guided:distributed ...] [--rows 20000].

Every party is a process of its own. Their start is told apart from the runs. A step's time has two parts: the
parties', from the task to the last answer, and the curator's, from the last answer to the next task. Steps of one party
each are told as `in turn`: the method asks one party after another there, because each continues what the others did.

At the end comes the critical path of each case as a table: seconds on the clock by stage and number of parties, from
the operator's request to the end. `asking` is the request itself: the plan, its keys and the first tasks. `finished` is
the publication.

It does not know thresholds: it prints figures.
"""

import argparse
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from shutil import copyfile
from time import perf_counter, sleep
from typing import Any

import psutil

from curator.experiments.sample_data import SCHEMA, write_sample
from protocol.messages.run_states import ENDS
from protocol.tables.schema import Schema
from tests.end_to_end.cluster import Cluster, cluster
from tests.support.programs import Process, start_program, start_script

_CASES = ("guided:distributed", "guided:selected", "dp-subn:distributed", "dp-subn:selected")
_PARTIES = (3, 10, 25, 50)
_LOOK_SECONDS = 0.2
_PATIENCE_SECONDS = 600
_MEGABYTE = 1 << 20
_HIGHEST = "VmHWM:"  # in /proc/PID/status, in kB


@dataclass
class Part:
    """What a stage took of the run's time."""

    steps: int = 0
    parties: float = 0.0  # seconds until the last answer
    curator: float = 0.0  # seconds from there to the next step
    in_turn: bool = True


@dataclass(frozen=True)
class CriticalPath:
    """Where the time of one run went."""

    took: float  # seconds on the clock
    parts: dict[str, Part]  # by stage


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parties", type=int, nargs="+", default=_PARTIES)
    parser.add_argument("--case", nargs="+", default=_CASES, help="METHOD:NOISE")
    parser.add_argument("--rows", type=int, default=20_000, help="of each party")
    chosen = parser.parse_args(arguments)
    found: dict[str, dict[int, CriticalPath]] = {case: {} for case in chosen.case}
    for count in sorted(chosen.parties):
        with tempfile.TemporaryDirectory() as folder, _crowd(Path(folder), count, chosen.rows) as home:
            for case in chosen.case:
                found[case][count] = _run(home, *case.split(":"))
    for case, paths in found.items():
        print("\n".join(_table(case, paths)), flush=True)


@contextmanager
def _crowd(folder: Path, count: int, rows: int) -> Iterator[Cluster]:
    """So many hospitals that serve, with different patients."""
    names = [f"hospital-{number + 1}" for number in range(count)]
    write_sample(folder / "data", count, rows, seed=1)
    with cluster(folder / "cluster", Schema.parse(SCHEMA), begin_process=_begun) as home:
        home.http.timeout = _PATIENCE_SECONDS
        home.add(*names, rows=1)
        for name in names:
            copyfile(folder / "data" / f"{name}.csv", home.sites[name].home / "patients.csv")
        home.acquaint(*names)
        home.enrol(*names)
        began = perf_counter()
        home.serve(*names)
        took = perf_counter() - began
        print(f"\n{count} parties of {rows:,} rows, {len(home.schema.names)} attributes; all serve after {took:.1f} s")
        yield home
        for name in names:  # one after the other: all at once, on two cores, take longer than a test waits for one
            home.sites[name].running.stop()


def _begun(program: str, *arguments: object, **where: Any) -> Process:
    """The curator starts as operators start it, so that its memory is its own; a party is forked, which is quicker."""
    return (start_script if program == "subn-curator" else start_program)(program, *arguments, **where)


def _run(home: Cluster, method: str, noise: str) -> CriticalPath:
    names = list(home.sites)
    curator = psutil.Process(home.curator.process.pid)
    parties = [psutil.Process(home.sites[name].running.process.pid) for name in names]
    before, began = [_seconds(curator), sum(map(_seconds, parties))], perf_counter()
    run = home.begin(*names, method=method, noise=noise, epsilon="1", step_seconds=_PATIENCE_SECONDS)
    while (ended := home.run(run))["state"] not in ENDS:
        sleep(_LOOK_SECONDS)
    took = perf_counter() - began
    used = [_seconds(curator) - before[0], sum(map(_seconds, parties)) - before[1]]
    assert ended["state"] == "finished", ended
    print(
        f"\n{method}, {noise}, {len(names)} parties: {took:.1f} s on the clock; CPU: curator {used[0]:.1f} s, parties "
        f"{used[1]:.1f} s; curator {_highest(curator) / _MEGABYTE:.0f} MB at most",
        flush=True,
    )
    path = CriticalPath(took, _parts(list(_events(home, ended["run"]))))
    _print_path(path)
    return path


def _seconds(process: psutil.Process) -> float:
    """CPU seconds of a process and of those that it has waited for."""
    return float(sum(process.cpu_times()[:4]))


def _highest(process: psutil.Process) -> int:
    """The most memory that a process has held, in bytes."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(_HIGHEST))


def _events(home: Cluster, run: str) -> Iterator[dict[str, Any]]:
    for line in home.get(run, "events").decode().splitlines():
        if line.startswith("data:"):
            yield json.loads(line.removeprefix("data:"))


def _parts(events: Sequence[dict[str, Any]]) -> dict[str, Part]:
    """Where the time between the first and the last event went, by stage."""
    found: dict[str, Part] = {}
    steps = [event for event in events if event["kind"] == "step"]
    for one, following in zip(steps, [*steps[1:], events[-1]], strict=True):
        begun, ended = _at(one), _at(following)
        answers = [_at(e) for e in events if e["kind"] == "answered" and e["data"]["step"] == one["data"]["step"]]
        part = found.setdefault(one["data"]["stage"], Part())
        last = max(answers, default=begun)
        part.steps += 1
        part.parties, part.curator = part.parties + last - begun, part.curator + ended - last
        part.in_turn &= len(answers) == 1
    return found


def _print_path(path: CriticalPath) -> None:
    for stage, part in path.parts.items():
        how = "in turn" if part.in_turn else ""
        figures = f"parties {part.parties:6.2f} s, curator {part.curator:6.2f} s"
        print(f"    {stage:14} {part.steps:3} steps  {figures}  {how}", flush=True)


def _table(case: str, paths: Mapping[int, CriticalPath]) -> Iterator[str]:
    """The lines of a table in Markdown: the seconds of each stage, and of everything, by number of parties."""
    yield f"\n{case.replace(':', ', ')}\n"
    yield f"| phase | {' | '.join(f'{count} parties' for count in paths)} | in order |"
    yield "|---|" + "---|" * (len(paths) + 1)
    known = [
        {"asking": Part(parties=path.took - _seconds_of(path), in_turn=False), **path.parts} for path in paths.values()
    ]
    for stage in dict.fromkeys(stage for parts in known for stage in parts):
        own = [parts.get(stage) for parts in known]
        yield f"| {stage} | {' | '.join(_cell(part) for part in own)} | {_order(stage, own)} |"
    yield f"| all | {' | '.join(f'{path.took:.1f}' for path in paths.values())} | |"


def _seconds_of(path: CriticalPath) -> float:
    return sum(part.parties + part.curator for part in path.parts.values())


def _cell(part: Part | None) -> str:
    return "" if part is None else f"{part.parties + part.curator:.1f}"


def _order(stage: str, parts: Sequence[Part | None]) -> str:
    """Whether the parties answer this stage all at once, or one after the other by design."""
    known = [part for part in parts if part is not None]
    if stage in ("asking", "finished"):
        return "the curator alone"
    if all(part.in_turn for part in known):
        return f"one party after the other, {max(part.steps for part in known)} steps"
    return "all parties at once" if all(part.steps == 1 for part in known) else "all parties at once, step by step"


def _at(event: dict[str, Any]) -> float:
    return datetime.fromisoformat(event["at"]).timestamp()


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
