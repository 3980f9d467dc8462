"""How soon a command begins: what it imports, and how much CPU time it takes."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from party.commands.main import main as party

# What takes long to import, and what only some commands need.
HEAVY = {
    "asyncio",
    "cryptography",
    "duckdb",
    "fastapi",
    "gmpy2",
    "httpx",
    "jinja2",
    "matplotlib",
    "pandas",
    "pyarrow",
    "python_calamine",
    "numpy",
    "phe",
    "prometheus_client",
    "pydantic",
    "sklearn",
    "sqlalchemy",
    "starlette",
    "uvicorn",
}
SERVICE = {"fastapi", "jinja2", "prometheus_client", "starlette", "uvicorn"}
SOURCES = {"duckdb", "python_calamine", "sqlalchemy"}
PROGRAMS = {"subn": "curator.subn", "subn-curator": "curator.commands.main", "subn-party": "party.commands.main"}
SECONDS = 1.2  # of CPU; about 0.4 on an idle machine of 2024
TOML = """
[datasets.patients]
source = "patients.csv"
schema = "schema.json"
epsilon_total = "3"

[policy]
epsilon_per_run = "1"
"""
_PROGRAM = """
import json, sys
from {module} import main
try:
    code = main({arguments!r})
except SystemExit as done:
    code = done.code
print(json.dumps([code, sorted({{name.partition(".")[0] for name in sys.modules}})]), file=sys.stderr)
"""


def imported(program: str, *arguments: str) -> set[str]:
    """Packages that are in memory when the command has been carried out."""
    code = _PROGRAM.format(module=PROGRAMS[program], arguments=list(arguments))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=_alone())
    code, names = json.loads(done.stderr.splitlines()[-1])
    assert code == 0, done.stderr
    return set(names)


def cpu_seconds(program: str, *arguments: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    imported(program, *arguments)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _alone() -> dict[str, str]:
    """Without what measures coverage in processes that tests start."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("COV", "SUBN"))}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("party") / "home"
    assert party(["init", "--home", str(path)]) == 0
    (path / "party.toml").write_text(TOML, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_wait_for_no_library(program: str, option: str) -> None:
    assert imported(program, option) & HEAVY == set()


@pytest.mark.parametrize(
    "command", ["demo", "simulate", "evaluate", "sweep", "plan", "parties", "run", "watch", "get", "verify"]
)
def test_the_help_of_a_command_waits_for_no_library_but_the_one_that_describes_options(command: str) -> None:
    assert imported("subn", command, "--help") & HEAVY <= {"pydantic"}


@pytest.mark.parametrize("command", ["ledger", "requests", "audit"])
def test_a_party_reads_its_books_without_server_sources_or_http(command: str, home: str) -> None:
    assert imported("subn-party", command, "--home", home) & (SERVICE | SOURCES | {"httpx", "phe", "sklearn"}) == set()


@pytest.mark.parametrize(
    ("program", "command"),
    [
        ("subn", "--help"),
        ("subn", "plan --help"),
        ("subn", "simulate --help"),
        ("subn-party", "requests"),
        ("subn-party", "ledger"),
    ],
)
def test_a_command_begins_soon(program: str, command: str, home: str) -> None:
    where = ["--home", home] if program == "subn-party" else []
    assert cpu_seconds(program, *command.split(), *where) < SECONDS


def test_a_party_with_a_csv_file_loads_no_database(home: str) -> None:
    schema = {"title": "Ages", "attributes": [{"name": "age", "kind": "integer", "min": 0, "max": 9}]}
    (Path(home) / "schema.json").write_text(json.dumps(schema), encoding="utf-8")
    (Path(home) / "patients.csv").write_text("age\n3\n5\n", encoding="utf-8")
    assert imported("subn-party", "check", "--home", home) & (SERVICE | SOURCES) == set()
