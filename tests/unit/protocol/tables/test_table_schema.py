"""The published JSON Schema says what the program says: for good schemas, bad ones, and whatever can be written."""

import json
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator

from protocol.tables.attributes import KINDS, Attribute
from protocol.tables.schema import Schema
from tests.property.test_schema_properties import schemas
from tests.support.documents import ROOT
from tests.support.effort import examples

VECTORS = Path(__file__).parents[3] / "vectors" / "schema"
GOOD = json.loads((VECTORS / "good.json").read_text("utf-8"))
BROKEN = [one for one in json.loads((VECTORS / "broken.json").read_text("utf-8")) if "schema" in one]
PUBLISHED = json.loads((ROOT / "protocol/tables/table-schema.json").read_text("utf-8"))
VALIDATOR = Draft202012Validator(PUBLISHED)

# What a JSON Schema cannot say: how values compare with each other, and what a calendar holds.
ONLY_THE_PROGRAM_KNOWS = {
    "two attributes of one name",
    "as many bins to find as there are",
    "bins to find between numbers without an end",
    "a value that is also missing",
    "a missing token that is a number in the range",
    "min above max",
    "min above max, real",
    "a range that is a point",
    "more bins than integers",
    "too many categories",
    "too many categories with the missing one",
    "an unknown leaf",
    "a leaf that is a missing token",
    "a leaf in two groups",
    "a taxonomy that is too deep",
    "other that is one of the values",
    "other that is a missing token",
    "a label for no value",
    "prefixes that fall",
    "a boolean whose texts for true and false meet",
    "a boolean text that is also missing",
    "edges that fall",
    "a scale over a point",
    "a step without bins",
    "a bin without a number as it is written",
    "a bin between steps",
    "a range without a multiple of the step",
    "a bin with more numbers than can be drawn",
    "a missing token between edges",
    "a day that does not exist",
    "a date range that falls",
    "days in too many years",
    "hours in too many years",
    "a format without a month",
    "a format that tells the day twice",
    "a format that runs numbers together",
    "days of a format that tells months",
    "a range that is cut inside a month that the format tells as a whole",
    "edges inside a day that the format tells as a whole",
    "edges of dates that fall",
    "a missing token that is a date in the range",
}
# What may stand in a file that people edit, and is put in place before the schema is published.
BEFORE_IT_IS_PUBLISHED = {"values in a file", "a taxonomy in a file"}


def test_it_is_a_json_schema() -> None:
    Draft202012Validator.check_schema(PUBLISHED)
    assert PUBLISHED["$schema"] == Draft202012Validator.META_SCHEMA["$id"]


@pytest.mark.parametrize("vector", GOOD, ids=lambda one: one["about"])
def test_a_good_schema_is_good_for_editors_too(vector: dict[str, Any]) -> None:
    assert [error.message for error in VALIDATOR.iter_errors(json.loads(vector["text"]))] == []
    assert VALIDATOR.is_valid(json.loads(vector["canonical"]))


def test_a_bad_schema_is_bad_for_editors_too() -> None:
    accepted = {vector["about"] for vector in BROKEN if VALIDATOR.is_valid(vector["schema"])}
    assert accepted == ONLY_THE_PROGRAM_KNOWS | BEFORE_IT_IS_PUBLISHED


@settings(deadline=None, max_examples=examples(40))
@given(schemas())
def test_whatever_the_program_writes_is_good_for_editors(schema: Schema) -> None:
    assert VALIDATOR.is_valid(json.loads(schema.to_json()))


def test_every_field_of_every_kind_is_described() -> None:
    models = get_args(get_args(Attribute)[0])
    assert [model.__name__.lower() for model in models] == list(KINDS)
    for kind, model in zip(KINDS, models, strict=True):
        described = PUBLISHED["$defs"][kind]["properties"]
        assert set(described) == set(model.model_fields), kind
        assert all("description" in field for field in described.values()), kind


def test_a_schema_may_say_where_its_format_is_described() -> None:
    text = '{"attributes":[{"kind":"boolean","name":"x"}]}'
    named = '{"$schema": "https://curator.example/v1/schema-format", ' + text[1:]
    assert VALIDATOR.is_valid(json.loads(named))
    assert Schema.parse(named).to_json() == text
