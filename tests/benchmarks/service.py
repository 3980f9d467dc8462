"""What the network costs: runs over HTTP on loopback beside `subn simulate` of the same, and what services take idle.

Run: python -m tests.benchmarks service. Real cryptography at 3072 bits, three parties, made-up hospitals.
"""

import tempfile
from pathlib import Path
from time import perf_counter, sleep

import psutil

from curator.experiments.sample_data import SCHEMA
from curator.experiments.simulate import Experiment, ExperimentSettings, run_experiment
from protocol.tables.schema import Schema
from tests.end_to_end.cluster import Cluster, cluster

PARTIES = ("north", "south", "west")
ROWS = 20_000
TIMES = 3
IDLE_SECONDS = 20
MEGABYTE = 1 << 20


def main() -> None:
    schema = Schema.parse(SCHEMA)
    with tempfile.TemporaryDirectory() as folder, cluster(Path(folder) / "cluster", schema) as home:
        home.add(*PARTIES, rows=ROWS)
        home.enrol(*PARTIES)
        home.acquaint(*PARTIES)
        home.serve(*PARTIES)
        _pool(home, Path(folder))
        print(f"{len(PARTIES)} parties of {ROWS:,} rows, {len(schema.names)} attributes, 3072-bit keys, noise selected")
        for number in range(TIMES):
            over_http, simulated = _over_http(home), _simulated(Path(folder))
            ratio = over_http / simulated
            print(f"run {number + 1}: over HTTP {over_http:5.2f} s, simulated {simulated:5.2f} s, ratio {ratio:.2f}")
        _print_idle(home)


def _over_http(home: Cluster) -> float:
    """From the request to the published files, key generation included on both sides of the comparison."""
    started = perf_counter()
    home.finished(*PARTIES, noise="selected", method="guided")
    return perf_counter() - started


def _simulated(folder: Path) -> float:
    """`subn simulate` with the same settings over the same rows, from files to files; Python has started already."""
    out = folder / "simulated"
    settings = ExperimentSettings("2", len(PARTIES), "guided", "sound", "random", {"noise": "selected"})
    started = perf_counter()
    experiment = Experiment(folder / "pooled.csv", folder / "schema.json", out, settings, None, True, False)
    run_experiment(experiment, lambda _step, _party: None)
    return perf_counter() - started


def _pool(home: Cluster, folder: Path) -> None:
    """All parties' rows in one file."""
    (folder / "schema.json").write_text(home.schema.to_json())
    with (folder / "pooled.csv").open("w") as file:
        for number, name in enumerate(PARTIES):
            with (home.sites[name].home / "patients.csv").open() as rows:
                header = next(rows)
                file.writelines([header] if number == 0 else [])
                file.writelines(rows)


def _print_idle(home: Cluster) -> None:
    programs = [home.curator, *(home.sites[name].running for name in PARTIES)]
    watched = {program.name: psutil.Process(program.process.pid) for program in programs}
    for process in watched.values():
        process.cpu_percent()
    sleep(IDLE_SECONDS)
    for name, process in watched.items():
        cpu, memory = process.cpu_percent(), process.memory_info().rss / MEGABYTE
        print(f"idle {name:8} {cpu:5.2f} % CPU over {IDLE_SECONDS} s, {memory:4.0f} MB resident after the runs")


if __name__ == "__main__":
    main()
