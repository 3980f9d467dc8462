"""Lists of a schema that lie in files beside it: put in place, or refused with a sentence."""

import json
from pathlib import Path
from typing import Any

import pytest

from curator.operator.schema_files import read_schema, schema_text
from curator.subn import main
from protocol.errors import DataError, SchemaError

CODES = "chapter;block;code;title\nIX;I10-I15;I10;Hypertension\nIX;I20-I25;I21.0;Infarction, anterior\nIV;;E11.9;\n"


def written(folder: Path, **fields: Any) -> Path:
    path = folder / "schema.json"
    attribute = {"name": "code", "kind": "categorical", **fields}
    path.write_text(json.dumps({"attributes": [attribute]}), encoding="utf-8")
    return path


def attribute_of(path: Path) -> dict[str, Any]:
    return json.loads(read_schema(path).to_json())["attributes"][0]


def test_values_labels_and_groups_come_from_one_table(tmp_path):
    (tmp_path / "icd10.csv").write_text(CODES, encoding="cp1252")
    path = written(
        tmp_path,
        values={"file": "icd10.csv", "column": "code", "labels": "title"},
        taxonomy={"file": "icd10.csv", "column": "code", "groups": ["chapter"]},
    )
    assert attribute_of(path) == {
        "name": "code",
        "kind": "categorical",
        "values": ["I10", "I21.0", "E11.9"],
        "labels": {"I10": "Hypertension", "I21.0": "Infarction, anterior"},
        "taxonomy": {"IX": ["I10", "I21.0"], "IV": ["E11.9"]},
    }


def test_groups_nest_from_the_widest_to_the_narrowest(tmp_path):
    (tmp_path / "icd10.csv").write_text(CODES.replace(";;", ";E10-E14;"), encoding="utf-8")
    path = written(
        tmp_path,
        values={"file": "icd10.csv", "column": "code"},
        taxonomy={"file": "icd10.csv", "column": "code", "groups": ["chapter", "block"]},
    )
    taxonomy = {"IX": {"I10-I15": ["I10"], "I20-I25": ["I21.0"]}, "IV": {"E10-E14": ["E11.9"]}}
    assert attribute_of(path)["taxonomy"] == taxonomy


def test_lists_may_be_lines_or_json(tmp_path):
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "cities.txt").write_text("Aachen\nBonn\n\nKöln\n", encoding="utf-8")
    (tmp_path / "groups.json").write_text('{"far": ["Aachen"]}', encoding="utf-8")
    path = written(tmp_path, values={"file": "lists/cities.txt"}, taxonomy={"file": "groups.json"})
    found = attribute_of(path)
    assert (found["values"], found["taxonomy"]) == (["Aachen", "Bonn", "Köln"], {"far": ["Aachen"]})
    (tmp_path / "cities.json").write_text('["Ulm"]', encoding="utf-8")
    assert attribute_of(written(tmp_path, values={"file": "cities.json"}))["values"] == ["Ulm"]


def test_without_files_the_bytes_are_as_they_are(tmp_path):
    path = tmp_path / "schema.json"
    path.write_bytes(b'{"attributes": [ {"name": "x", "kind": "real", "min": 0.10, "max": 1, "bins": 2} ]}')
    assert schema_text(path) == path.read_bytes()


def test_numbers_stay_exact_beside_files(tmp_path):
    (tmp_path / "v.txt").write_text("a\nb\n", encoding="utf-8")
    attributes = '{"name": "x", "kind": "categorical", "values": {"file": "v.txt"}}'
    number = '{"name": "y", "kind": "real", "min": 0.1000000000000000001e0, "max": 1, "bins": 2}'
    (tmp_path / "schema.json").write_text(f'{{"attributes": [{attributes}, {number}]}}', encoding="utf-8")
    with pytest.raises(SchemaError, match="at most 18 decimals"):
        read_schema(tmp_path / "schema.json")


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"values": {"file": "../v.txt"}}, '"values": ../v.txt lies outside the folder of the schema; copy it there.'),
        ({"values": {"file": "/etc/passwd"}}, "/etc/passwd lies outside the folder of the schema; copy it there."),
        ({"values": {"file": "link.txt"}}, "link.txt lies outside the folder of the schema; copy it there."),
        ({"values": {"file": "none.csv"}}, "there is no file none.csv in the folder of the schema."),
        ({"values": {"file": "t.csv", "colum": "a"}}, '"colum" is not known beside a file; remove it or correct its'),
        ({"values": {"file": "t.csv", "column": "c"}}, 't.csv has no column "c"; correct its name.'),
        ({"values": {"file": "short.csv"}}, "short.csv has a row with 1 instead of 2 fields."),
        ({"values": {"file": "empty.csv"}}, "empty.csv is not a table that can be read (CSV with a header row)."),
        ({"values": {"file": "latin.txt"}}, "latin.txt is not in UTF-8; save it as UTF-8."),
        ({"values": {"file": "bad.json"}}, "bad.json is not JSON that can be read: Expecting"),
        ({"values": ["1"], "taxonomy": {"file": "t.csv"}}, 'names no "groups" of t.csv; list its columns, the'),
        (
            {"values": ["1"], "taxonomy": {"file": "uneven.csv", "column": "v", "groups": ["a", "b"]}},
            'the group "x" holds values and groups; give every value as many groups.',
        ),
    ],
)
def test_a_file_that_cannot_serve_is_named(tmp_path, fields, what):
    folder = tmp_path / "schema"
    folder.mkdir()
    (tmp_path / "v.txt").write_text("secret\n", encoding="utf-8")
    (folder / "link.txt").symlink_to(tmp_path / "v.txt")
    (folder / "t.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    (folder / "short.csv").write_text("a,b\n1\n", encoding="utf-8")
    (folder / "empty.csv").write_text("", encoding="utf-8")
    (folder / "latin.txt").write_bytes("Köln\n".encode("cp1252"))
    (folder / "bad.json").write_text("[", encoding="utf-8")
    (folder / "uneven.csv").write_text("v,a,b\n1,x,\n2,x,y\n", encoding="utf-8")
    with pytest.raises(SchemaError) as caught:
        read_schema(written(folder, **fields))
    assert what in str(caught.value)
    assert str(caught.value).startswith('Schema, attribute "code", field "')
    assert "secret" not in str(caught.value)


def test_a_file_larger_than_any_list_is_refused(tmp_path):
    with (tmp_path / "v.txt").open("wb") as file:
        file.truncate((16 << 20) + 1)
    with pytest.raises(SchemaError, match=r"v\.txt is larger than 16 MB; keep only the columns that are needed"):
        read_schema(written(tmp_path, values={"file": "v.txt"}))


def test_a_schema_that_is_absent_is_said_to_be_so(tmp_path):
    with pytest.raises(DataError, match=r"schema\.json: cannot be read: No such file"):
        read_schema(tmp_path / "schema.json")


def test_the_command_writes_the_whole_schema(tmp_path, capsys):
    (tmp_path / "v.txt").write_text("a\nb\n", encoding="utf-8")
    path, out = written(tmp_path, values={"file": "v.txt"}), tmp_path / "whole.json"
    assert main(["schemas", "expand", str(path)]) == 0
    printed = capsys.readouterr().out
    assert printed == '{"attributes":[{"kind":"categorical","name":"code","values":["a","b"]}]}\n'
    assert main(["schemas", "expand", str(path), "--out", str(out)]) == 0
    assert out.read_text(encoding="utf-8") == printed
    assert capsys.readouterr().out == f"wrote {out}: schema {read_schema(path).hash}\n"
