"""`subn demo`: from nothing to a published table and back to nothing, and what it says when it cannot begin."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from curator.experiments.evaluation import errors_against
from curator.experiments.sample_data import write_sample
from curator.subn import main
from protocol.tables.schema import Schema


def processes_of(folder: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if any(str(folder) in part for part in process.info["cmdline"] or ()) and process.pid != psutil.Process().pid:
            found.append(process)
    return found


def test_the_demonstration_ends_with_error_and_budgets_and_leaves_nothing_running(tmp_path: Path) -> None:
    out = tmp_path / "demo"
    code = "import sys; from curator.subn import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "demo", "--method", "independent", "--parties", "2", "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as demo:
        try:
            said, _ = demo.communicate(timeout=100)
        except subprocess.TimeoutExpired:
            demo.terminate()  # it stops what it has started; killed, it could not
            raise
    assert demo.returncode == 0, said
    error, *budgets = said.splitlines()[-3:]
    found = re.search(r"attributes (0\.\d{4}), pairs of attributes (0\.\d{4})$", error)
    assert found is not None
    assert 0 < float(found[1]) < float(found[2]) < 0.3
    assert budgets == [f"hospital-{k} spent 1 of its epsilon 1" for k in (1, 2)]
    assert processes_of(out) == []
    assert main(["verify", str(out / "result" / "manifest.json")]) == 0


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
        (["--parties", "1"], "takes 2 to 20"),
        (["--parties", "21"], "takes 2 to 20"),
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
