"""A curator from Python: the notebook client, and the example notebook executed against a real curator."""

import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from curator.operator.client import CuratorRefused
from curator.operator.notebook import Curator, RunDidNotFinish
from protocol.errors import ManifestError, OperatorError
from tests.end_to_end.cluster import Cluster, cluster
from tests.support.small_runs import MIXED

NOTEBOOK = Path(__file__).parents[2] / "examples" / "curator.ipynb"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("notebook") / "home") as found:
        found.add("north", "south")
        found.enrol("north", "south")
        found.acquaint("north", "south")
        found.serve("north", "south")
        yield found


@pytest.fixture
def curator(home: Cluster) -> Iterator[Curator]:
    with Curator(home.url, home.key_file, home.ca_file) as found:
        yield found


def test_the_example_notebook_runs(home: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in home.operator.items():
        monkeypatch.setenv(name, value)
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert sum(len(cell.source.splitlines()) for cell in code) <= 20
    assert all(not cell.outputs for cell in code)  # it is kept without outputs
    for cell in code:  # the test's few rows make a table of noise
        cell.source = cell.source.replace(
            'curator.run(schema, epsilon="0.8")', 'curator.run(schema, "0.8", anyway=True)'
        )
    done = NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [str(cell.outputs) for cell in done.cells if cell.cell_type == "code"]
    assert "north" in shown[0]
    assert "north pays 4/5" in shown[1]
    assert "finished" in shown[2]
    assert all(name in shown[3] for name in MIXED.names)
    assert "100000" in shown[4]
    assert "'north': '4/5'" in shown[5]


def test_from_a_schema_to_a_verified_table(curator: Curator, home: Cluster) -> None:
    plan = curator.plan(home.sites["north"].home / "schema.json", epsilon=Fraction(4, 5), noise="distributed")
    assert set(plan.price.values()) == {"4/5"}
    assert "nothing has been spent" in str(plan)
    assert curator.schemas()[0].title == "mixed"
    run = curator.run(
        MIXED.hash, "0.8", noise="distributed", parties=["north", "south"], theta="5.5", rows=77, anyway=True
    )
    assert run.wait(timeout=120, show=False).state == "finished"
    assert [event.kind for event in run.events()][-1] == "ended"
    table = run.table()
    assert tuple(table) == MIXED.names
    assert {len(column) for column in table.values()} == {77}
    assert {len(column) for column in run.table(rows=5).values()} == {5}
    assert run.file("table.parquet").startswith(b"PAR1")
    frame = run.frame(rows=6)
    assert (tuple(frame.columns), len(frame)) == (MIXED.names, 6)
    assert frame["grade"].cat.ordered
    assert [one["name"] for one in run.schema()["attributes"]] == list(MIXED.names)
    assert run.network()
    assert run.report()
    assert run.verify(home.public).plan.rows == 77
    with pytest.raises(ManifestError):
        run.verify("00" * 32)
    assert run.id in {entry.run for entry in curator.runs()}
    assert curator.attach(run.id).state().state == "finished"


def test_a_run_that_does_not_finish_says_why(curator: Curator, home: Cluster) -> None:
    run = curator.run(MIXED.hash, "0.8", noise="distributed", split=["1/5", "1/5", "1/5", "1/5"], anyway=True)
    run.cancel("a slip")
    with pytest.raises(RunDidNotFinish, match="a slip") as found:
        run.wait(show=False)
    assert found.value.run.state == "cancelled"


def test_waiting_may_end_before_the_run(curator: Curator, home: Cluster) -> None:
    code = curator.code("east")
    assert code.name == "east"
    run = curator.run(MIXED.hash, "0.8", noise="local", anyway=True)
    with pytest.raises(TimeoutError, match="is still"):
        run.wait(timeout=0, show=False)
    run.cancel()


def test_what_cannot_work_is_refused_with_one_sentence(
    curator: Curator, home: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(OperatorError, match="write it in quotes, or as a Fraction"):
        curator.plan(MIXED.hash, epsilon=0.8)  # type: ignore[arg-type]
    with pytest.raises(CuratorRefused):
        curator.plan("0" * 64, epsilon="0.8")
    monkeypatch.delenv("SUBN_KEY_FILE", raising=False)
    with pytest.raises(OperatorError, match="no operator key"):
        Curator(home.url)


def test_it_needs_no_part_of_the_server() -> None:
    server = {"fastapi", "starlette", "uvicorn", "sqlalchemy", "duckdb", "jinja2", "prometheus_client"}
    program = f"import sys, curator.operator.notebook; print(sorted({server} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
