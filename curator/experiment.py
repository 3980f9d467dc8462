"""`subn simulate`: one experiment from files to files.

It does not know how command lines are parsed (`cli`) or how a run works (`simulation`).
"""

import json
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crypto.randomness import Stream
from curator.coded_tables import read_schema
from curator.simulation import Progress, Simulation, make_identities, member_of, simulate
from curator.tables import opened_table, write_table, write_text
from protocol.agreement import agree
from protocol.coding import Coder, gather, labels
from protocol.comparison import average_distance
from protocol.errors import DataError, PlanError
from protocol.exact import exact
from protocol.plan import LONGEST_NAME, Method, Preset
from protocol.presets import make_plan
from protocol.schema import Schema
from protocol.synthesis import synthetic_codes

Codes = NDArray[Any]


@dataclass(frozen=True)
class Request:
    """What the command line asks for; None where the preset decides."""

    data: Path
    schema: Path
    out: Path
    epsilon: str
    parties: int | None
    method: Method
    preset: Preset
    partition: str
    seed: int | None
    real_crypto: bool
    evaluate: bool
    wishes: dict[str, Any]


@dataclass(frozen=True)
class Partition:
    """Which party each row belongs to, and the parties' names."""

    names: tuple[str, ...]
    owner: NDArray[np.intp]


def run_experiment(request: Request, progress: Progress) -> dict[str, Any]:
    """Simulate, write synthetic.csv and manifest.json, and return the manifest."""
    started = perf_counter()
    if request.seed is not None and request.real_crypto:
        raise PlanError("--seed goes with --crypto none only: noise from a seed protects nobody")
    stream = Stream.system() if request.seed is None else Stream.keyed(b"%d" % request.seed, "subn simulate --seed")
    schema = read_schema(request.schema)
    codes, partition = _read_rows(request, schema, stream.child("partition"))
    own = [[column[partition.owner == party] for column in codes] for party in range(len(partition.names))]
    request.out.mkdir(parents=True, exist_ok=True)
    simulation = _simulate(request, schema, partition, own, stream, progress)
    synthetic = _write_synthetic(request, schema, simulation, stream.child("synthesis"))
    manifest = _manifest(simulation, request.real_crypto, perf_counter() - started)
    if request.evaluate:
        manifest["evaluation"] = _evaluate(schema, codes, synthetic)
    text = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
    write_text(request.out / "manifest.json", text)
    return manifest


def _read_rows(request: Request, schema: Schema, stream: Stream) -> tuple[list[Codes], Partition]:
    coder = Coder(schema, "refuse", str(request.data))
    kind, _, column = request.partition.partition(":")
    if kind not in ("random", "file") or (kind == "file") != bool(column):
        raise PlanError(f"--partition is {request.partition!r}; expected 'random' or 'file:COLUMN'")
    owners: list[str] = []
    with opened_table(request.data) as (header, rows):
        coder.columns(header)
        if column and column not in header:
            raise DataError(f"{request.data}: no column {column!r} to divide the rows by")
        place = header.index(column) if column else -1
        codes = gather(schema, coder.batches(_noting_owner(rows, place, owners) if column else rows))
    count = len(codes[0])
    return codes, _by_column(owners, request.parties) if column else _at_random(count, request.parties, stream)


def _noting_owner(rows: Any, place: int, owners: list[str]) -> Any:
    for row in rows:
        owners.append(row[place] if place < len(row) else "")
        yield row


def _at_random(rows: int, parties: int | None, stream: Stream) -> Partition:
    """Equal shares, as near as can be."""
    count = 3 if parties is None else parties
    if not 1 <= count <= rows:
        raise PlanError(f"{rows} rows cannot be divided among {count} parties: everybody needs at least one")
    owner = np.empty(rows, dtype=np.intp)
    owner[stream.permutation(rows)] = np.arange(rows) % count
    return Partition(tuple(f"party-{k + 1}" for k in range(count)), owner)


def _by_column(owners: Sequence[str], parties: int | None) -> Partition:
    names, owner = np.unique(np.array(owners, dtype=str), return_inverse=True)
    if parties is not None and parties != len(names):
        raise PlanError(f"--parties says {parties}, the column that divides the rows has {len(names)} values")
    if max(map(len, names)) > LONGEST_NAME:
        raise DataError(f"the column that divides the rows names a party with more than {LONGEST_NAME} characters")
    return Partition(tuple(str(name) or "(empty)" for name in names), owner)


def _simulate(
    request: Request,
    schema: Schema,
    partition: Partition,
    own: Sequence[Sequence[Codes]],
    stream: Stream,
    progress: Progress,
) -> Simulation:
    try:
        epsilon = exact(request.epsilon)
    except ValueError as error:
        raise PlanError(f"--epsilon: {error}") from None
    identities = make_identities(len(own))
    members = [
        member_of(name, len(columns[0]), identity)
        for name, columns, identity in zip(partition.names, own, identities, strict=True)
    ]
    plan = make_plan("simulation", schema, members, epsilon, request.method, request.preset, **request.wishes)
    return simulate(agree(plan, schema), own, identities, stream, request.real_crypto, progress)


def _write_synthetic(request: Request, schema: Schema, simulation: Simulation, stream: Stream) -> list[Codes]:
    """Write the table batch by batch; the codes are kept only where an evaluation will want them."""
    terms, kept = simulation.terms, []
    sampling, labelling = stream.child("rows"), stream.child("numbers within bins")

    def batches() -> Any:
        for codes in synthetic_codes(terms, simulation.state.knowledge, terms.plan.rows, sampling):
            if request.evaluate:
                kept.append(codes)
            yield labels(schema, codes, labelling)

    write_table(request.out / "synthetic.csv", schema.names, batches())
    return [np.concatenate(columns) for columns in zip(*kept, strict=True)]


def _evaluate(schema: Schema, real: Sequence[Codes], synthetic: Sequence[Codes]) -> dict[str, Any]:
    return {
        "warning": "computed from the real rows without noise: for experiments only, never to be published",
        "average_2way_distance": average_distance(real, synthetic, schema.sizes, 2),
    }


def _manifest(simulation: Simulation, real_crypto: bool, seconds: float) -> dict[str, Any]:
    terms, known = simulation.terms, simulation.state.knowledge
    plan = terms.plan.model_dump(mode="json")
    members = plan.pop("members")
    networks = [("", known.network)]
    if known.models:
        names = [member["name"] for member in members]
        networks = list(zip(names, [model.network for model in known.models], strict=True))
    return {
        "method": plan.pop("method"),
        "preset": plan.pop("preset"),
        "privacy": plan.pop("privacy"),
        "epsilon": plan.pop("epsilon"),
        "delta": plan.pop("delta"),
        "crypto": "real" if real_crypto else "none",
        "parameters": plan | {"plan_hash": terms.plan_hash},
        "parties": [
            {"name": member["name"], "rows": member["rows"], "spent": str(spent), "delta": str(delta)}
            for member, spent, delta in zip(members, simulation.spent, simulation.deltas, strict=True)
        ],
        "phases": [vars(cost) for cost in simulation.phases.values()],
        "network": [
            {"attribute": terms.domain.variables[family.child].name, "parents": terms.domain.names(family.parents)}
            | ({"party": name} if name else {})
            for name, network in networks
            for family in network.families
        ],
        "software": {"dp-subn": version("dp-subn"), "python": platform.python_version()},
        "seconds": seconds,
    }
