"""Each of ledger and log knows what the other has forgotten."""

from fractions import Fraction
from pathlib import Path

import pytest

from party.books.audit import Audit
from party.books.ledger_tables import RECOVERED, REFUSAL, Entry
from party.books.reconciliation import forgotten, unlogged
from party.errors import Unreadable


@pytest.fixture
def log(tmp_path: Path) -> Audit:
    return Audit(tmp_path / "audit.jsonl")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


def entry(step: str, mechanism: str = "count", charge: str = "1") -> Entry:
    return Entry("patients", "run-1", "p", step, mechanism, Fraction(charge), "q", f"digest of {step}", 5, "now")


def tell(log: Audit, step: str, charge: str = "1", run: str = "run-1", **more: str) -> None:
    said = {"mechanism": "count", "request": "q", "reply": f"digest of {step}"} | more
    log.append("answered", run=run, step=step, charge=charge, bytes=5, **said)


def test_answers_that_the_log_does_not_tell_of_are_named(log: Audit, path: Path) -> None:
    tell(log, "a")
    answers = [entry("a"), entry("b"), entry("c", RECOVERED), entry("d", REFUSAL, "0"), entry("joining", REFUSAL, "0")]
    assert unlogged(path, answers) == [answers[1], answers[3]]
    log.append("refused", run="run-1", step="d", reason="no")
    assert unlogged(path, answers) == [answers[1]]


@pytest.mark.parametrize("damaged", [b"not JSON\n", b"\xff\xfe\n"])
def test_a_log_with_a_damaged_line_cannot_say_what_is_missing_in_it(log: Audit, path: Path, damaged: bytes) -> None:
    tell(log, "a")
    path.write_bytes(path.read_bytes() + damaged)
    with pytest.raises(Unreadable, match=r"a line is no entry of this log.*keep it as it is.*move it away"):
        unlogged(path, [])


def test_answers_that_the_ledger_has_forgotten_are_named_with_plan_and_data_set(log: Audit, path: Path) -> None:
    log.append("asked", run="run-1", plan="0" * 64, dataset="patients", price="1", delta="0")
    tell(log, "a")
    tell(log, "b", "1/3", delta="1/1000")
    (found,) = forgotten(path, [entry("a")])
    assert (found.dataset, found.receipt.plan, found.receipt.step) == ("patients", "0" * 64, "b")
    assert (found.receipt.charge, found.receipt.delta) == (Fraction(1, 3), Fraction(1, 1000))
    assert found.receipt.digest == "digest of b"


def test_a_charge_that_was_made_smaller_is_forgotten_too(log: Audit, path: Path) -> None:
    tell(log, "a", "1/3")
    assert len(forgotten(path, [entry("a", charge="1/4")])) == 1


def test_an_answer_of_a_run_that_the_log_no_longer_tells_of_has_no_data_set(log: Audit, path: Path) -> None:
    tell(log, "a", run="run-9")
    assert [(one.dataset, one.receipt.plan) for one in forgotten(path, [])] == [("", "")]


def test_a_log_and_a_ledger_that_agree_have_forgotten_nothing(log: Audit, path: Path) -> None:
    assert forgotten(path, []) == []
    tell(log, "a")
    assert forgotten(path, [entry("a", RECOVERED)]) == []  # charged again after it had been forgotten
