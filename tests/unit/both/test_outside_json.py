"""All JSON that others wrote is read through the one module that limits it; any other reading is of one's own JSON."""

import ast
from pathlib import Path

import pytest

from tests.support.documents import ROOT

READERS = {"json", "model_validate_json", "validate_json"}
THE_MODULE = "protocol/outside_json.py"
# What each of these reads was written by the same program: into its own home or database, or through its own pipe.
OWN = {
    "curator/experiments/demo.py": "commands that it runs",
    "curator/experiments/processes.py": "logs of programs that it started",
    "curator/experiments/sweep/grid.py": "the command line",
    "curator/experiments/sweep/results.py": "its own file of results",
    "curator/operations/run_totals.py": "stored plans",
    "curator/results/publication.py": "published files in the home",
    "curator/runs/plan_worker.py": "the service's questions",
    "curator/runs/plan_workers.py": "the worker's answers",
    "curator/runs/planning.py": "stored plans, and the worker's answers",
    "curator/runs/views.py": "stored plans",
    "curator/store/migrations.py": "stored schemas",
    "curator/store/run_records.py": "stored events",
    "curator/store/single_writer.py": "the note of who serves the database",
    "party/answering/essentials.py": "stored plans",
    "party/answering/frozen_rows.py": "frozen rows in the home",
    "party/answering/run_rows.py": "the note of a run's table in an engine, in the home",
    "party/answering/saved_state.py": "the kept state of a run",
    "party/books/audit.py": "the audit log in the home",
    "party/books/ledger_tables.py": "stored reasons",
    "party/books/log_file.py": "the audit log in the home",
    "party/comparison/comparison.py": "kept findings in the home",
    "party/home/keys.py": "the keys in the home",
    "party/home/settings.py": "settings that were read as TOML",
    "party/views.py": "stored plans and essentials",
    "protocol/plan/stored.py": "stored plans",
}


def readings(file: Path) -> list[int]:
    """Lines in which JSON is read."""
    calls = (node for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, ast.Call))
    return [call.lineno for call in calls if isinstance(call.func, ast.Attribute) and _reads(call.func)]


def _reads(function: ast.Attribute) -> bool:
    of_json = isinstance(function.value, ast.Name) and function.value.id == "json"
    return function.attr in READERS or (of_json and function.attr.startswith("load"))


def test_json_of_others_is_read_in_one_place() -> None:
    files = [file for package in ("crypto", "protocol", "curator", "party") for file in (ROOT / package).rglob("*.py")]
    found = {str(file.relative_to(ROOT)) for file in files if readings(file)}
    assert found == {THE_MODULE, *OWN}


@pytest.mark.parametrize(
    ("text", "lines"),
    [("json.loads(x)", [1]), ("\nanswer.json()", [2]), ("Plan.model_validate_json(x)", [1]), ("read_json(x)", [])],
)
def test_a_reading_that_goes_by_it_would_be_found(tmp_path: Path, text: str, lines: list[int]) -> None:
    (tmp_path / "module.py").write_text(text)
    assert readings(tmp_path / "module.py") == lines
