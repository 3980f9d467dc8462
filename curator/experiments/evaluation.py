"""`subn evaluate`: measure how well a synthetic table matches the real rows.

It does not know how command lines are parsed (`curator.experiments.evaluate_command`) or how the synthetic rows were
made.

Privacy: its results are computed from the real rows without noise. They are only for holders of all real rows.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from crypto.randomness import Stream
from curator.experiments.classification import Exam, misclassification, target_of
from curator.experiments.coded_tables import read_codes
from curator.operator.schema_files import read_schema
from protocol.errors import OperatorError
from protocol.tables.attributes import quoted
from protocol.tables.distance import attribute_sets, average_distance, distances
from protocol.tables.domain import Codes
from protocol.tables.encoding import Encoding
from protocol.tables.schema import Schema

WARNING = "computed from the real rows without noise: for experiments only, never to be published"
MOST_SETS = 2_000  # of more marginals, a sample of this size is measured


@dataclass(frozen=True)
class Evaluation:
    """The evaluation that the command line asks for.

    A target is an attribute's name with a group of its values, or with none.
    """

    real: Path
    synthetic: Path
    schema: Path
    ways: tuple[int, ...]
    targets: tuple[tuple[str, tuple[str, ...]], ...]
    without: tuple[str, ...]


def evaluate(evaluation: Evaluation) -> dict[str, Any]:
    """Evaluate a synthetic table. Errors in what is asked are found before any table is read."""
    schema = read_schema(evaluation.schema)
    _refuse_ways(evaluation.ways, len(schema.names))
    targets = [target_of(schema, name, group) for name, group in evaluation.targets]
    without = [hidden_attribute(schema, name) for name in evaluation.without]
    real, synthetic = (read_codes(path, schema) for path in (evaluation.real, evaluation.synthetic))
    return {
        "warning": WARNING,
        "rows": {"real": len(real[0]), "synthetic": len(synthetic[0])},
        "distances": [distance_report(schema, real, synthetic, ways) for ways in evaluation.ways],
        "classification": [
            vars(rates)
            for target in targets
            for rates in misclassification(Exam(schema, real, target, without, held_out()), target, synthetic)
        ],
    }


def distance_report(schema: Schema, real: Sequence[Codes], synthetic: Sequence[Codes], ways: int) -> dict[str, Any]:
    """Return the mean total variation distance of all marginals of `ways` attributes, or of a sample of them."""
    count = len(schema.names)
    # The sets are the same for every synthetic table, so that tables can be compared.
    chosen = attribute_sets(count, ways, MOST_SETS, Stream.keyed(b"subn evaluate", "sets"))
    found = distances(real, synthetic, schema.sizes, chosen)
    return {
        "ways": ways,
        "average": float(np.mean(found)),
        "largest": float(np.max(found)),
        "measured": len(chosen),
        "of": math.comb(count, ways),
    }


def distance_of_bits(schema: Schema, real: Sequence[Codes], synthetic: Sequence[Codes], ways: int) -> float:
    """Return the same mean over the bits of all attributes, as the DP-SUBN paper measures it."""
    bits = Encoding.of(schema, "binary")
    chosen = attribute_sets(bits.domain.count, ways, MOST_SETS, Stream.keyed(b"subn evaluate", "bits"))
    return float(np.mean(distances(bits.encode(real), bits.encode(synthetic), bits.domain.sizes, chosen)))


def errors_against(pooled: Path, synthetic: Path, schema: Schema) -> tuple[float, float]:
    """Return the mean total variation distance of all tables of one attribute, and of two."""
    one, other = read_codes(pooled, schema), read_codes(synthetic, schema)
    return average_distance(one, other, schema.sizes, 1), average_distance(one, other, schema.sizes, 2)


def held_out() -> Stream:
    """Return the stream that selects the real rows for testing: the same rows for every synthetic table."""
    return Stream.keyed(b"subn evaluate", "held out")


def _refuse_ways(ways: Sequence[int], attributes: int) -> None:
    if (wrong := next((way for way in ways if not 1 <= way <= attributes), None)) is not None:
        raise OperatorError(f"--ways names {wrong}, but the schema has {attributes} attributes: take 1 to {attributes}")


def hidden_attribute(schema: Schema, name: str) -> int:
    if name not in schema.names:
        raise OperatorError(f"cannot leave out {quoted(name)}: the schema has no such attribute; correct the name")
    return schema.names.index(name)
