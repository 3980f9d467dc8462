"""Programs that are started together stop together, whatever happens."""

import os
import signal
import sys
from pathlib import Path
from time import monotonic, sleep

import pytest

from curator.experiments import processes
from curator.experiments.processes import ProgramFailed, Programs, installed, run
from protocol.errors import OperatorError

READY = (
    "import json, sys, time; print('noise'); print('[1]'); print(json.dumps({'event': 'ready', 'n': 7}), flush=True);"
)


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_for_file(path: Path) -> str:
    deadline = monotonic() + 10
    while not path.exists() or not path.read_text():
        assert monotonic() < deadline
        sleep(0.02)
    return path.read_text()


def test_programs_and_their_children_are_gone_when_the_block_is_left(tmp_path: Path) -> None:
    note = tmp_path / "child"
    child = "import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
    code = READY + child + f"open({str(note)!r}, 'w').write(str(p.pid)); time.sleep(60)"
    with Programs(tmp_path) as programs:
        one = programs.start("one", python(code))
        assert one.wait_for("ready")["n"] == 7
        grandchild = int(wait_for_file(note))
    assert one.process.returncode == -signal.SIGTERM
    deadline = monotonic() + 10
    while is_alive(grandchild) and monotonic() < deadline and _state(grandchild) != "Z":
        sleep(0.02)
    assert not is_alive(grandchild) or _state(grandchild) == "Z"


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return "Z"


def test_who_does_not_listen_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "GRACE", 0.2)
    with Programs(tmp_path) as programs:
        deaf = programs.start(
            "deaf", python("import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);" + READY + "time.sleep(60)")
        )
        deaf.wait_for("ready")
    assert deaf.process.returncode == -signal.SIGKILL


def test_what_is_kept_stays_unless_something_failed(tmp_path: Path) -> None:
    with Programs(tmp_path, keep=True) as programs:
        kept = programs.start("kept", python(READY + "time.sleep(60)"))
    assert kept.process.poll() is None
    programs.stop()
    assert kept.process.returncode == -signal.SIGTERM


@pytest.mark.parametrize("trouble", [KeyboardInterrupt, ValueError])
def test_nothing_is_kept_where_something_went_wrong(tmp_path: Path, trouble: type[BaseException]) -> None:
    programs = Programs(tmp_path, keep=True)
    kept = programs.start("kept", python("import time; time.sleep(60)"))
    programs.__exit__(trouble, trouble(), None)
    assert kept.process.returncode == -signal.SIGTERM


def test_a_program_that_ends_early_is_reported_with_its_last_words(tmp_path: Path) -> None:
    with Programs(tmp_path) as programs:
        brief = programs.start("brief", python("import sys; print('last words', file=sys.stderr); sys.exit(3)"))
        with pytest.raises(ProgramFailed, match="brief stopped with exit code 3:\nlast words"):
            brief.wait_for("ready")


def test_a_program_that_never_gets_ready_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "PATIENCE", 0.1)
    with Programs(tmp_path) as programs:
        slow = programs.start("slow", python("import time; time.sleep(60)"))
        with pytest.raises(ProgramFailed, match="slow is not ready after"):
            slow.wait_for("ready")


def test_a_command_gives_what_it_prints_or_its_complaint() -> None:
    assert run(python("print('hello')")) == "hello\n"
    with pytest.raises(ProgramFailed, match=r"failed \(2\): no"):
        run(python("import sys; print('no', file=sys.stderr); sys.exit(2)"))


def test_a_command_that_is_not_installed_is_named() -> None:
    assert installed("subn").is_file()
    with pytest.raises(OperatorError, match="make setup"):
        installed("subn-nowhere")
