"""`subn schemas lint` and `compare`: everything about a schema at once, and how two schemas differ."""

import json
from pathlib import Path
from typing import Any

from curator.subn import main
from protocol.tables.schema import Schema
from tests.support.small_runs import MIXED


def written(folder: Path, name: str, schema: Any) -> str:
    (folder / name).write_text(schema if isinstance(schema, str) else json.dumps(schema), encoding="utf-8")
    return str(folder / name)


def test_a_sound_schema_is_said_to_be_so(tmp_path, capsys):
    assert main(["schemas", "lint", written(tmp_path, "s.json", MIXED.to_json())]) == 0
    assert capsys.readouterr().out == f"5 attributes, schema {MIXED.hash}\n"


def test_doubts_are_told_and_refuse_nothing(tmp_path, capsys):
    attributes = [{"name": "patient_id", "kind": "integer", "min": 0, "max": 9999, "bins": 5}]
    path = written(tmp_path, "s.json", {"attributes": attributes})
    assert main(["schemas", "lint", path, "--rows", "8"]) == 0
    first, second, last = capsys.readouterr().out.splitlines()
    assert first.startswith('doubt: Schema, attribute "patient_id": its name is that of an identifier')
    assert second.startswith('doubt: Schema, attribute "patient_id": it has 5 categories for 8 rows')
    assert last.startswith("1 attributes, schema ")


def test_all_problems_are_told_also_those_of_files(tmp_path, capsys):
    attributes = [
        {"name": "a", "kind": "categorical", "values": {"file": "none.txt"}},
        {"name": "b", "kind": "categorical", "values": {"file": "../x.txt"}},
    ]
    assert main(["schemas", "lint", written(tmp_path, "s.json", {"attributes": attributes})]) == 2
    first, second = capsys.readouterr().out.splitlines()
    where = "problem: Schema, attribute"
    assert first == f'{where} "a", field "values": there is no file none.txt in the folder of the schema.'
    assert second == f'{where} "b", field "values": ../x.txt lies outside the folder of the schema; copy it there.'
    assert main(["schemas", "lint", written(tmp_path, "s.json", "{")]) == 2
    assert capsys.readouterr().out.startswith("problem: Schema: this is not JSON that can be read")


def test_two_schemas_are_compared_attribute_by_attribute(tmp_path, capsys):
    raw = json.loads(MIXED.to_json())
    raw["attributes"][2]["bins"] = 8
    raw["attributes"][4] = {"name": "new", "kind": "boolean"}
    one, other = written(tmp_path, "a.json", MIXED.to_json()), written(tmp_path, "b.json", raw)
    assert main(["schemas", "compare", one, other]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "age: whole numbers from 0 to 39 in 4 bins",
        "     whole numbers from 0 to 39 in 8 bins",
        "ill: no, yes",
        "     absent",
        "new: absent",
        "     false, true",
        MIXED.hash,
        Schema.parse(raw).hash,
    ]
    assert main(["schemas", "compare", one, one]) == 0
    assert capsys.readouterr().out == "the schemas are the same\n"
