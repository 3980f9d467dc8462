"""The README and docs/ are true: their commands run, and their pictures are the schedule and the transition table."""

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from itertools import groupby
from pathlib import Path

import pytest

from curator.subn import main
from protocol.stages.methods import METHODS
from tests.support.documents import DOCUMENTS, GUIDES, ROOT, blocks, document, marked
from tests.support.small_runs import CITIES, terms_of

README = document("README.md")


def shell_commands() -> list[str]:
    return [line for block in blocks(README, "sh") for line in block.splitlines() if line.strip()]


def test_every_command_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    commands = shell_commands()
    assert commands[0] == "make setup"  # what the machine that runs this test has done already
    for command in commands[1:]:
        program, *arguments = shlex.split(command)
        assert program == ".venv/bin/subn"
        if "--help" in arguments:
            with pytest.raises(SystemExit) as stopped:
                main(arguments)
            assert stopped.value.code == 0
        else:
            # One worker is this process; more would leave what they share behind until it ends.
            assert main([*arguments, *(["--workers", "1"] if arguments[0] == "sweep" else [])]) == 0, command
    assert (tmp_path / "out/first/synthetic.csv").stat().st_size > 100_000
    assert (tmp_path / "out/second/manifest.json").is_file()


@pytest.mark.exhaustive
def test_the_service_runs_step_by_step_as_written(tmp_path: Path) -> None:
    """With free ports instead of the README's, so that tests can run beside each other."""
    (script,) = blocks(README, "bash")
    ports = dict(zip(("8460", "8471", "8472"), free_ports(3), strict=True))
    script = script.replace("port = 847$k", f"port = $((k == 1 ? {ports['8471']} : {ports['8472']}))")
    script = "set -euo pipefail\ntrap 'kill $(jobs -p) 2> /dev/null || true' EXIT\n" + script.replace(
        "8460", ports["8460"]
    )
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    log = tmp_path / "log"
    with log.open("wb") as output:
        shell = subprocess.Popen(
            ["bash", "-c", script], cwd=tmp_path, env=environment, stdout=output, stderr=output, start_new_session=True
        )
    try:
        assert shell.wait(180) == 0, log.read_text()
    except subprocess.TimeoutExpired:
        os.killpg(shell.pid, signal.SIGTERM)  # with all that it has started
        shell.wait()
        raise
    assert len((tmp_path / "out/result/table.csv").read_text(encoding="utf-8").splitlines()) == 1 + 2 * 2000


def free_ports(count: int) -> list[str]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [str(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports


def test_the_makefile_has_the_targets_that_documents_name() -> None:
    makefile = document("Makefile")
    texts = map(document, (*DOCUMENTS, *GUIDES))
    named = {target for text in texts for target in re.findall(r"^make ([a-z-]+)", text, re.M)}
    assert {"demo", "test", "check"} <= named
    for target in named:
        assert re.search(rf"^{target}:", makefile, re.M), target


def test_a_newcomer_reads_the_readme_in_ten_minutes() -> None:
    assert len(README.splitlines()) <= 250


def picture() -> str:
    """The transition table as a mermaid state diagram, one composite state per method."""
    lines = ["stateDiagram-v2"]
    for method, definition in METHODS.items():
        following = {one: later or ("finished",) for one, later in definition.order.items()}
        alias = method.replace("-", "_")
        lines.append(f'    state "{method}" as {alias} {{')
        lines.append(f"        [*] --> {alias}_joining")
        stages = dict.fromkeys([*following, *(stage for later in following.values() for stage in later)])
        lines += [f"        {alias}_{stage} : {stage}" for stage in stages]
        lines += [f"        {alias}_{one} --> {alias}_{other}" for one, later in following.items() for other in later]
        lines.append("    }")
    return "\n".join(lines)


SAID = {
    "joining": "accepts the plan, signed",
    "levels": "every column alone, in one secure sum",
    "correlations": "views of every pair of halved columns, in one secure sum",
    "initial": "places its variables, by private choices",
    "update": "the pairs that were picked, in one secure sum",
    "frontier": "picks pairs in the search frontier, by private choices",
    "parameters": "the pairs that were picked last, in one secure sum",
}


def run_picture() -> str:
    """One run as a sequence of messages: who answers each step, and at what price."""
    terms = terms_of(CITIES, (300, 300, 300), preset="sound")
    lines = ["sequenceDiagram", "    participant O as operator", "    participant C as curator"]
    parties = range(terms.plan.parties)
    lines += [f"    participant P{k + 1} as party {k + 1}" for k in parties]
    lines.append("    O->>C: a plan, then a run")
    for stage, steps in groupby(terms.steps, lambda step: step.stage):
        lines.append(f"    Note over C,P{len(parties)}: {stage}")
        for step in steps:
            prices = {step.charge(k) for k in step.parties}
            if len(step.parties) > 1 and len(prices) == 1:
                lines.append(f"    Note over C,P{len(parties)}: all parties: {SAID[stage]} ({prices.pop()} each)")
                continue
            for k in step.parties:
                lines.append(f"    P{k + 1}-->>C: {SAID[stage]} ({step.charge(k)})")
    lines.append("    C->>O: synthetic table, report, signed manifest")
    return "\n".join(lines)


def drawn(name: str, text: str) -> str:
    (found,) = blocks(marked(text, name), "mermaid")
    return found.removesuffix("\n")


def test_the_picture_of_one_run_is_the_schedule() -> None:
    assert drawn("run", README) == run_picture()


def test_the_picture_of_a_run_is_the_transition_table() -> None:
    assert drawn("transitions", document("docs/protocol.md")) == picture()
