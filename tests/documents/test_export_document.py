"""docs/from-export-to-table.md is true: its commands lead from three messy exports to a typed table and a codebook."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as parquet
import pytest

from protocol.tables.batches import batched
from protocol.tables.coding import Coder
from protocol.tables.schema import Schema
from tests.documents.test_readme import free_ports
from tests.support.documents import blocks, document

pytestmark = pytest.mark.exhaustive  # three hospitals and all commands of a page take a minute

PAGE = document("docs/from-export-to-table.md")
ROWS_OF_EACH, PARTIES = 3000, 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which all commands of the page were run, with free ports."""
    here = tmp_path_factory.mktemp("export")
    ports = dict(zip(("8460", "8471", "8472", "8473"), free_ports(4), strict=True))
    choice = f"$((k == 1 ? {ports['8471']} : k == 2 ? {ports['8472']} : {ports['8473']}))"
    script = "".join(blocks(PAGE, "bash")).replace("port = 847$k", f"port = {choice}").replace("8460", ports["8460"])
    script = f"set -euo pipefail\ntrap 'kill $(jobs -p) 2> /dev/null || true' EXIT\n{script}wait || true\n"
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    with (here / "log").open("wb") as log:
        shell = subprocess.Popen(
            ["bash", "-c", script], cwd=here, env=environment, stdout=log, stderr=log, start_new_session=True
        )
    try:
        assert shell.wait(480) == 0, (here / "log").read_text()
    except subprocess.TimeoutExpired:
        os.killpg(shell.pid, signal.SIGTERM)  # with all that it has started
        shell.wait()
        raise
    return here / "out"


def test_the_lint_doubts_what_the_page_puts_right(folder: Path) -> None:
    said = (folder.parent / "log").read_text()
    assert said.count("amounts of money crowd at the lower end") == 1
    assert said.count("lengths of time crowd at the lower end") == 1
    assert "left out: patient_id (an identifier, which describes nobody)" in said
    assert "left out: Bemerkung (free text, which cannot be counted)" in said
    assert "to be justified" not in said
    schema = Schema.parse((folder / "result/schema.json").read_bytes())
    assert schema == Schema.parse((folder / "schema.json").read_bytes())


def test_every_export_is_read_in_its_own_way(folder: Path) -> None:
    said = [(folder / f"check-{k}").read_text() for k in (1, 2, 3)]
    assert all(text.startswith(f"patients: {ROWS_OF_EACH:,} rows fit\n") for text in said)
    assert "read with semicolons, decimal commas, Windows-1252: read so?" in said[0]
    assert "read with commas, decimal points, UTF-8: read so?" in said[1]
    assert "read with" not in said[2]


def persons(folder: Path) -> list[int]:
    """How many persons each hospital has, as its `check` says."""
    pattern = r"rows per person: checked: 3,000 rows of ([\d,]+) persons; \1 take part, at most 1 of each"
    said = [re.search(pattern, (folder / f"check-{k}").read_text()) for k in (1, 2, 3)]
    return [int(found[1].replace(",", "")) for found in said if found]


def test_one_admission_of_every_patient_takes_part_and_is_paid_for_at_two_hospitals(folder: Path) -> None:
    truth = json.loads((folder / "messy/truth.json").read_text())
    assert len(persons(folder)) == PARTIES
    assert truth["people"] < sum(persons(folder)) < truth["rows"] == PARTIES * ROWS_OF_EACH
    manifest = json.loads((folder / "result/manifest.json").read_text())["manifest"]
    plan = manifest["plan"]
    assert [member["rows"] for member in plan["members"]] == persons(folder)
    assert [member["rows_per_person"] for member in plan["members"]] == [1, 1, 1]
    assert (plan.get("rows_per_person", 1), plan["parties_per_person"]) == (1, 2)
    told = (folder / "plan").read_text()
    for party, record in enumerate(manifest["parties"]):
        assert f"hospital-{party + 1} pays {record['spent']}\n" in told
    spent = manifest["parties"][0]["spent"]
    assert (folder / "ledger").read_text().startswith(f"patients: epsilon 4 for all runs, {spent} spent, 0 set aside")


def test_the_table_is_written_as_the_hospitals_write_theirs(folder: Path) -> None:
    schema = Schema.parse((folder / "schema.json").read_bytes())
    header, *rows = csv.reader((folder / "result/table.csv").read_text(encoding="utf-8").splitlines())
    assert (tuple(header), len(rows)) == (schema.names, sum(persons(folder)))
    coder = Coder(schema)
    coder.columns(header)
    assert coder.problems(batched(rows, len(header))) == []
    first = dict(zip(header, zip(*rows, strict=True), strict=True))
    assert all(re.fullmatch(r"\d\d\.\d\d\.20(19|2[0-2])", text) for text in first["admitted"])
    assert all(re.fullmatch(r"\d+\.\d\d|", text) for text in first["cost"])
    assert {*first["emergency"]} <= {"ja", "nein", ""}
    assert {"Gynäkologie", "Innere Medizin"} <= {*first["ward"]}


def test_parquet_and_codebook_tell_types_units_and_labels(folder: Path) -> None:
    fields = parquet.read_schema(folder / "result/table.parquet")
    assert {field.name: str(field.type) for field in fields if field.name != "diagnosis"} == {
        "age": "decimal128(4, 1)",
        "sex": "dictionary<values=string, indices=int32, ordered=0>",
        "ward": "dictionary<values=string, indices=int32, ordered=0>",
        "admitted": "date32[day]",
        "emergency": "bool",
        "days": "int64",
        "cost": "decimal128(8, 2)",
    }
    lines = list(csv.reader((folder / "result/codebook.csv").read_text(encoding="utf-8").splitlines()))
    assert ["diagnosis", "categorical", "main diagnosis, ICD-10", "", "", "I50.1", "Heart failure"] in lines
    assert ["sex", "categorical", "", "", "", "w", "female"] in lines
    assert {line[3] for line in lines if line[0] == "cost"} == {"euro"}
    assert "Heart failure" in (folder / "result/codebook.html").read_text(encoding="utf-8")


def test_shares_are_near_the_truth(folder: Path) -> None:
    """Each share within a tenth: at epsilon 1 the noise is far below, whichever way the run took."""
    truth = json.loads((folder / "messy/truth.json").read_text())["columns"]
    header, *rows = csv.reader((folder / "result/table.csv").read_text(encoding="utf-8").splitlines())
    for name in ("sex", "ward", "emergency", "diagnosis"):
        column = [row[header.index(name)] for row in rows]
        for value, share in truth[name]["shares"].items():
            expected = share * (1 - truth[name]["missing"])
            assert abs(column.count(value) / len(rows) - expected) < 0.1, (name, value)


def test_no_message_of_the_run_holds_a_value_of_the_exports(folder: Path) -> None:
    said = b"".join(file.read_bytes() for file in folder.glob("*.log")) + (folder.parent / "log").read_bytes()
    assert b"Angeh" not in said
    assert not re.search(rb"K0\d{8}", said)
