"""Every command prints others' words through the one function that makes them printable."""

import argparse
import ast
import io
import logging
from pathlib import Path

import pytest

from curator.operations.logs import JsonLines as CuratorLines
from curator.operator.progress import Screen
from curator.rendering.output import say
from curator.subn import main as subn
from party.books.audit import Audit
from party.commands import main as party_commands
from party.commands.result import Result
from party.logs import json_log
from protocol.errors import OperatorError
from protocol.text import is_unseen
from tests.support.documents import ROOT

HOSTILE = "\x1b[2J\x9b31m\u202everified\r\nall is well"
PRINTABLE = {"printable", "printable_json", "printable_lines"}


def is_clean(text: str) -> bool:
    return bool(text) and not any(is_unseen(one) for one in text if one != "\n")


def prints(file: Path) -> list[ast.Call]:
    calls = (node for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, ast.Call))
    return [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "print"]


def goes_through(call: ast.Call) -> bool:
    return any(isinstance(node, ast.Name) and node.id in PRINTABLE for node in ast.walk(call.args[0]))


def test_nothing_is_printed_but_through_that_function() -> None:
    files = [file for shell in ("party", "curator") for file in (ROOT / shell).rglob("*.py")]
    found = [(file, call) for file in files for call in prints(file)]
    assert len(found) > 10
    assert not [f"{file}:{call.lineno}" for file, call in found if not goes_through(call)]


def test_a_print_that_goes_by_it_would_be_missed(tmp_path: Path) -> None:
    (tmp_path / "bare.py").write_text('print(f"{name}")\nprint(printable(name))\n')
    assert [goes_through(call) for call in prints(tmp_path / "bare.py")] == [False, True]


@pytest.mark.parametrize("as_json", [True, False])
def test_the_curators_and_the_operators_commands(as_json: bool, capsys: pytest.CaptureFixture[str]) -> None:
    say(argparse.Namespace(json=as_json), {"reason": HOSTILE}, f"refused: {HOSTILE}", "the last line")
    said = capsys.readouterr().out
    assert is_clean(said)
    assert len(said.splitlines()) == (1 if as_json else 2)  # no line was forged


def test_what_the_operator_watches() -> None:
    step = {"step": "joining", "stage": "joining", "of": [HOSTILE], "answered": []}
    out = io.StringIO()
    Screen(out).show({"progress": [step], "waiting_for": [{"party": HOSTILE}], "state": "joining"})
    assert is_clean(out.getvalue())
    assert len(out.getvalue().splitlines()) == 2


def test_complaints_of_the_operators_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert subn(["verify", str(tmp_path / f"none{HOSTILE}")]) == 2
    said = capsys.readouterr().err
    assert is_clean(said)
    assert [line for line in said.splitlines() if not line.startswith(("subn: ", "  "))] == []


@pytest.mark.parametrize("as_json", [True, False])
def test_a_partys_commands(as_json: bool, capsys: pytest.CaptureFixture[str]) -> None:
    party_commands.say(Result({"reason": HOSTILE}, [f"refused: {HOSTILE}", "the last line"]), as_json)
    party_commands.complain(OperatorError(HOSTILE), as_json)
    said = capsys.readouterr()
    assert is_clean(said.out)
    assert is_clean(said.err)
    if not as_json:
        assert len(said.out.splitlines()) == 2


def test_logs_on_both_sides(capsys: pytest.CaptureFixture[str]) -> None:
    json_log("refused", reason=HOSTILE)
    assert is_clean(capsys.readouterr().err)
    record = logging.makeLogRecord({"msg": "refused", "fields": {"reason": HOSTILE}})
    assert is_clean(CuratorLines().format(record))


def test_a_run_that_ended_with_hostile_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The audit log and the requests keep the curator's words as they were; the commands show them safely."""
    home = tmp_path / "home"
    assert party_commands.main(["init", "--home", str(home)]) == 0
    Audit(home / "audit.jsonl").append("stopped", reason=HOSTILE)
    capsys.readouterr()
    assert party_commands.main(["audit", "--home", str(home)]) == 0
    said = capsys.readouterr().out
    assert is_clean(said)
    assert r"\u001b[2J\u009b31m\u202everified\r\nall is well" in said
