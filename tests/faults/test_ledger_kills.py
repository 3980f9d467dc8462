"""kill -9 before every SQL statement of two answers, and at moments spread over the writing of many."""

import json
import os
import resource
import signal
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

VICTIM = Path(__file__).with_name("ledger_victim.py")
ROOT = VICTIM.parents[2]


@pytest.fixture(scope="module")
def deaths(tmp_path_factory):
    path = tmp_path_factory.mktemp("killed") / "ledger.db"
    done = subprocess.run(
        [sys.executable, str(VICTIM), str(path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_every_child_was_killed_in_the_middle(deaths):
    assert len(deaths) == 50
    assert {death["signal"] for death in deaths} == {signal.SIGKILL}
    assert len(deaths[-1]["answers"]) > 30


def test_what_was_confirmed_is_never_lost_and_never_changes(deaths):
    confirmed = set()
    for death in deaths:
        confirmed.update(death["confirmed"])
        assert confirmed <= set(death["answers"])


def test_every_step_is_charged_once_and_at_most_one_answer_was_not_confirmed_yet(deaths):
    before = []
    for death in deaths:
        answers = death["answers"]
        assert [answer.split()[0] for answer in answers] == [str(number) for number in range(len(answers))]
        assert answers[: len(before)] == before
        assert len(answers) - len(before) - len(death["confirmed"]) in (0, 1)
        before = answers


def test_charge_answer_and_state_are_there_together_or_not_at_all(deaths):
    for death in deaths:
        count = len(death["answers"])
        assert Fraction(death["spent"]) == Fraction(count, 5000)
        assert Fraction(death["reserved"]) == 1 - Fraction(count, 5000)
        assert death["kept"] == (death["answers"][-1].split()[1] if count else None)


LIMITED = """
import os, resource, signal, sys
from fractions import Fraction
from pathlib import Path
from party.errors import DiskFull
from party.books.budget import Account, Claims
from party.books.ledger import Ledger
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
ledger = Ledger.open(Path(sys.argv[1]))
ledger.ask("run", plan_hash="p", dataset="d", plan="", schema_text="", price=Fraction(1), verdict="accept", reasons=[])
ledger.reserve("run", Account("d", Claims(frozenset({"d"})), ("d",), (Fraction(1), Fraction(0))))
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 18, resource.RLIM_INFINITY))
for number in range(1000):
    reply = os.urandom(20_000)
    try:
        ledger.record("run", f"s{number}", mechanism="m", charge=Fraction(1, 1000), request_digest="q", reply=reply,
                      kept=None)
    except DiskFull as error:
        assert ledger.answered("run", f"s{number}") is None
        assert ledger.spent("d") == Fraction(number, 1000)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        ledger.record("run", f"s{number}", mechanism="m", charge=Fraction(1, 1000), request_digest="q", reply=reply,
                      kept=None)
        print(number, error)
        break
ledger.close()
"""


def test_when_the_system_refuses_to_write_nothing_is_half_written_and_room_is_enough_to_go_on(tmp_path):
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path / "ledger.db")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert "ledger.db: the disk is full" in done.stdout, done.stderr
    assert int(done.stdout.split()[0]) > 3
