"""Distances of tables over the bits of their attributes, as the DP-SUBN paper measures."""

import numpy as np
import pytest

from curator.experiments.evaluation import distance_of_bits, distance_report
from protocol.tables.schema import Schema
from tests.support.small_runs import BITS


def columns(*values: list[int]) -> list[np.ndarray]:
    return [np.array(column) for column in values]


def test_attributes_of_two_values_are_their_bits() -> None:
    schema, draws = BITS, np.random.default_rng(5)
    one, other = ([draws.integers(0, 2, 50) for _ in schema.names] for _ in range(2))
    assert distance_of_bits(schema, one, other, 2) == pytest.approx(distance_report(schema, one, other, 2)["average"])


def test_a_distance_by_hand() -> None:
    """Codes 0 to 3 are 00, 01, 10 and 11: of two rows, 0 and 3 instead of 1 and 2 keep both bits, not their pair."""
    attribute = {"name": "a", "kind": "categorical", "values": ["w", "x", "y", "z"]}
    schema = Schema.model_validate({"title": "t", "attributes": [attribute]})
    assert distance_of_bits(schema, columns([0, 3]), columns([1, 2]), 1) == 0
    assert distance_of_bits(schema, columns([0, 3]), columns([1, 2]), 2) == 1
