"""With seeded streams and no cryptography, service and simulation do the same: every table, to the last byte."""

from pathlib import Path

import pytest

from crypto.randomness import Stream
from curator import run_records
from curator.publication import synthetic_labels
from curator.simulation import ClearOpening, ClearSums, Simulation, simulate
from curator.tables import write_table
from protocol.agreement import agree
from protocol.manifest import SignedManifest
from protocol.plan import Plan
from protocol.terms import Terms
from tests.curator_support import Desk
from tests.support import MIXED, SMALL_BITS, identity

ROWS = (60, 50, 40)
SEED = b"one seed for both"
METHODS = [("dp-subn", "accumulate"), ("dp-subn", "joint"), ("independent", "joint")]


class ClearCrypto:
    """The curator's side of `ClearSums`: nothing is encrypted."""

    def make_keys(self, _plan: Plan, _stream: Stream) -> None:
        return None

    def opening(self, _plan: Plan, _secret: bytes | None) -> ClearOpening:
        return ClearOpening()


def seed_parties(desk: Desk, shares: int) -> None:
    """The streams that the simulation gives to its parties, in the order in which it draws them."""
    root = Stream.keyed(SEED)
    root.child("curator")
    keeping = set(root.permutation(len(desk.parties))[:shares])

    def sums(terms: Terms, me: int) -> ClearSums:
        return ClearSums(terms.plan, me in keeping)

    for number, party in enumerate(desk.parties):
        party._stream, party.sums = root.child(f"party {number}"), sums


def simulated(desk: Desk, plan: Plan) -> Simulation:
    terms = agree(plan, desk.schema, SMALL_BITS)
    return simulate(terms, desk.codes, [identity(k) for k in range(len(ROWS))], Stream.keyed(SEED), real_crypto=False)


@pytest.mark.parametrize("noise", ["selected", "distributed", "local"])
@pytest.mark.parametrize(
    ("method", "update"), [("dp-subn", "accumulate"), ("dp-subn", "joint"), ("independent", "joint")]
)
def test_both_publish_the_same_table(tmp_path: Path, method: str, update: str, noise: str) -> None:
    desk = Desk(tmp_path / "curator", rows=ROWS, schema=MIXED, crypto=ClearCrypto())
    seed_parties(desk, shares=2)
    run = desk.run(method=method, update=update, noise=noise)
    with desk.store.reading() as db:
        seed = run_records.find_recovery(db, run).synthesis_seed
    desk.finish(run)
    published = desk.orchestrator.folder(run)
    manifest = SignedManifest.model_validate_json((published / "manifest.json").read_bytes()).manifest
    other = simulated(desk, manifest.plan)
    rows = synthetic_labels(other.terms, other.state.knowledge, manifest.plan.rows, seed)
    write_table(tmp_path / "simulated.csv", MIXED.names, rows)
    assert (tmp_path / "simulated.csv").read_bytes() == (published / "table.csv").read_bytes()
    assert [record.spent for record in manifest.parties] == other.spent
    assert {cost.name: cost.cells for cost in manifest.phases} == {c.name: c.cells for c in other.phases.values()}
