"""docs/schema.md is true: its examples are good schemas, and it explains every kind and every field."""

import json
import re
from typing import get_args

import pytest
from jsonschema import Draft202012Validator

from protocol.services.schema_lint import lint
from protocol.tables.attributes import KINDS, Attribute
from tests.support.documents import ROOT, blocks, document, section

PAGE = document("docs/schema.md")
EXAMPLES = [json.loads(block) for block in blocks(section(PAGE, "Ten examples"), "json")]
VALIDATOR = Draft202012Validator(json.loads((ROOT / "protocol/tables/table-schema.json").read_text("utf-8")))


def test_there_are_ten_examples_of_all_kinds() -> None:
    assert len(EXAMPLES) == 10
    assert {example["kind"] for example in EXAMPLES} == set(KINDS)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda one: one["name"])
def test_an_example_is_a_good_schema_without_a_doubt(example: dict[str, object]) -> None:
    text = json.dumps({"attributes": [example]})
    found = lint(text, 20_000)
    assert (found.problems, found.doubts) == ((), ())
    assert VALIDATOR.is_valid(json.loads(text))


def test_every_kind_and_every_field_is_explained() -> None:
    explained = set(re.findall(r"`(\w+)`", section(PAGE, "The kinds")))
    models = get_args(get_args(Attribute)[0])
    assert set(KINDS) | {field for model in models for field in model.model_fields} <= explained


def test_the_table_of_kinds_names_the_fields_of_each() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| [^|]* \|(.*)\|$", section(PAGE, "The kinds"), re.M))
    common = {"name", "kind", "missing", "description"}
    for kind, model in zip(KINDS, get_args(get_args(Attribute)[0]), strict=True):
        assert set(re.findall(r"`(\w+)`", rows[kind])) == set(model.model_fields) - common, kind
