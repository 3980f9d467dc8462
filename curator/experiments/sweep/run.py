"""One run of a sweep: divide the rows, run the protocol without cryptography, measure the synthetic rows.

It does not know grids, results files or processes.
"""

from collections.abc import Sequence
from functools import lru_cache
from time import perf_counter
from typing import Any

import numpy as np

from crypto.paillier.indicator import REPETITIONS
from crypto.paillier.modulus import ROOTS
from crypto.randomness import Stream
from curator.experiments.classification import Exam, target_of
from curator.experiments.coded_tables import DividedTable, read_divided
from curator.experiments.evaluation import distance_of_bits, distance_report, held_out, hidden_attribute
from curator.experiments.partition import Division
from curator.experiments.simulate import ExperimentSettings, as_published, prepare, stream_of_seed
from curator.experiments.simulation import Simulation, StageCost, simulate
from curator.experiments.sweep.grid import Cell, Source, ViewStudy
from curator.experiments.view_study import marginal_errors
from curator.operator.schema_files import read_schema
from protocol.errors import PlanError
from protocol.forecast.error import predicted
from protocol.plan.plan import Plan
from protocol.privacy.layout import WORD_BYTES
from protocol.run.synthesis import synthetic_codes
from protocol.tables.counting import Rows
from protocol.tables.domain import Codes
from protocol.tables.encoding import Encoding
from protocol.tables.schema import Schema

Outcome = dict[str, Any]

_SEALED_SHARE = 80  # bytes: an exchange key, 32 bytes, and their tag
_TABLES_KEPT = 4  # in the memory of a worker


def measure(source: Source, cell: Cell) -> Outcome:
    """Return the quality and the cost of the run, or the reason why its plan was refused."""
    study = cell.views
    return _of_run(source, cell.settings, cell.seed) if study is None else _of_views(source, study, cell.seed)


def _of_run(source: Source, settings: ExperimentSettings, seed: int) -> Outcome:
    """Measure one run. Its synthetic table is the same that `subn simulate --crypto none --seed` makes."""
    table = _read(source, Division.parse(settings.partition).column)
    stream = stream_of_seed(seed)
    started = perf_counter()
    try:
        own, terms, identities = prepare(settings, table, stream)
    except PlanError as error:
        return {"refused": str(error)}
    simulation = simulate(terms, own, identities, stream, real_crypto=False)
    synthetic = _synthetic(simulation, stream.child("synthesis").child("rows"))
    schema, real = as_published(simulation, table.codes)
    return _costs(simulation, perf_counter() - started) | _quality(source, schema, real, synthetic)


def _of_views(source: Source, study: ViewStudy, seed: int) -> Outcome:
    table = _read(source, "")
    encoding = Encoding.of(table.schema, study.encoding)
    rows = Rows(encoding.domain, encoding.encode(table.codes))
    stream = Stream.keyed(b"%d" % seed, "subn sweep views")
    return {"measured": marginal_errors(rows, encoding.domain, study.design, study.epsilon, source.ways, stream)}


@lru_cache(maxsize=_TABLES_KEPT)
def _read(source: Source, column: str) -> DividedTable:
    return read_divided(source.table, read_schema(source.schema), column)


def _synthetic(simulation: Simulation, stream: Stream) -> list[Codes]:
    terms = simulation.terms
    batches = synthetic_codes(terms, simulation.state.knowledge, terms.plan.rows, stream)
    return [np.concatenate(columns) for columns in zip(*batches, strict=True)]


def _costs(simulation: Simulation, seconds: float) -> Outcome:
    plan = simulation.terms.plan
    stages = [cost for cost in simulation.stages.values() if cost.name != "joining"]
    uses_paillier = any(cost.ciphertexts for cost in stages)
    expected = predicted(simulation.terms).error
    return ({} if expected is None else {"predicted": expected}) | {
        "spent": str(max(simulation.spent)),
        "seconds": round(seconds, 3),
        "cells": sum(cost.cells for cost in stages),
        "ciphertexts": sum(cost.ciphertexts for cost in stages),
        "bytes": sum(_sent(cost, plan.key_bits) for cost in stages) + uses_paillier * _keys(plan),
    }


def _sent(cost: StageCost, key_bits: int) -> int:
    """Return the bytes of all messages of a stage as they would be with real cryptography."""
    if not cost.ciphertexts:
        return cost.bytes
    return cost.bytes - WORD_BYTES * cost.cells + cost.ciphertexts * key_bits // 4  # a ciphertext is modulo n^2


def _keys(plan: Plan) -> int:
    """Return the bytes that the curator sends before the first sum: public key, indicator with proofs, sealed shares.

    The indicator holds for each party a ciphertext, and for every repetition of its proof two commitments (modulo
    n^2), two answers (modulo n) and a challenge.
    """
    number = plan.key_bits // 8
    sent = plan.parties * (2 * number + REPETITIONS * (6 * number + 2) + _SEALED_SHARE) + (2 + ROOTS) * number
    return plan.parties * sent * 4 // 3  # base64


def _quality(source: Source, schema: Schema, real: list[Codes], synthetic: Sequence[Codes]) -> Outcome:
    found = {f"{ways}-way": distance_report(schema, real, synthetic, ways)["average"] for ways in source.ways}
    for ways in source.ways_of_bits:
        found[f"{ways}-way of bits"] = distance_of_bits(schema, real, synthetic, ways)
    for target in source.targets:
        wanted = target_of(schema, target.name, target.values)
        exam = Exam(schema, real, wanted, [hidden_attribute(schema, name) for name in target.without], held_out())
        found[f"wrong about {target.said}"] = exam.wrong(target.classifier, synthetic)
    return {"measured": found}
