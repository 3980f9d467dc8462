"""What a user would do instead, in CPU seconds beside dp-subn: central AIM and MST, and one ciphertext per cell.

Run: make build/peers/ready, then python -m tests.benchmarks beside_peers. AIM alone takes a quarter of an hour.

All make a table of Adult with the same budget, on this machine, in this run. Reading and writing files is left out
everywhere. AIM and MST see all rows in one place; dp-subn's seconds are those of three parties and a curator together,
with planning, the cryptography and the drawing of as many rows. The naive protocol is dp-subn's own run with every
cell of its sums in a ciphertext of its own, on objects of the package phe, as the papers have it. It is measured on a
few cells.

It does not know thresholds: it prints figures.
"""

import sys
from collections.abc import Mapping, Sequence
from fractions import Fraction
from time import process_time
from typing import Any

import numpy as np

from crypto.paillier_secret import SecretKey
from crypto.randomness import Stream
from curator.experiments.coded_tables import read_codes
from curator.experiments.simulation import make_identities, member_of, simulate
from protocol.options import Noise, Privacy
from protocol.plan.plan import Member, Plan
from protocol.plan.presets import make_plan
from protocol.run.agreement import agree
from protocol.run.synthesis import synthetic_codes
from protocol.tables.schema import Schema
from tests.benchmarks.peers.all import DELTA, measure
from tests.benchmarks.secure_sum import CELLS, naive_seconds
from tests.benchmarks.utility_data import DATA, ROOT

_PYTHON = ROOT / "build" / "peers" / "bin" / "python"
_DATA, _EPSILON, _PARTIES, _KEY_BITS, _SEED = "adult", "0.8", 3, 3072, 1
_TIMES = 3  # the least counts


def main() -> None:
    if not _PYTHON.exists():
        sys.exit(f"{_PYTHON} is missing: make it with `make build/peers/ready`")
    ours = {way: min((_ours(*way) for _ in range(_TIMES)), key=lambda done: done[0]) for way in _WAYS}
    for (privacy, noise), (seconds, cells) in ours.items():
        print(f"dp-subn, {privacy}, noise {noise}: {seconds:.2f} s, {cells:,} cells in sums", flush=True)
    per_cell = naive_seconds(SecretKey.generate(_KEY_BITS), _PARTIES) / CELLS
    _print_ratios("one ciphertext per cell", per_cell * ours["pure", "selected"][1], ours)
    for method in ("mst", "aim"):
        one = {"data": _DATA, "method": method, "epsilon": _EPSILON, "delta": DELTA, "seed": _SEED}
        _print_ratios(method.upper(), measure(_PYTHON, one)["cpu_seconds"], ours)


Way = tuple[Privacy, Noise]
Done = tuple[float, int]  # CPU seconds, and the cells that the curator learns totals of
_WAYS: tuple[Way, ...] = (("pure", "distributed"), ("pure", "selected"), ("zcdp", "distributed"))


def _ours(privacy: Privacy, noise: Noise) -> Done:
    """Make a whole run."""
    schema = Schema.parse(DATA[_DATA].schema.read_bytes())
    codes, stream = read_codes(DATA[_DATA].table, schema), Stream.system()
    shares = np.array_split(np.array(stream.permutation(len(codes[0]))), _PARTIES)
    divided = [[column[own] for column in codes] for own in shares]
    begun = process_time()
    identities = make_identities(_PARTIES, stream)
    members = [member_of(f"party-{k}", len(own), identities[k]) for k, own in enumerate(shares)]
    done = simulate(agree(_plan(schema, members, privacy, noise), schema), divided, identities, stream)
    for _ in synthetic_codes(done.terms, done.state.knowledge, done.terms.plan.rows, stream.child("rows")):
        pass
    return process_time() - begun, sum(cost.cells for cost in done.stages.values()) // _PARTIES


def _plan(schema: Schema, members: Sequence[Member], privacy: Privacy, noise: Noise) -> Plan:
    wishes: dict[str, Any] = {"privacy": privacy, "noise": noise}
    wishes |= {"delta": Fraction(DELTA)} if privacy == "zcdp" else {}
    wishes |= {"key_bits": _KEY_BITS} if noise == "selected" else {}
    return make_plan("beside peers", schema, members, Fraction(_EPSILON), "guided", "sound", **wishes)


def _print_ratios(name: str, seconds: float, ours: Mapping[Way, Done]) -> None:
    ratios = ", ".join(f"{seconds / own:.0f} times {' '.join(way)}" for way, (own, _) in ours.items())
    print(f"{name}: {seconds:.1f} s; {ratios}", flush=True)


if __name__ == "__main__":
    main()
