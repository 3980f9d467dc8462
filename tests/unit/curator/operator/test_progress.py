"""Plans and progress as people read them."""

import io
from typing import Any

import pytest

from curator.operator import progress
from curator.operator.progress import Screen, describe_curve, describe_plan, describe_run, progress_lines


def run(state: str, answered: list[str], waiting: list[str], **more: Any) -> dict[str, Any]:
    everybody = ["north", "south"]
    steps = [
        {"step": "joining", "stage": "joining", "of": everybody, "answered": everybody},
        {"step": "update/1", "stage": "update", "of": everybody, "answered": answered},
        {"step": "update/2", "stage": "update", "of": ["north"], "answered": []},
    ]
    found = {"run": "r1", "state": state, "step": "update/1", "reason": None, "culprit": None, "progress": steps}
    return found | {"waiting_for": [{"party": name} for name in waiting]} | more


def test_steps_of_one_stage_share_a_bar_with_every_partys_part() -> None:
    assert progress_lines(run("running", ["north", "south"], ["north"])) == [
        "joining       ████████████████████ 2/2   north ✓  south ✓",
        "update        █████████████░░░░░░░ 2/3   north 1/2  south ✓",
        "running: waits for north",
    ]
    assert progress_lines(run("running", [], ["north", "south"]))[1] == (
        "update        ░░░░░░░░░░░░░░░░░░░░ 0/3   north ·  south ·"
    )


def test_the_last_line_says_what_a_run_does_without_anybody_to_wait_for() -> None:
    assert progress_lines(run("running", [], []))[-1] == "running: the curator is at work"
    assert progress_lines(run("timed_out", [], []))[-1] == "timed out"


def test_many_parties_do_not_fill_the_screen() -> None:
    names = [f"p{k}" for k in range(9)]
    step = {"step": "joining", "stage": "joining", "of": names, "answered": []}
    line = progress_lines(run("joining", [], [], progress=[step]))[0]
    assert line.endswith("p0 ·  p1 ·  p2 ·  p3 ·  p4 ·  ...")


def test_without_a_terminal_only_what_is_new_is_written() -> None:
    out = io.StringIO()
    screen = Screen(out)
    screen.show(run("running", [], ["north", "south"]))
    before = out.getvalue()
    screen.show(run("running", [], ["north", "south"]))
    assert out.getvalue() == before
    screen.show(run("running", ["north"], ["south"]))
    assert len(out.getvalue().removeprefix(before).splitlines()) == 2


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_the_picture_is_redrawn_in_place_and_never_wraps(monkeypatch: pytest.MonkeyPatch) -> None:
    class Narrow:
        columns = 30

    monkeypatch.setattr(progress, "get_terminal_size", lambda: Narrow)
    out = Terminal()
    screen = Screen(out)
    screen.show(run("running", [], ["north"]))
    assert not out.getvalue().startswith("\x1b[3A")
    first = out.getvalue()
    screen.show(run("running", ["north"], ["south"]))
    second = out.getvalue().removeprefix(first)
    assert second.startswith("\x1b[3A\x1b[2K")
    assert max(len(line.removeprefix("\x1b[3A").removeprefix("\x1b[2K")) for line in second.splitlines()) == 30


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"state": "finished", "step": None}, "run r1: finished"),
        ({"state": "failed", "reason": "why", "culprit": "north"}, "run r1: failed at update/1: why (north)"),
        ({"state": "timed_out", "culprit": "north"}, "run r1: timed out at update/1 (north)"),
    ],
)
def test_a_run_is_described_with_where_why_and_who(more: dict[str, Any], words: str) -> None:
    assert describe_run(run("running", [], []) | more) == words


def test_a_plan_is_a_table_prices_and_a_reassurance() -> None:
    lines = describe_plan(_plan())
    assert lines[1].split() == ["joining", "1", "2,000", "3", "4,000", "1.2"]
    assert lines[2].split()[-1] == "0.5000"
    assert lines[3] == "predicted error of the table, the mean of all pairs of attributes: 0.0500 (0.0300 to 0.0900)"
    assert lines[4] == "why: Because."
    assert lines[5] == "stop: Too much."
    assert lines[6] == "this plan starts only with --anyway, and records why it should not"
    assert lines[7] == "north pays 4/5 and a delta of 1/1000000000"
    assert lines[8] == f"8,000 bytes per party, about 2 s; nothing has been spent. Plan {'ab' * 32}"


def test_a_bound_that_bounds_nothing_is_left_out_and_an_error_that_is_not_predicted_is_said_to_be_so() -> None:
    plan = _plan()
    plan["steps"][1]["error"] = 1.0
    plan["predicted"] |= {"error": None, "low": None, "high": None, "why": "who knows"}
    lines = describe_plan(plan)
    assert lines[2].split()[-1] == "1.2"
    assert lines[3] == "error of the table: not predicted: who knows"


def _plan() -> dict[str, Any]:
    step = {"name": "joining", "tables": 1, "cells": 2000, "ciphertexts": 3, "bytes_per_party": 4000, "seconds": 1.25}
    return {
        "steps": [step | {"error": None}, step | {"error": 0.5}],
        "predicted": {"error": 0.05, "low": 0.03, "high": 0.09, "noise": 0.01, "left_out": 0.04, "why": "half of it"},
        "why": ["Because."],
        "advice": [{"severity": "stop", "text": "Too much."}],
        "price": {"north": "4/5"},
        "delta": {"north": "1/1000000000"},
        "bytes_per_party": 8000,
        "seconds": 2.5,
        "plan_hash": "ab" * 32,
    }


def test_a_curve_has_a_bar_for_each_epsilon():
    points = [
        {"epsilon": "1/10", "error": 0.4, "method": "guided"},
        {"epsilon": "1/5", "error": 0.1, "method": "dp-subn"},
    ]
    lines = describe_curve({"curve": points, "enough": "1/5"})
    assert lines[1].split() == ["0.1", "0.4000", "█" * 20, "guided"]
    assert lines[2].split() == ["0.2", "0.1000", "█" * 5, "dp-subn"]
    assert lines[3] == "from epsilon 0.2, every doubling lowers the error by less than a fifth"
    assert describe_curve({"curve": [], "enough": None}) == ["error by epsilon: not predicted"]
