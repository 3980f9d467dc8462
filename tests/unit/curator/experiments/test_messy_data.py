"""The messy exports: each in its own way, all of one schema, and of a truth that everybody can compute again."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from curator.experiments.coded_tables import read_codes
from curator.experiments.messy_data import HEADER, SCHEMA
from curator.operator.dictionaries.files import read_dictionary
from curator.subn import main
from party.home.settings import Dataset
from party.persons import TWICE
from party.source import check, load
from protocol.services.schema_draft import Described, LeftOut
from protocol.services.schema_lint import lint
from protocol.tables.schema import Schema

ROWS = 800
FILES = ("hospital-1.csv", "hospital-2.csv", "hospital-3.parquet", "hospital-4.csv")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("messy")
    assert main(["sample-data", "--messy", "--out", str(out), "--parties", "4", "--rows", str(ROWS)]) == 0
    return out


def dataset(name: str, **more: str) -> Dataset:
    return Dataset.model_validate({"source": name, "schema": "schema.json", "epsilon_total": "1"} | more)


@pytest.mark.parametrize("name", FILES)
def test_every_export_fits_the_schema(folder, name):
    schema = Schema.parse((folder / "schema.json").read_bytes())
    found = check(folder, dataset(name), schema)
    assert (found.rows, found.problems) == (ROWS, ())
    assert {len(column) for column in load(folder, dataset(name), schema)} == {ROWS}


def test_the_exports_together_are_the_table_of_all(folder):
    schema = Schema.parse(SCHEMA)
    parts = [load(folder, dataset(name), schema) for name in FILES]
    for index, column in enumerate(read_codes(folder / "all.csv", schema)):
        assert (np.concatenate([part[index] for part in parts]) == column).all()


def test_a_person_has_several_rows_and_may_be_at_two_hospitals(folder):
    schema = Schema.parse(SCHEMA)
    problems = check(folder, dataset("hospital-1.csv", person_key="patient_id"), schema).problems
    assert [problem.what for problem in problems] == [TWICE]
    with (folder / "all.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    homes: dict[str, set[str]] = {}
    for row in rows:
        homes.setdefault(row["patient_id"], set()).add(row["hospital"])
    truth = json.loads((folder / "truth.json").read_text())
    assert (truth["rows"], truth["people"]) == (4 * ROWS, len(homes))
    assert truth["most_rows_of_a_person"] > 3
    assert any(len(hospitals) > 1 for hospitals in homes.values())


def test_the_truth_is_that_of_the_rows(folder):
    truth = json.loads((folder / "truth.json").read_text())["columns"]
    with (folder / "all.csv").open(encoding="utf-8") as file:
        columns = list(zip(*csv.reader(file), strict=True))
    texts = {column[0]: column[1:] for column in columns}
    for name in ("age", "days", "cost"):
        numbers = np.array([float(text) for text in texts[name] if text])
        assert truth[name]["mean"] == pytest.approx(numbers.mean())
        assert truth[name]["quartiles"] == pytest.approx(np.quantile(numbers, (0.25, 0.5, 0.75)))
        assert truth[name]["missing"] == pytest.approx(texts[name].count("") / len(texts[name]))
    codes = [text for text in texts["diagnosis"] if text in truth["diagnosis"]["shares"]]
    assert truth["diagnosis"]["shares"]["other"] == pytest.approx(1 - len(codes) / len(texts["diagnosis"]))
    assert truth["cost"]["deviation"] > truth["cost"]["mean"]  # most stays are cheap, a few are very dear
    assert sum(truth["admitted"]["shares"].values()) == pytest.approx(1)


def test_the_dictionary_drafts_all_that_the_schema_needs(folder):
    columns = read_dictionary(folder / "dictionary.csv").columns
    assert [column.name for column in columns if isinstance(column, Described)] == list(HEADER[1:])
    assert [column.name for column in columns if isinstance(column, LeftOut)] == ["patient_id", "Bemerkung"]


def test_the_schema_has_neither_problems_nor_doubts(folder):
    found = lint((folder / "schema.json").read_bytes(), 20_000)
    assert (found.problems, found.doubts) == ((), ())


def test_the_same_seed_gives_the_same_files(folder, tmp_path):
    main(["sample-data", "--messy", "--out", str(tmp_path), "--parties", "4", "--rows", str(ROWS)])
    for name in ("hospital-1.csv", "hospital-2.csv", "all.csv", "truth.json", "dictionary.csv"):
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()
