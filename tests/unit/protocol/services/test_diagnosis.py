"""What a doctor says of disks, clocks and certificates, and that nothing keeps it from looking further."""

from collections.abc import Iterator

import pytest

from protocol.errors import OperatorError
from protocol.services.diagnosis import (
    LEAST_DISK,
    LITTLE_DISK,
    Finding,
    clock,
    code_of,
    data_of,
    disk,
    examine,
    lasting,
    modes,
)


@pytest.mark.parametrize(
    ("free", "verdict"), [(0, "bad"), (LEAST_DISK - 1, "bad"), (LEAST_DISK, "warn"), (LITTLE_DISK, "ok")]
)
def test_room_on_the_disk(free: int, verdict: str) -> None:
    found = disk(free, "/home")
    assert (found.verdict, bool(found.mend)) == (verdict, verdict != "ok")


@pytest.mark.parametrize(
    ("ahead", "verdict", "word"),
    [(0, "ok", "within"), (-29, "ok", "within"), (31, "warn", "ahead"), (-299, "warn", "behind"), (-301, "bad", "NTP")],
)
def test_the_clock_against_the_peer(ahead: float, verdict: str, word: str) -> None:
    found = clock(ahead, "the curator's")
    assert found.verdict == verdict
    assert word in found.line


@pytest.mark.parametrize(("days", "verdict"), [(-1, "bad"), (0, "warn"), (13, "warn"), (14, "ok")])
def test_days_that_are_left(days: int, verdict: str) -> None:
    found = lasting("certificate", days, 14, "renew it")
    assert (found.verdict, found.mend) == (verdict, "" if verdict == "ok" else "renew it")


def test_secrets_that_others_may_read_are_named_with_the_command_that_mends_it() -> None:
    assert modes([]).verdict == "ok"
    found = modes(["/h/a.key", "/h/b.key"])
    assert (found.verdict, found.mend) == ("bad", "chmod go= /h/a.key /h/b.key")


def test_everything_is_looked_at_whatever_fails_before() -> None:
    def refused() -> Iterator[Finding]:
        yield Finding("one", "ok", "found")
        raise OperatorError("a sentence that says what to do")

    def absent() -> Iterator[Finding]:
        raise FileNotFoundError(2, "No such file", "/nowhere")
        yield

    def fine() -> Iterator[Finding]:
        yield Finding("three", "warn", "so so", "mend it")

    found = examine([("one", refused), ("two", absent), ("three", fine)])
    assert [(one.what, one.verdict) for one in found] == [
        ("one", "ok"),
        ("one", "bad"),
        ("two", "bad"),
        ("three", "warn"),
    ]
    assert found[2].found == "/nowhere: No such file"
    assert data_of(found)["bad"] == 2
    assert data_of(found)["findings"][3] == {"what": "three", "verdict": "warn", "found": "so so", "mend": "mend it"}
    assert found[3].line == "warn  three          so so - mend it"
    assert (code_of(found), code_of(found[3:]), code_of([])) == (1, 0, 0)
