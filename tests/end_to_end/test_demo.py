"""`subn demo`: from nothing to a published table and back to nothing, and what it says when it cannot begin."""

import json
import signal
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import psutil
import pytest

from curator.experiments.demo import DemoOptions
from curator.experiments.evaluation import errors_against
from curator.experiments.sample_data import write_sample
from curator.subn import main
from protocol.exact import exact
from protocol.tables.schema import Schema


def processes_of(folder: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if any(str(folder) in part for part in process.info["cmdline"] or ()) and process.pid != psutil.Process().pid:
            found.append(process)
    return found


def test_the_demonstration_compares_two_runs_and_leaves_nothing_running(tmp_path: Path) -> None:
    out = tmp_path / "demo"
    code = "import sys; from curator.subn import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "demo", "--parties", "2", "--epsilon", "1/2", "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as demo:
        try:
            said, _ = demo.communicate(timeout=100)
        except subprocess.TimeoutExpired:
            demo.terminate()  # it stops what it has started; killed, it could not
            raise
    assert demo.returncode == 0, said
    assert processes_of(out) == []
    lines = said.splitlines()
    assert lines[-2:] == [f"hospital-{k} spent 1/2 + 1/2 = 1 of its epsilon 1" for k in (1, 2)]
    lines = lines[[line.startswith("method") for line in lines].index(True) :]
    for method in ("dp-subn", "recommended"):
        assert main(["verify", str(out / "results" / method / "manifest.json")]) == 0
        check_figures(lines, method, out)


def check_figures(lines: list[str], method: str, out: Path) -> None:
    """Every figure that is printed is the manifest's, and the error that of the table beside it."""
    manifest = json.loads((out / "results" / method / "manifest.json").read_text())["manifest"]
    first = [line.startswith(method) for line in lines].index(True)
    for line, phase in zip(lines[first:], manifest["phases"], strict=False):
        figures = [phase["name"], *(f"{phase[kind]:,}" for kind in ("cells", "ciphertexts", "bytes"))]
        words = line.split()[-5:]
        assert [words[0], *words[2:]] == figures
    prices = [exact(line.split()[-4]) for line in lines[first : first + len(manifest["phases"])]]
    assert sum(prices) == Fraction(1, 2)
    last = [line for line in lines if line.startswith(method)][-1]
    noise, spent, error, *_, sent = last.removeprefix(method).removeprefix(": guided").split()
    assert (noise, spent) == (manifest["plan"]["noise"], manifest["parties"][0]["spent"])
    assert sent == f"{sum(phase['bytes'] for phase in manifest['phases']):,}"
    schema = Schema.parse(manifest["schema_text"])
    of_pairs = errors_against(out / "data" / "all.csv", out / "results" / method / "table.csv", schema)[1]
    assert error == f"{of_pairs:.4f}"
    if method == "dp-subn":
        names = [phase["name"] for phase in manifest["phases"]]
        assert {"correlations", "initial", "update", "parameters"} <= set(names)
        assert manifest["phases"][names.index("correlations")]["ciphertexts"] > 0
        assert manifest["plan"]["key_bits"] == 3072


def test_one_method_alone_is_shown_as_it_is_wished() -> None:
    options = DemoOptions({"method": "guided", "noise": "local"}, 2, "1/2", Path(), keep=False, ask=False)
    assert options.runs == [{"method": "guided", "noise": "local"}]
    assert replace(options, wishes={"preset": "paper"}).runs == [
        {"method": "dp-subn", "noise": "selected", "preset": "paper"}
    ]
    assert replace(options, wishes={}, ask=True).runs == [{"method": "dp-subn", "noise": "selected"}]
    assert (options.total, replace(options, wishes={}).total) == ("1/2", "1")


def test_interrupted_it_stops_what_it_has_started(tmp_path: Path) -> None:
    out = tmp_path / "demo"
    code = "import sys; from curator.subn import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "demo", "--parties", "2", "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as demo:
        assert demo.stdout is not None
        while "a curator at" not in (line := demo.stdout.readline()):
            assert line
        assert processes_of(out / "curator")
        demo.send_signal(signal.SIGTERM)
        assert "subn: interrupted" in demo.stdout.read()
    assert demo.returncode == 130
    assert processes_of(out) == []


@pytest.mark.exhaustive
def test_a_hospital_that_dies_ends_the_demonstration_at_once(tmp_path: Path) -> None:
    out = tmp_path / "demo"
    code = "import sys; from curator.subn import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "demo", "--parties", "2", "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as demo:
        assert demo.stdout is not None
        while "a plan with method" not in (line := demo.stdout.readline()):
            assert line
        (hospital,) = processes_of(out / "hospital-2")
        hospital.kill()
        assert "hospital-2 stopped with exit code -9" in demo.stdout.read()
    assert demo.returncode == 1
    assert processes_of(out) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--parties", "1"], "takes 2 to 50"),
        (["--parties", "51"], "takes 2 to 50"),
        (["--epsilon", "much"], "--epsilon: expected an exact number"),
        (["--out", "."], "is not empty"),
    ],
)
def test_what_cannot_be_demonstrated_is_said_before_anything_starts(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: str,
) -> None:
    (tmp_path / "something").touch()
    monkeypatch.chdir(tmp_path)
    assert main(["demo", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_a_table_has_no_error_against_itself_and_much_against_other_rows(tmp_path: Path) -> None:
    write_sample(tmp_path, 2, 300, 1)
    schema = Schema.parse((tmp_path / "schema.json").read_bytes())
    one, other = tmp_path / "hospital-1.csv", tmp_path / "hospital-2.csv"
    assert errors_against(one, one, schema) == (0.0, 0.0)
    single, double = errors_against(one, other, schema)
    assert 0.01 < single < double < 0.9
