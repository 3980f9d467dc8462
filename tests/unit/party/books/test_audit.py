import errno
import hashlib
import json
import os
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing

import pytest

from party.books import audit, log_file
from party.books.audit import FIRST, Audit, entries, verify
from party.books.ledger import Ledger
from party.errors import DiskFull, LedgerError, RolledBack, Unreadable


@pytest.fixture
def path(tmp_path):
    return tmp_path / "audit.jsonl"


@pytest.fixture
def log(path):
    return Audit(path, now=lambda: "2030-01-02T03:04:05")


def three(log):
    log.append("asked", run="run-1", plan="p", dataset="patients", price="1/3")
    log.append("judged", run="run-1", plan="p", decision="refuse", reasons=["too dear"])
    log.append("refused", run="run-1", step="joining", reason="too dear: \u00fc")


def test_a_line_says_what_happened_when_and_after_which_line(log, path):
    three(log)
    lines = path.read_bytes().splitlines()
    assert [entry["event"] for entry in entries(path)] == ["asked", "judged", "refused"]
    assert json.loads(lines[0]) == {
        "seq": 1,
        "at": "2030-01-02T03:04:05",
        "event": "asked",
        "run": "run-1",
        "plan": "p",
        "dataset": "patients",
        "price": "1/3",
        "previous": FIRST,
    }
    assert json.loads(lines[1])["previous"] == hashlib.sha256(lines[0]).hexdigest()
    assert verify(path) == []
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_entries_that_belong_together_are_a_chain_too_and_wait_for_the_disk_once(log, path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", synced.append)
    log.append_all(("stopped", {"reason": "x"}), ("started", {"version": "1"}), ("stopped", {"reason": "y"}))
    assert len(synced) == 1
    log.append("started", version="2")
    assert [entry["seq"] for entry in entries(path)] == [1, 2, 3, 4]
    assert verify(path) == []


def test_an_event_has_no_field_for_values_or_counts(log, path):
    with pytest.raises(AssertionError, match="'answered' says nothing about"):
        log.append("answered", run="run-1", counts=[3, 4])
    with pytest.raises(KeyError):
        log.append("seen", run="run-1")
    assert not path.exists()


def test_a_log_goes_on_in_another_process(log, path):
    three(log)
    Audit(path, now=lambda: "later").append("stopped", reason="asked to")
    assert [entry["seq"] for entry in entries(path)] == [1, 2, 3, 4]
    assert verify(path) == []


def test_a_line_longer_than_what_is_read_at_once_is_chained(log, path):
    log.append("stopped", reason="x" * 3 * log_file.BLOCK)
    log.append("stopped", reason="y" * (log_file.BLOCK - 100))
    log.append("stopped", reason="z")
    assert verify(path) == []


@pytest.mark.parametrize(
    ("change", "line", "what"),
    [
        (lambda lines: [lines[0].replace(b"1/3", b"1/4"), *lines[1:]], 2, "does not follow from the line before"),
        (lambda lines: [lines[0], lines[2]], 2, "does not follow"),
        (lambda lines: lines[1:], 1, "does not follow"),
        (lambda lines: [lines[1], lines[0], lines[2]], 1, "does not follow"),
        (lambda lines: [*lines, lines[2]], 4, "does not follow"),
        (lambda lines: [lines[0], b"{}\n", *lines[1:]], 2, "is no entry of this log"),
        (lambda lines: [lines[0], b"[1]\n", *lines[1:]], 2, "is no entry of this log"),
        (lambda lines: [b"hello\n", *lines], 1, "is no entry of this log"),
        (lambda lines: [lines[0].replace(b":", b": "), *lines[1:]], 1, "is not written as this log writes"),
        (lambda lines: [lines[0].replace(b'"seq":1', b'"seq":7'), *lines[1:]], 1, "has the number 7"),
        (lambda lines: [*lines[:2], lines[2][:-5]], 3, "is unfinished"),
    ],
)
def test_a_change_is_found_where_it_was_made(log, path, change, line, what):
    three(log)
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))
    (finding,) = verify(path)
    assert finding.startswith(f"{path}, line {line}: {what}")


def test_a_log_that_is_absent_or_empty(path):
    assert verify(path) == [f"{path}: is absent"]
    assert list(entries(path)) == []
    path.touch()
    assert verify(path) == []


@pytest.mark.parametrize("cut", [1, 40])
def test_a_line_that_a_kill_cut_short_is_taken_out_and_the_log_says_so(log, path, cut):
    three(log)
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    assert [entry["seq"] for entry in entries(path)] == [1, 2]
    log.append("stopped", reason="asked to")
    found = list(entries(path))
    assert [entry["event"] for entry in found] == ["asked", "judged", "mended", "stopped"]
    assert found[2]["bytes"] == len(whole.splitlines(keepends=True)[2]) - cut
    assert verify(path) == []


def test_a_first_line_that_was_cut_short_is_mended_too(log, path):
    path.write_bytes(b'{"at":"20')
    log.append("stopped", reason="asked to")
    assert [entry["event"] for entry in entries(path)] == ["mended", "stopped"]
    assert verify(path) == []


@pytest.mark.parametrize("line", [b"not JSON\n", b"{}\n", b"[1]\n"])
def test_nothing_is_added_to_a_log_that_is_none(log, path, line):
    path.write_bytes(line)
    with pytest.raises(Unreadable, match="its last line is no entry of this log"):
        log.append("stopped", reason="asked to")
    assert path.read_bytes() == line


def test_on_a_full_disk_no_half_line_is_left(log, path, monkeypatch):
    three(log)
    before, pwrite = path.read_bytes(), os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda file, data, at: pwrite(file, data[:20], at))
    with pytest.raises(DiskFull, match=r"nothing was written \(too little room\); make room and try again"):
        log.append("stopped", reason="asked to")
    assert path.read_bytes() == before

    def broken(_file):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", pwrite)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", broken)
        with pytest.raises(DiskFull, match="No space left on device"):
            log.append("stopped", reason="asked to")
    assert path.read_bytes() == before
    log.append("stopped", reason="asked to")
    assert verify(path) == []


def test_a_place_where_no_log_can_be_is_said_to_be_so(tmp_path):
    with pytest.raises(LedgerError, match="cannot be opened: Is a directory"):
        Audit(tmp_path).append("stopped", reason="asked to")


WRITER = """
import sys
from contextlib import closing
from pathlib import Path
from party.books.audit import Audit
for number in range(40):
    Audit(Path(sys.argv[1])).append("stopped", reason=str(number))
"""


def test_processes_that_write_at_once_make_one_chain(path):
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path)]) for _ in range(3)]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    assert [entry["seq"] for entry in entries(path)] == list(range(1, 121))
    assert verify(path) == []


# A missing end: the ledger keeps the length and the last hash


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger.open(tmp_path / "ledger.db")
    yield ledger
    ledger.close()


@pytest.fixture
def noting(path, ledger):
    return Audit(path, now=lambda: "2030-01-02T03:04:05", heads=ledger)


@pytest.mark.parametrize("left", [0, 1, 2])
def test_a_log_that_was_cut_at_a_lines_end_is_not_whole(noting, ledger, path, left):
    three(noting)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:left]))
    assert verify(path) == []  # it looks whole by itself
    told = f"{path}: has {left} lines, the ledger knows of 3: its end was cut off or all was removed"
    assert verify(path, ledger.log_head()) == [told]


def test_a_log_that_was_removed_is_missed(noting, ledger, path):
    three(noting)
    path.unlink()
    assert "has 0 lines, the ledger knows of 3" in verify(path, ledger.log_head())[0]


@pytest.mark.parametrize("grown", [1, 2, 3])
def test_a_log_that_was_cut_does_not_grow_whole_again(noting, ledger, path, grown):
    """Lines that follow the cut make neither the length nor the hash good."""
    three(noting)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:1]))
    for number in range(grown):
        noting.append("stopped", reason=str(number))
    assert ledger.log_head().lines == 3
    problem = "has 2 lines" if grown == 1 else "line 3: is not the line that the ledger has noted"
    assert problem in verify(path, ledger.log_head())[0]


def test_a_log_goes_on_from_a_missing_end_when_its_owner_knows_and_says_so_itself(noting, ledger, path):
    three(noting)
    noted = ledger.log_head()
    path.write_bytes(b"")
    noting.go_on()
    noting.append("stopped", reason="asked to")
    assert verify(path, ledger.log_head()) == []
    first, last = entries(path)
    assert (first["event"], first["lines"], first["last"]) == ("continued", 3, noted.last)
    assert last["event"] == "stopped"
    noting.go_on()  # nothing is missing now
    assert len(list(entries(path))) == 2


def test_a_kill_between_line_and_note_is_caught_up_with(noting, ledger, path, log):
    three(noting)
    log.append("stopped", reason="the ledger was not told")
    assert verify(path, ledger.log_head()) == []
    noting.append("started", version="1")
    assert ledger.log_head().lines == 5


def test_an_unfinished_line_is_no_missing_end_but_hides_none(noting, ledger, path):
    three(noting)
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"at":"20')
    assert audit.tampering(path, ledger.log_head()) == []
    path.write_bytes(whole[:-5])
    (cut,) = audit.tampering(path, ledger.log_head())
    assert "has 2 lines, the ledger knows of 3" in cut


def test_a_ledger_that_is_set_back_while_it_is_open_is_found_at_the_next_line(noting, ledger, path, tmp_path):
    noting.append("started", version="1")
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as live, closing(sqlite3.connect(tmp_path / "old.db")) as old:
        live.backup(old)
        three(noting)
        old.backup(live)
    assert ledger.log_head().lines == 1
    with pytest.raises(RolledBack, match="was set back while this party was served: start the service again"):
        noting.append("stopped", reason="asked to")


def test_a_ledger_that_has_noted_nothing_takes_the_log_as_it_is(log, noting, ledger, path):
    """A home of an older program."""
    three(log)
    assert ledger.log_head() is None
    noting.append("started", version="1")
    assert ledger.log_head().lines == 4


NOTER = """
import sys
from contextlib import closing
from pathlib import Path
from party.books.audit import Audit
from party.books.ledger import Ledger
path = Path(sys.argv[1])
audit = Audit(path, heads=Ledger.open(path.with_name("ledger.db")))
for number in range(20):
    audit.append("stopped", reason=str(number))
"""


def test_processes_that_write_at_once_leave_the_last_line_noted(noting, ledger, path):
    writers = [subprocess.Popen([sys.executable, "-c", NOTER, str(path)]) for _ in range(3)]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    assert ledger.log_head().lines == 60
    assert verify(path, ledger.log_head()) == []
