"""What the network costs: runs over HTTP on loopback beside the same plan in one process, and what services take idle.

Run: python -m tests.benchmarks service. Real cryptography at 3072 bits, three parties, made-up hospitals.
"""

import tempfile
from pathlib import Path
from time import perf_counter, sleep

import psutil

from crypto.randomness import Stream
from curator.sample_data import SCHEMA
from curator.simulation import make_identities, member_of, simulate
from protocol.agreement import agree
from protocol.manifest import SignedManifest
from protocol.schema import Schema
from protocol.synthesis import synthetic_codes
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
        print(f"{len(PARTIES)} parties of {ROWS:,} rows, {len(schema.names)} attributes, 3072-bit keys, noise selected")
        for number in range(TIMES):
            over_http, manifest = _over_http(home)
            in_process = _in_process(home, manifest)
            ratio = over_http / in_process
            print(f"run {number + 1}: over HTTP {over_http:5.2f} s, simulated {in_process:5.2f} s, ratio {ratio:.2f}")
        _print_idle(home)


def _over_http(home: Cluster) -> tuple[float, SignedManifest]:
    """From the request to the published table, key generation included on both sides of the comparison."""
    started = perf_counter()
    run = home.finished(*PARTIES, noise="selected")
    seconds = perf_counter() - started
    return seconds, SignedManifest.model_validate_json(home.get(run, "manifest.json"))


def _in_process(home: Cluster, found: SignedManifest) -> float:
    """The same plan over the same rows, with keys of its own."""
    identities = make_identities(len(PARTIES))
    plan = found.manifest.plan
    members = tuple(
        member_of(member.name, member.rows, identity) for member, identity in zip(plan.members, identities, strict=True)
    )
    codes = [home.sites[member.name].codes for member in members]
    started = perf_counter()
    terms = agree(plan.model_copy(update={"members": members}), home.schema)
    simulation = simulate(terms, codes, identities, Stream.system())
    for _ in synthetic_codes(terms, simulation.state.knowledge, plan.rows, Stream.system()):
        pass
    return perf_counter() - started


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
