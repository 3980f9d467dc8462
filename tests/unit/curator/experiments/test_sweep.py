"""`subn sweep`: its grid, its results file, what it measures and draws, and what it refuses."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from curator.experiments.sweep.figures import draw, means
from curator.experiments.sweep.grid import read_grid
from curator.experiments.sweep.results import Results
from curator.experiments.sweep.run import measure
from curator.experiments.sweep.runner import RESULTS, run_sweep
from curator.experiments.view_study import DESIGNS
from curator.subn import main
from protocol.errors import OperatorError

ROWS, SEEDS = 240, 2
HEAD = f"""
seeds = {SEEDS}
[data.clinic]
table = "t.csv"
schema = "s.json"
ways = [1, 2]
classify = [
  {{attribute = "ill"}},
  {{attribute = "work", values = ["clerk"], without = ["age"]}},
  {{attribute = "ill", classifier = "gradient boosting"}},
]
"""
RUNS = """
[[runs]]
epsilon = [0.5, 2]
parties = [2, 4]
method = ["dp-subn", "independent"]
"""


@pytest.fixture
def world(tmp_path):
    lines = [
        f"{('clerk', 'smith', 'baker')[i % 3]},{i % 40},{'yes' if i % 40 > 25 else 'no'},{'n' if i % 5 else 's'}"
        for i in range(ROWS)
    ]
    (tmp_path / "t.csv").write_text("\n".join(["work,age,ill,town", *lines]) + "\n")
    attributes = [
        {"name": "work", "kind": "categorical", "values": ["clerk", "smith", "baker"]},
        {"name": "age", "kind": "integer", "min": 0, "max": 39, "bins": 4},
        {"name": "ill", "kind": "categorical", "values": ["no", "yes"]},
    ]
    (tmp_path / "s.json").write_text(json.dumps({"attributes": attributes}))
    return tmp_path


def grid_of(world: Path, text: str):
    (world / "g.toml").write_text(text)
    return read_grid(world / "g.toml")


def quiet(done: int, total: int, what: str) -> None:
    """No progress is shown."""


def sweep(world: Path, text: str):
    return run_sweep(grid_of(world, text), world / "out", 1, quiet)


# The grid


def test_a_grid_is_every_combination_of_what_it_lists(world):
    grid = grid_of(world, HEAD + RUNS)
    assert len(grid.cells) == len(set(grid.cells)) == 2 * 2 * 2 * SEEDS
    assert {cell.settings.parties for cell in grid.cells} == {2, 4}
    assert {cell.settings.epsilon for cell in grid.cells} == {"0.5", "2"}
    assert {cell.settings.method for cell in grid.cells} == {"dp-subn", "independent"}


def test_an_entry_may_have_seeds_of_its_own(world):
    text = HEAD + "[[runs]]\nepsilon = 1\n[[runs]]\nepsilon = 2\nseeds = [7]"
    assert [(cell.settings.epsilon, cell.seed) for cell in grid_of(world, text).cells] == [("1", 1), ("1", 2), ("2", 7)]


def test_levers_are_fields_of_the_plan(world):
    text = HEAD + "[[runs]]\nepsilon = 1\nlevers = { cover_budgets = 'equal' }"
    cells = grid_of(world, text).cells
    assert cells[0].settings.wishes["cover_budgets"] == "equal"
    (refused,) = {
        record["outcome"]["refused"] for record in sweep(world, text.replace("cover_budgets = 'equal'", "magic = 1"))
    }
    assert "magic" in refused


def test_decimals_stay_exact(world):
    text = HEAD + "[[runs]]\nepsilon = 0.1\ntheta = 2.5\nsplit = '1/40,1/40,1/40,1/40'"
    (first, _) = grid_of(world, text).cells
    assert first.settings.epsilon == "0.1"
    assert str(first.settings.wishes["theta"]) == "5/2"


def test_entries_that_overlap_are_run_once(world):
    assert len(grid_of(world, HEAD + RUNS + RUNS).cells) == 16


def test_every_option_of_simulate_is_an_option_of_a_grid(world):
    text = HEAD + '[[runs]]\nepsilon = 1\nkey_bits = 2048\nupdate = ["joint", "accumulate"]\npartition = "sorted:age"'
    cells = grid_of(world, text).cells
    assert {cell.settings.wishes["update"] for cell in cells} == {"joint", "accumulate"}
    assert cells[0].settings.wishes["key_bits"] == 2048


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("[[runs", "not TOML that can be read"),
        (RUNS, "the grid needs 'data'"),
        (HEAD, "the grid needs 'runs' or 'views'"),
        (HEAD + "[[runs]]\nparties = 2", "the following arguments are required: --epsilon"),
        (HEAD + "[[runs]]\nepsilon = 1\nmethod = 'magic'", "argument --method: invalid choice: 'magic'"),
        (HEAD + "[[runs]]\nepsilon = 1\nmagic = 1", "unrecognized arguments: --magic=1"),
        (HEAD + "[[runs]]\nepsilon = 1\ndata = 'bank'", "but the grid has no section [data.bank]"),
        (HEAD + "[runs]\nepsilon = 1", "each under a line [[runs]]"),
        ("sedes = 2" + HEAD + RUNS, "the grid has 'sedes'; known are seeds, data, runs, views"),
        (HEAD.replace("seeds = 2", "seeds = 0") + RUNS, "seeds must be the number of runs"),
        (HEAD.replace("ways = [1, 2]", "ways = 'two'") + RUNS, "ways must list"),
        (HEAD.replace("ways = [1, 2]", "ways = []") + RUNS, "ways must list"),
        (HEAD.replace("ways = [1, 2]", "ways_of_bits = [0]") + RUNS, "ways_of_bits must list"),
        (
            HEAD.replace("gradient boosting", "an oracle") + RUNS,
            "classifier is 'an oracle', which is none of linear SVM",
        ),
        (HEAD.replace("table =", "tabel =") + RUNS, "data.clinic has 'tabel'"),
        (HEAD + "[[views]]\nepsilon = 1\ndesign = 'magic'", "views: design is 'magic'"),
        (HEAD + "[[views]]\nepsilon = 0\ndesign = 'nocd'", "views: epsilon is 0: it must be positive"),
        (HEAD + "[[views]]\ndesign = 'nocd'", "views: epsilon: expected an exact number"),
        (HEAD + "[[views]]\nepsilon = 1\ndesign = 'nocd'\nencoding = 'x'", "views: encoding is 'x'"),
    ],
)
def test_a_grid_that_cannot_work_is_refused_with_one_sentence(world, capsys, text, what):
    (world / "g.toml").write_text(text)
    assert main(["sweep", "--grid", str(world / "g.toml"), "--out", str(world / "out")]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"subn: {world / 'g.toml'}: ")
    assert what in err
    assert len(err.splitlines()) == 1
    assert not (world / "out").exists()


def test_files_that_are_missing_are_named(world, capsys):
    assert main(["sweep", "--grid", str(world / "no.toml"), "--out", str(world / "out")]) == 2
    assert "no.toml: cannot be read: No such file" in capsys.readouterr().err
    (world / "t.csv").unlink()
    (world / "g.toml").write_text(HEAD + RUNS)
    assert main(["sweep", "--grid", str(world / "g.toml"), "--out", str(world / "out")]) == 1
    assert f"{world / 't.csv'}: No such file" in capsys.readouterr().err


def test_a_target_that_the_schema_does_not_know_is_refused(world, capsys):
    for text in (HEAD.replace('"ill"', '"wealth"'), HEAD.replace('["age"]', '["wealth"]')):
        (world / "g.toml").write_text(text + "[[runs]]\nepsilon = 2")
        options = ["--grid", str(world / "g.toml"), "--out", str(world / "out"), "--workers", "1"]
        assert main(["sweep", *options]) == 2
        assert '"wealth": the schema has no such attribute' in capsys.readouterr().err


def test_without_matplotlib_the_extra_is_named_before_any_run(world, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    (world / "g.toml").write_text(HEAD + RUNS)
    assert main(["sweep", "--grid", str(world / "g.toml"), "--out", str(world / "out")]) == 2
    assert "install the extra `experiments`" in capsys.readouterr().err
    assert not (world / "out").exists()


# What is measured


def test_a_run_is_the_simulation_with_that_seed(world, capsys):
    grid = grid_of(world, HEAD + "[[runs]]\nepsilon = 2\nparties = 3\npartition = 'largest:0.8'")
    outcome = measure(grid.sources["clinic"], grid.cells[1])
    options = ["--data", "t.csv", "--schema", "s.json", "--out", "o", "--epsilon", "2", "--parties", "3", "--seed", "2"]
    os.chdir(world)
    assert main(["simulate", *options, "--partition", "largest:0.8", "--crypto", "none", "--evaluate"]) == 0
    manifest = json.loads((world / "o/manifest.json").read_text())
    assert outcome["measured"]["2-way"] == manifest["evaluation"]["average_2way_distance"]
    assert outcome["predicted"] == manifest["predicted"]["error"]
    assert outcome["spent"] == max(party["spent"] for party in manifest["parties"])
    assert [party["rows"] for party in manifest["parties"]] == [192, 24, 24]
    capsys.readouterr()


def test_a_run_that_finds_edges_is_measured_in_the_bins_that_it_has_found(world, capsys):
    schema = json.loads((world / "s.json").read_text())
    schema["attributes"][1] = {"name": "age", "kind": "integer", "min": 0, "max": 39, "find": 4}
    (world / "s.json").write_text(json.dumps(schema))
    grid = grid_of(world, HEAD + "[[runs]]\nepsilon = 200\nmethod = 'guided'\nedges = '0.1'")
    outcome = measure(grid.sources["clinic"], grid.cells[0])
    assert outcome["measured"]["1-way"] < 0.1
    os.chdir(world)
    options = ["--data", "t.csv", "--schema", "s.json", "--out", "o", "--epsilon", "200", "--method", "guided"]
    assert main(["simulate", *options, "--edges", "0.1", "--seed", "1", "--crypto", "none", "--evaluate"]) == 0
    manifest = json.loads((world / "o/manifest.json").read_text())
    assert outcome["measured"]["2-way"] == manifest["evaluation"]["average_2way_distance"]
    capsys.readouterr()


def test_what_classifiers_learn_is_measured(world):
    grid = grid_of(world, HEAD + "[[runs]]\nepsilon = 100")
    found = measure(grid.sources["clinic"], grid.cells[0])["measured"]
    assert set(found) == {
        "1-way",
        "2-way",
        "wrong about ill",
        "wrong about work",
        "wrong about ill by gradient boosting",
    }
    assert found["wrong about ill"] < 0.3  # age tells
    assert found["wrong about ill by gradient boosting"] < 0.3


def test_bytes_are_those_of_real_cryptography(world, capsys):
    """Counted without ciphertexts, as they would be with them."""
    grid = grid_of(world, HEAD + "[[runs]]\nepsilon = 1000000\nparties = 3\nkey_bits = 2048")
    counted = measure(grid.sources["clinic"], grid.cells[0])["bytes"]
    os.chdir(world)
    options = ["--data", "t.csv", "--schema", "s.json", "--out", "o", "--epsilon", "1000000", "--key-bits", "2048"]
    assert main(["simulate", *options]) == 0
    capsys.readouterr()
    phases = json.loads((world / "o/manifest.json").read_text())["phases"]
    sent = sum(phase["bytes"] for phase in phases if phase["name"] != "joining")
    assert counted == pytest.approx(sent, rel=0.03)


def test_a_plan_that_is_refused_is_a_result(world):
    (one,) = {record["outcome"]["refused"] for record in sweep(world, HEAD + "[[runs]]\nepsilon = 1\ndegree = 3")}
    assert one.startswith("degree 3 cannot be afforded")


@pytest.mark.parametrize("design", DESIGNS)
def test_pairs_from_views_get_better_with_epsilon(world, design):
    grid = grid_of(world, HEAD + f"[[views]]\ndesign = '{design}'\nepsilon = [0.1, 100]\nencoding = 'binary'")
    measured = [measure(grid.sources["clinic"], cell)["measured"]["2-way"] for cell in grid.cells]
    assert max(measured[SEEDS:]) < 0.02 < min(measured[:SEEDS])


# The results file


def test_what_is_there_is_not_run_again(world, monkeypatch):
    first = sweep(world, HEAD + RUNS)
    before = (world / "out" / RESULTS).read_bytes()
    monkeypatch.setattr("curator.experiments.sweep.runner.measure", None)  # nothing is left to be run
    assert sweep(world, HEAD + RUNS) == first
    assert (world / "out" / RESULTS).read_bytes() == before


def test_another_table_is_another_run(world):
    one = "[[runs]]\nepsilon = 1\nmethod = 'independent'"
    sweep(world, HEAD + one)
    lines = (world / "t.csv").read_text().splitlines()
    (world / "t.csv").write_text("\n".join([*lines, lines[-1]]) + "\n")
    sweep(world, HEAD + one)
    assert len((world / "out" / RESULTS).read_text().splitlines()) == 2 * SEEDS


@pytest.mark.parametrize("measured", ["ways = [2]", "ways = [1, 2]\nways_of_bits = [2]"])
def test_what_is_measured_besides_makes_another_run(world, measured):
    grids = [grid_of(world, HEAD.replace("ways = [1, 2]", ways) + RUNS) for ways in ("ways = [1, 2]", measured)]
    keys = [{grid.key(cell) for cell in grid.cells} for grid in grids]
    assert not keys[0] & keys[1]


def test_a_line_that_a_kill_cut_off_is_made_again(world):
    first = sweep(world, HEAD + "[[runs]]\nepsilon = 1")
    file = world / "out" / RESULTS
    whole = file.read_bytes()
    for kept in (len(whole) - 1, whole.index(b"\n") + 5):
        file.write_bytes(whole[:kept])
        again = sweep(world, HEAD + "[[runs]]\nepsilon = 1")
        assert [one["outcome"]["measured"] for one in again] == [one["outcome"]["measured"] for one in first]


def test_a_file_that_holds_something_else_is_refused(world):
    (world / "out").mkdir()
    (world / "out" / RESULTS).write_text("hello\n")
    with pytest.raises(OperatorError, match="line 1: this line is not the result of a sweep"):
        sweep(world, HEAD + RUNS)


def test_two_sweeps_do_not_write_one_file(world):
    with Results(world / RESULTS), pytest.raises(OperatorError, match="another sweep is writing this file"):
        Results(world / RESULTS)


def test_a_killed_sweep_goes_on_and_leaves_nobody_behind(world):
    head = HEAD.replace("seeds = 2", "seeds = 24")
    head = head[: head.index("classify")]
    (world / "g.toml").write_text(head + "[[runs]]\nepsilon = 2")
    command = [sys.executable, "-c", "import sys; from curator.subn import main; sys.exit(main())", "sweep"]
    command += ["--grid", str(world / "g.toml"), "--out", str(world / "out"), "--workers", "2"]
    file = world / "out" / RESULTS
    with (world / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as killed:
        wait_until(lambda: file.exists() and file.read_bytes().count(b"\n") >= 2)
        workers = psutil.Process(killed.pid).children(recursive=True)
        killed.send_signal(signal.SIGKILL)
    assert workers
    _, left = psutil.wait_procs(workers, timeout=20)
    assert not left
    before = file.read_bytes()
    assert before.count(b"\n") < 24
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "wrote 24 results" in done.stdout
    after = file.read_bytes()
    assert after.startswith(before[: before.rfind(b"\n") + 1])
    assert len({json.loads(line)["key"] for line in after.splitlines()}) == after.count(b"\n") == 24


def wait_until(condition, patience: float = 60) -> None:
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


# Means and figures


def record(outcome, seed=1, label="", **options):
    return {"data": "clinic", "options": options, "seed": seed, "label": label, "outcome": outcome}


def of(value: float):
    return {"measured": {"2-way": value}, "bytes": 1000}


def test_means_and_standard_errors_by_hand():
    records = [record(of(value), seed, epsilon="1") for seed, value in enumerate((1.0, 2.0, 3.0, 4.0, 5.0))]
    (distance,) = [one for one in means(records) if one.quantity == "2-way"]
    assert (distance.mean, distance.runs) == (3.0, 5)
    assert distance.error == pytest.approx((2.5 / 5) ** 0.5)


def test_one_run_has_no_standard_error_and_a_refused_one_no_mean():
    found = means([record(of(0.5), epsilon="1"), record({"refused": "no"}, epsilon="2")])
    assert {(one.options, one.error) for one in found} == {((("epsilon", "1"),), None)}


def test_labels_name_what_sets_runs_apart():
    records = [record(of(1), epsilon="1", method="dp-subn", update=update) for update in ("joint", "replace")]
    records += [record(of(1), epsilon=epsilon, method="dp-ccbn", parties="3") for epsilon in ("1", "2")]
    assert {one.label for one in means(records)} == {"DP-SUBN, joint", "DP-SUBN, replace", "DP-CCBN"}


@pytest.mark.exhaustive
def test_figures_are_drawn_for_every_axis_and_table(world, capsys):
    views = "[[views]]\ndesign = ['nocd', 'pairs']\nepsilon = [0.5, 2]"
    (world / "g.toml").write_text(HEAD + RUNS + views)
    assert main(["sweep", "--grid", str(world / "g.toml"), "--out", str(world / "out"), "--workers", "1"]) == 0
    printed = capsys.readouterr()
    assert "wrote 24 results, means.csv and 7 figures" in printed.out
    assert printed.err.splitlines()[-1].startswith("24/24 clinic: ")
    names = sorted(path.name for path in (world / "out").glob("*.png"))
    assert names == [
        "bytes-by-parties-clinic-epsilon-0.5-partition-random.png",
        "bytes-by-parties-clinic-epsilon-2-partition-random.png",
        "error-by-epsilon-clinic-parties-2-partition-random.png",
        "error-by-epsilon-clinic-parties-4-partition-random.png",
        "error-by-epsilon-clinic-views-encoding-native.png",
        "error-by-parties-clinic-epsilon-0.5-partition-random.png",
        "error-by-parties-clinic-epsilon-2-partition-random.png",
    ]
    assert all((world / "out" / name).read_bytes().startswith(b"\x89PNG") for name in names)
    with (world / "out" / "means.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["quantity"] for row in rows} >= {"1-way", "2-way", "wrong about ill", "wrong about work", "bytes"}
    assert all(row["runs"] == str(SEEDS) and float(row["standard_error"]) >= 0 for row in rows)


def test_one_place_of_an_axis_is_no_figure(tmp_path):
    assert draw(means([record(of(1), epsilon="1", parties="3")]), tmp_path) == []
