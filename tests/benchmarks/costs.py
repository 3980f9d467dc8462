"""What whole runs cost, method by method, with real cryptography, beside the DP-SUBN paper's formulas (section VI-F).

Two tables: Adult at epsilon 0.2 and 0.8 (needs the benchmark data, `--data DIR`), and 16 binary attributes at degree 2,
which shows why DP-CCBN is only the first cut. The paper counts one ciphertext per cell; `bytes` are what was sent.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from pathlib import Path
from typing import Any

import numpy as np

from crypto.randomness import Stream
from curator.experiments.coded_tables import read_codes
from curator.experiments.simulation import Simulation, make_identities, member_of, simulate
from protocol.plan.presets import make_plan
from protocol.plan.terms import Terms
from protocol.run.agreement import agree
from protocol.run.synthesis import synthetic_codes
from protocol.tables.distance import average_distance
from protocol.tables.schema import Schema

PARTIES = 3
SETTINGS = (
    ("dp-subn", "sound"),
    ("dp-subn", "paper"),
    ("guided", "sound"),
    ("independent", "sound"),
    ("independent", "paper"),
    ("dp-ccbn", "sound"),
    ("dp-ccbn", "paper"),
)


@dataclass(frozen=True)
class Data:
    schema: Schema
    codes: list[Any]


def read(directory: Path, name: str) -> Data:
    schema = Schema.parse((directory / "schema.json").read_bytes())
    return Data(schema, read_codes(directory / name, schema))


def sixteen_bits(rows: int = 20_000) -> Data:
    """A chain of 16 binary attributes, each equal to the one before with probability 0.8."""
    names = [f"b{i}" for i in range(16)]
    schema = Schema.parse(
        {"title": "chain", "attributes": [{"name": n, "kind": "categorical", "values": ["0", "1"]} for n in names]}
    )
    generator = np.random.default_rng(1)
    codes = [generator.integers(0, 2, rows).astype(np.uint8)]
    for _ in names[1:]:
        codes.append(codes[-1] ^ (generator.random(rows) < 0.2).astype(np.uint8))
    return Data(schema, codes)


def run(data: Data, epsilon: str, method: Any, preset: Any, **wishes: Any) -> tuple[Simulation, float]:
    stream = Stream.system()
    rows = len(data.codes[0])
    owned = np.array_split(np.array(stream.permutation(rows)), PARTIES)
    identities = make_identities(PARTIES, Stream.system())
    members = [member_of(f"party-{k}", len(own), identities[k]) for k, own in enumerate(owned)]
    plan = make_plan("benchmark", data.schema, members, Fraction(epsilon), method, preset, **wishes)
    codes = [[column[own] for column in data.codes] for own in owned]
    simulation = simulate(agree(plan, data.schema), codes, identities, stream.child("run"))
    batches = synthetic_codes(simulation.terms, simulation.state.knowledge, rows, stream.child("rows"))
    synthetic = [np.concatenate(columns) for columns in zip(*batches, strict=True)]
    return simulation, average_distance(data.codes, synthetic, data.schema.sizes, 2)


def papers_megabytes(terms: Terms) -> float | None:
    """Section VI-F, for this run's d, k, k', views and key; it knows binary variables only."""
    plan, d, k = terms.plan, terms.domain.count, terms.limits.degree
    if not terms.domain.is_binary or k is None or plan.method == "independent":
        return None
    ciphertext_bits = 2 * plan.key_bits
    parameters = (d - k) * 2 ** (k + 2)
    if plan.method == "dp-ccbn":
        structure = d * comb(d, k + 1) * 2 ** (k + 2)
    else:
        wide = terms.frontier_limits.degree or 0
        size = sum(map(len, terms.cover.views)) / len(terms.cover.views)
        views = comb(d, 2) / (size * (size - 1) / 2)
        structure = (d - 1) * 2 ** (wide + 2) + views * 2 ** (size + 2)
    return plan.parties * ciphertext_bits * (parameters + structure) / 8 / 1e6


HEADER = (
    f"{'method':12} {'preset':12} {'eps':>4} {'error':>7} {'spent by each':>22} {'cells':>10} {'ciphertexts':>12} "
    f"{'MB sent':>8} {'paper MB':>9} {'seconds':>8}"
)


def line(simulation: Simulation, error: float) -> str:
    terms = simulation.terms
    costs = simulation.stages.values()
    cells, ciphertexts = sum(c.cells for c in costs), sum(c.ciphertexts for c in costs)
    paper = papers_megabytes(terms)
    spent = " ".join(map(str, simulation.spent))
    return (
        f"{terms.plan.method:12} {terms.plan.preset:12} {float(terms.plan.epsilon):4} {error:7.4f} {spent:>22} "
        f"{cells:10,} {ciphertexts:12,} {sum(c.bytes for c in costs) / 1e6:8.2f} "
        f"{'' if paper is None else format(paper, '9.1f'):>9} {sum(c.seconds for c in costs):8.1f}"
    )


def phases(simulation: Simulation) -> Iterator[str]:
    for cost in simulation.stages.values():
        yield (
            f"    {cost.name:12} {cost.seconds:8.2f} s {cost.cells:10,} cells {cost.ciphertexts:8,} ciphertexts "
            f"{cost.bytes:12,} bytes"
        )


def compare(title: str, data: Data, settings: Sequence[tuple[str, str, str, dict[str, Any]]]) -> None:
    print(f"\n{title}: {len(data.codes[0]):,} rows, {PARTIES} parties, real cryptography\n{HEADER}")
    for epsilon, method, preset, wishes in settings:
        simulation, error = run(data, epsilon, method, preset, **wishes)
        print(line(simulation, error), flush=True)
        print(*phases(simulation), sep="\n", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="where adult/ is")
    parser.add_argument("--key-bits", type=int, default=3072)
    chosen = parser.parse_args(arguments)
    key = {"key_bits": chosen.key_bits}
    first_cut = [
        ("0.8", "dp-ccbn", "sound", {"degree": 2, **key}),
        ("0.8", "dp-subn", "sound", {"degree": 2, **key}),
    ]
    compare("16 binary attributes, degree 2", sixteen_bits(), first_cut)
    if not (chosen.data / "adult").is_dir():
        print(f"\nAdult is not at {chosen.data / 'adult'}: its table is left out (say where with --data)")
        return
    settings = [(epsilon, method, preset, key) for epsilon in ("0.2", "0.8") for method, preset in SETTINGS]
    compare("Adult", read(chosen.data / "adult", "adult.csv"), settings)


if __name__ == "__main__":
    main()
