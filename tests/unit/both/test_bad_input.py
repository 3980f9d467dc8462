"""Every bad schema and every bad table of a long list gets its sentence: no traceback, and no value of a table.

The lists are data: tests/vectors/schema/broken.json and tests/vectors/tables/broken.json. A table holds a canary, a
name or a number that nothing may repeat but `subn-party check --show-values`.
"""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from curator.subn import main as subn
from party.commands.main import main as party
from party.home.settings import Dataset
from party.source import load
from protocol.errors import OperatorError
from protocol.tables.schema import Schema

VECTORS = Path(__file__).parents[2] / "vectors"
SCHEMAS = json.loads((VECTORS / "schema" / "broken.json").read_text("utf-8"))
COMMON, *TABLES = json.loads((VECTORS / "tables" / "broken.json").read_text("utf-8"))
ALONE = [one for one in SCHEMAS if not one["about"].endswith("in a file")]  # the command would look for these files
CANARIES = ("Hieronymus", "734911", "734_911", "7349", "73.49", "1834")
SHOWN = [table for table in TABLES if ": " in table["about"]]  # a bad value of a column
TOML = """
[datasets.patients]
source = "{source}"
schema = "schema.json"
epsilon_total = "1"
{settings}

[policy]
epsilon_per_run = "1"
"""


def about(one: dict[str, Any]) -> str:
    return str(one["about"])


def written(folder: Path, table: dict[str, Any]) -> str:
    """Write the table's file, and return its name."""
    name = str(table.get("name", "t.csv"))
    if table["text"] is not None:
        data = table["text"].encode(table.get("encoding", "utf-8"))
        data = gzip.compress(data, mtime=0) if table.get("gzip") else data
        (folder / name).write_bytes(data[: len(data) - table.get("cut", 0)])
    return name


def test_the_lists_are_long() -> None:
    assert len(SCHEMAS) + len(TABLES) >= 200
    assert min(len(SCHEMAS), len(TABLES)) > 70
    assert len({about(one) for one in SCHEMAS}) == len(SCHEMAS)
    assert len({about(one) for one in TABLES}) == len(TABLES)


@pytest.mark.parametrize("table", TABLES, ids=about)
def test_a_bad_table_gets_its_sentence(table: dict[str, Any], tmp_path: Path) -> None:
    given = {"source": written(tmp_path, table), "schema": "schema.json", "epsilon_total": "1"}
    dataset = Dataset.model_validate(given | table.get("settings", {}))
    with pytest.raises(OperatorError) as caught:
        load(tmp_path, dataset, Schema.parse(COMMON["schema"]))
    assert str(caught.value) == table["sentence"].replace("FOLDER", str(tmp_path))
    assert not [canary for canary in CANARIES if canary in table["sentence"]]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    assert party(["init", "--home", str(tmp_path / "home")]) == 0
    (tmp_path / "home" / "schema.json").write_text(json.dumps(COMMON["schema"]))
    return tmp_path / "home"


def checked(home: Path, table: dict[str, Any], capsys: Any, *more: str) -> str:
    """Everything that `subn-party check` says of a table."""
    said = table.get("settings", {})
    settings = "\n".join(f"{name} = {_toml(value)}" for name, value in said.items())
    (home / "party.toml").write_text(TOML.format(source=written(home, table), settings=settings))
    capsys.readouterr()
    code = party(["check", "--home", str(home), *more])
    printed = capsys.readouterr()
    assert code == 2
    assert "Traceback" not in printed.out + printed.err
    return str(printed.out + printed.err)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {_toml(one)}" for name, one in value.items()) + " }"
    return json.dumps(value)


@pytest.mark.parametrize("table", TABLES[::3], ids=about)
def test_the_command_repeats_no_value(table: dict[str, Any], home: Path, capsys: Any) -> None:
    said = checked(home, table, capsys)
    assert not [canary for canary in CANARIES if canary in said.replace(str(home), "")]


@pytest.mark.parametrize("table", SHOWN[::5], ids=about)
def test_only_the_owner_who_asks_sees_the_value(table: dict[str, Any], home: Path, capsys: Any) -> None:
    column = table["about"].partition(":")[0]
    assert f'column "{column}"' in checked(home, table, capsys)
    assert "the first 10 of each kind, for your eyes only:" in checked(home, table, capsys, "--show-values")


@pytest.mark.parametrize("schema", ALONE[::3], ids=about)
def test_a_bad_schema_gets_its_sentences_from_the_command(schema: dict[str, Any], tmp_path: Path, capsys: Any) -> None:
    text = schema["text"] if "text" in schema else json.dumps(schema["schema"])
    (tmp_path / "s.json").write_text(text, encoding="utf-8")
    assert subn(["schemas", "lint", str(tmp_path / "s.json")]) == 2
    printed = capsys.readouterr()
    assert printed.err == ""
    assert printed.out == "".join(f"problem: {line}\n" for line in schema["sentence"].split("\n"))
