"""A run between services is the run that `subn simulate` shows: with the same randomness the same bytes come out.

Here the cryptography is left out at both (`ClearSums`), which keeps the noise; all else is what serves: the curator's
application on a socket, the parties' client, worker, ledger and answers, and what is published.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from crypto.randomness import KEY_BYTES, Stream
from curator.app import make_app
from curator.clock import system_clock
from curator.experiments.simulation import ClearOpening, ClearSums, Simulation, simulate
from curator.results.csv_files import write_table
from curator.results.publication import NETWORK, TABLE, TABLES, network_json, synthetic_labels, tables_json
from curator.runs.run_crypto import NewKeys
from curator.server import listening
from curator.service import Service
from party.curator_link.client import Backoff, Curator
from protocol.plan.plan import Plan
from protocol.plan.terms import Terms
from protocol.run.agreement import agree
from protocol.run.manifest import Manifest, verify_manifest
from tests.end_to_end.cluster import Cluster
from tests.end_to_end.conftest import PARTIES
from tests.support.curator import Clock, Desk
from tests.support.effort import mostly_exhaustive
from tests.support.fake_curator import FakeCurator
from tests.support.party import Party, make_home
from tests.support.small_runs import MIXED, SMALL_BITS, identity, random_codes

ROWS = (90, 70, 50)


class Now(Clock):
    def __call__(self) -> int:
        return system_clock()


class Randomness:
    """The streams of one run, divided as `simulate` divides its one."""

    def __init__(self, seed: bytes, parties: int) -> None:
        whole = Stream.keyed(seed)
        self.curator = whole.child("curator")
        self._order = whole.permutation(parties)
        self.parties = [whole.child(f"party {me}") for me in range(parties)]

    def keeps_noise(self, plan: Plan, me: int) -> bool:
        return me in self._order[: plan.noise_shares]


class ClearCrypto:
    def make_keys(self, plan: Plan, stream: Stream) -> NewKeys | None:
        return None

    def opening(self, plan: Plan, secret: bytes | None) -> ClearOpening:
        return ClearOpening()


@dataclass
class SeededDesk(Desk):
    seed: bytes = b""

    def streams(self, purpose: str) -> Stream:
        fixed = {"curator": Randomness(self.seed, len(self.rows)).curator, "synthesis": Stream.keyed(b"synthesis")}
        return fixed.get(purpose) or super().streams(purpose)


@asynccontextmanager
async def served(desk: Desk) -> AsyncIterator[str]:
    service = Service.of(desk.settings, desk.store, desk.keys, desk.orchestrator, desk.clock)
    listener = listening("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(make_app(service), log_config=None, access_log=False))
    serving = asyncio.create_task(server.serve([listener]))
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        service.relay.close()
        server.should_exit = True
        await serving
        listener.close()


def over_http(tmp_path: Path, seed: bytes, **wishes: Any) -> tuple[Path, Plan, list[Party]]:
    """The published files of a run between real workers and the real application."""
    desk = SeededDesk(tmp_path / "curator", rows=ROWS, schema=MIXED, crypto=ClearCrypto(), clock=Now(), seed=seed)
    known, randomness = FakeCurator(), Randomness(seed, len(ROWS))
    known.key = desk.keys.signing  # the homes are told of the real one
    rules = {"schema": MIXED, "rows": ROWS, "total": "4"}
    parties = [
        Party(
            make_home(tmp_path / f"party-{me + 1}", me, known, **rules),
            me,
            known,
            stream=randomness.parties[me],
            sums=lambda plan, me: ClearSums(plan, me, randomness.keeps_noise(plan, me)),
        )
        for me in range(len(ROWS))
    ]
    run = desk.run(**wishes)
    asyncio.run(_work(desk, run, parties))
    folder = desk.orchestrator.folder(run)
    return folder, verify_manifest((folder / "manifest.json").read_bytes(), {}, smallest_key=SMALL_BITS).plan, parties


async def _work(desk: Desk, run: str, parties: list[Party]) -> None:
    async with served(desk) as url:
        workers = [asyncio.create_task(_serve(url, desk, party)) for party in parties]
        deadline = time.monotonic() + 60
        while (ended := desk.views.run(run)).state in ("joining", "running") and time.monotonic() < deadline:
            await asyncio.sleep(0.02)
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    assert ended.state == "finished", ended


async def _serve(url: str, desk: Desk, party: Party) -> None:
    key = desk.keys.signing.public
    async with Curator(url, party.name, identity(party.number).signing, key, backoff=Backoff(0.01, 0.1)) as line:
        await party.worker(line).run()


def in_one_process(seed: bytes, terms: Terms) -> Simulation:
    codes = random_codes(MIXED, ROWS)
    return simulate(terms, codes, [identity(me) for me in range(len(ROWS))], Stream.keyed(seed), real_crypto=False)


@pytest.mark.parametrize(
    "wishes",
    mostly_exhaustive(
        [
            {},
            {"noise": "distributed", "update": "joint", "rounds": 3},
            {"noise": "local", "encoding": "hierarchical"},
            {"method": "privbayes", "family_tables": "every"},
            {"method": "privabn"},
            {"method": "jtree", "noise": "distributed"},
            {"method": "dp-ccbn"},
            {"method": "dp-ccbn", "noise": "distributed", "score": "R"},
            {"method": "independent"},
        ],
        {0, 1, 3, 4, 5, 7},
    ),
    ids=lambda wishes: " ".join(map(str, wishes.values())) or "as recommended",
)
def test_both_publish_the_same_bytes(tmp_path: Path, wishes: dict[str, Any]) -> None:
    seed = b"the same"
    folder, plan, parties = over_http(tmp_path, seed, **wishes)
    terms = agree(plan, MIXED, SMALL_BITS)
    done = in_one_process(seed, terms)
    drawn = Stream.keyed(b"synthesis").take(KEY_BYTES)
    rows = synthetic_labels(terms, done.state.knowledge, plan.rows, drawn)
    write_table(tmp_path / TABLE, MIXED.names, rows)
    assert (folder / TABLE).read_bytes() == (tmp_path / TABLE).read_bytes()
    assert json.loads((folder / NETWORK).read_text()) == network_json(terms, done.state.knowledge)
    assert json.loads((folder / TABLES).read_text()) == tables_json(terms, done.state.knowledge)
    check_manifest(verify_manifest((folder / "manifest.json").read_bytes(), {}, smallest_key=SMALL_BITS), done)
    for me, party in enumerate(parties):
        assert party.ledger.spent("patients") == done.spent[me]
        party.ledger.close()


def check_manifest(manifest: Manifest, done: Simulation) -> None:
    """All figures but the time that it took."""
    assert [record.spent for record in manifest.parties] == done.spent
    assert [(cost.name, cost.cells, cost.ciphertexts, cost.bytes) for cost in manifest.phases] == [
        (cost.name, cost.cells, cost.ciphertexts, cost.bytes) for cost in done.stages.values()
    ]


def test_other_randomness_gives_another_table(tmp_path: Path) -> None:
    """Without which the test above would prove nothing."""
    tables = []
    for seed in (b"the same", b"another"):
        folder, _, parties = over_http(tmp_path / seed.decode(), seed)
        tables.append((folder / TABLES).read_bytes())
        for party in parties:
            party.ledger.close()
    assert tables[0] != tables[1]


# The programs themselves, with real cryptography


_TOLD_APART = ("method", "preset", "privacy", "epsilon", "delta")  # beside the simulation's parameters


@pytest.mark.parametrize("method", mostly_exhaustive(["dp-subn", "dp-ccbn"], {0}))
def test_the_manifest_says_what_the_simulation_says(home: Cluster, tmp_path: Path, method: str) -> None:
    """What no randomness decides is equal: the plan but for names and keys, the prices, the phases."""
    names, schema, data = PARTIES[:3], tmp_path / "schema.json", tmp_path / "all.csv"
    schema.write_text(home.schema.to_json())
    tables = [(home.sites[name].home / "patients.csv").read_text().splitlines() for name in names]
    data.write_text("\n".join([tables[0][0], *(row for table in tables for row in table[1:])]) + "\n")
    files = ["--data", data, "--schema", schema, "--out", tmp_path / "out", "--json"]
    wishes = ["--epsilon", "2", "--method", method, "--noise", "distributed"]
    done = home.subn("simulate", *files, *wishes)
    assert done.returncode == 0, done.stderr
    simulated = json.loads(done.stdout)
    manifest = verify_manifest(home.get(home.finished(*names, method=method), "manifest.json"), {})
    plan = manifest.plan.model_dump(mode="json", exclude={"run", "members", "against"})
    told = simulated["parameters"] | {field: simulated[field] for field in _TOLD_APART}
    assert plan == {field: told[field] for field in plan}
    assert [party["spent"] for party in simulated["parties"]] == [str(record.spent) for record in manifest.parties]
    assert [party["rows"] for party in simulated["parties"]] == [member.rows for member in manifest.plan.members]
    assert [phase["name"] for phase in simulated["phases"]] == [phase.name for phase in manifest.phases]
    simulated_work = [(one["name"], one["cells"], one["ciphertexts"]) for one in simulated["phases"]]
    work = [(phase.name, phase.cells, phase.ciphertexts) for phase in manifest.phases]
    fixed = 2 if method == "dp-subn" else 1  # joining, and all pairs; what is counted then follows from noisy scores
    assert simulated_work[:fixed] == work[:fixed]
