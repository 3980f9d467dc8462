"""`subn simulate`: one experiment, from input files to result files.

It does not know how command lines are parsed (`curator.experiments.simulate_command`) or how a run works
(`curator.experiments.simulation`).
"""

import json
import platform
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from crypto.randomness import Stream
from curator.experiments.coded_tables import DividedTable, read_divided
from curator.experiments.partition import Division
from curator.experiments.simulation import Progress, Simulation, make_identities, member_of, simulate
from curator.files import PUBLIC, write_file
from curator.operator.schema_files import read_schema
from curator.results.ahead import ahead
from curator.results.csv_files import write_table
from protocol.errors import PlanError
from protocol.exact import exact
from protocol.forecast.advice import advice
from protocol.forecast.error import predicted
from protocol.forecast.recommendation import planned
from protocol.identity import Identity
from protocol.options import Preset, Wanted
from protocol.plan.rationale import reasons
from protocol.plan.terms import Terms
from protocol.run.synthesis import published_terms, synthetic_codes
from protocol.services.reading_line import ReadingLine
from protocol.tables.coding import labels
from protocol.tables.distance import average_distance
from protocol.tables.domain import Codes
from protocol.tables.found_edges import in_found_bins
from protocol.tables.schema import Schema


@dataclass(frozen=True)
class ExperimentSettings:
    """The settings of one run, with None where the preset decides."""

    epsilon: str
    parties: int | None
    method: Wanted
    preset: Preset
    partition: str
    wishes: dict[str, Any]


@dataclass(frozen=True)
class Experiment:
    """The experiment that the command line asks for."""

    data: Path
    schema: Path
    out: Path
    settings: ExperimentSettings
    seed: int | None
    real_crypto: bool
    evaluate: bool


def settings_of(chosen: Namespace, wishes: dict[str, Any]) -> ExperimentSettings:
    """Return the settings that options of a command line stand for."""
    return ExperimentSettings(
        epsilon=chosen.epsilon,
        parties=chosen.parties,
        method=chosen.method,
        preset=chosen.preset,
        partition=chosen.partition,
        wishes=wishes,
    )


def run_experiment(experiment: Experiment, progress: Progress, watch: ReadingLine | None = None) -> dict[str, Any]:
    """Simulate, write synthetic.csv and manifest.json, and return the manifest."""
    started = perf_counter()
    if experiment.seed is not None and experiment.real_crypto:
        raise PlanError("--seed works only with --crypto none: noise from a seed protects nobody")
    stream = Stream.system() if experiment.seed is None else stream_of_seed(experiment.seed)
    column = Division.parse(experiment.settings.partition).column
    table = read_divided(experiment.data, read_schema(experiment.schema), column, watch)
    own, terms, identities = prepare(experiment.settings, table, stream)
    experiment.out.mkdir(parents=True, exist_ok=True)
    simulation = simulate(terms, own, identities, stream, experiment.real_crypto, progress)
    schema, real = as_published(simulation, table.codes)
    synthetic = _write_synthetic(experiment, schema, simulation, stream.child("synthesis"))
    manifest = _manifest(simulation, experiment.real_crypto, perf_counter() - started)
    if experiment.evaluate:
        manifest["evaluation"] = _evaluate(schema, real, synthetic)
    text = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
    write_file(experiment.out / "manifest.json", text, PUBLIC)
    return manifest


def stream_of_seed(seed: int) -> Stream:
    return Stream.keyed(b"%d" % seed, "subn simulate --seed")


def prepare(
    settings: ExperimentSettings, table: DividedTable, stream: Stream
) -> tuple[list[list[Codes]], Terms, Sequence[Identity]]:
    """Return every party's columns, the agreed terms, and the parties' keys."""
    division = Division.parse(settings.partition)
    partition = division.apply(table.schema, table.codes, table.owners, settings.parties, stream.child("partition"))
    places = (np.flatnonzero(partition.owner == party) for party in range(len(partition.names)))
    own = [[column[rows] for column in table.codes] for rows in places]
    try:
        epsilon = exact(settings.epsilon)
    except ValueError as error:
        raise PlanError(f"--epsilon: {error}") from None
    identities = make_identities(len(own), stream.child("identities"))
    members = [
        member_of(name, len(columns[0]), identity)
        for name, columns, identity in zip(partition.names, own, identities, strict=True)
    ]
    wishes = settings.wishes
    if len(members) == 1 and wishes.get("insiders") is None:
        wishes = wishes | {"insiders": 0}  # there is nobody else
    terms = planned("simulation", table.schema, members, epsilon, settings.method, settings.preset, fewest=1, **wishes)
    return own, terms, identities


def as_published(simulation: Simulation, codes: Sequence[Codes]) -> tuple[Schema, list[Codes]]:
    """Return the schema of the synthetic rows, and real rows by its categories: a run may have found edges."""
    terms, known = simulation.terms, simulation.state.knowledge
    schema = published_terms(terms, known).schema
    return schema, in_found_bins(terms.agreed, schema, known.edges, codes)


def _write_synthetic(experiment: Experiment, schema: Schema, simulation: Simulation, stream: Stream) -> list[Codes]:
    """Write the table batch by batch. Keep and return its codes only for an evaluation."""
    terms, kept = simulation.terms, []
    sampling, labelling = stream.child("rows"), stream.child("numbers within bins")

    def batches() -> Any:
        for codes in synthetic_codes(terms, simulation.state.knowledge, terms.plan.rows, sampling):
            if experiment.evaluate:
                kept.append(codes)
            yield labels(schema, codes, labelling)

    write_table(experiment.out / "synthetic.csv", schema.names, ahead(batches()))
    return [np.concatenate(columns) for columns in zip(*kept, strict=True)]


def _evaluate(schema: Schema, real: Sequence[Codes], synthetic: Sequence[Codes]) -> dict[str, Any]:
    warning = "computed from the real rows without noise: for experiments only, never to be published"
    if len(schema.attributes) < 2:  # a single attribute has no pairs
        return {"warning": warning, "average_1way_distance": average_distance(real, synthetic, schema.sizes, 1)}
    return {"warning": warning, "average_2way_distance": average_distance(real, synthetic, schema.sizes, 2)}


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
        "phases": [vars(cost) for cost in simulation.stages.values()],
        "predicted": vars(predicted(terms)),
        "why": list(reasons(terms)),
        "advice": [vars(one) for one in advice(terms)],
        "network": [
            {"attribute": terms.domain.variables[family.child].name, "parents": terms.domain.names(family.parents)}
            | ({"party": name} if name else {})
            for name, network in networks
            for family in network.families
        ],
        "software": {"dp-subn": version("dp-subn"), "python": platform.python_version()},
        "seconds": seconds,
    }
