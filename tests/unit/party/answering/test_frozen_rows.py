import errno
import os
import stat

import numpy as np
import pytest

from party.answering.frozen_rows import forget, freeze, thaw
from party.errors import DiskFull, Unreadable
from protocol.tables.schema import Schema
from tests.support.small_runs import MIXED, random_codes

PLAN = "ab" * 32
WIDE = Schema.parse(
    {
        "attributes": [
            {"name": "narrow", "kind": "categorical", "values": ["a", "b"]},
            {"name": "wide", "kind": "integer", "min": 0, "max": 999},
        ]
    }
)


def test_rows_come_back_as_they_went_in(tmp_path):
    codes = [np.array([0, 1, 1], dtype=np.uint8), np.array([999, 0, 258], dtype=np.uint16)]
    freeze(tmp_path / "rows", PLAN, WIDE, codes)
    found = thaw(tmp_path / "rows", PLAN, WIDE)
    assert [column.dtype for column in found] == [np.uint8, np.uint16]
    assert [column.tolist() for column in found] == [[0, 1, 1], [999, 0, 258]]
    (file,) = (tmp_path / "rows").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_freezing_again_replaces_what_was_frozen(tmp_path):
    for seed in (1, 2):
        (codes,) = random_codes(MIXED, [50], seed)
        freeze(tmp_path, PLAN, MIXED, codes)
    assert all((a == b).all() for a, b in zip(thaw(tmp_path, PLAN, MIXED), codes, strict=True))


def test_the_run_s_end_leaves_nothing(tmp_path):
    (codes,) = random_codes(MIXED, [5])
    freeze(tmp_path, PLAN, MIXED, codes)
    forget(tmp_path, PLAN)
    assert list(tmp_path.iterdir()) == []
    forget(tmp_path, PLAN)
    with pytest.raises(Unreadable, match="cannot be read \\(No such file"):
        thaw(tmp_path, PLAN, MIXED)


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: b"x" + data[1:], lambda data: b""])
def test_damaged_rows_are_not_used(tmp_path, damage):
    (codes,) = random_codes(MIXED, [5])
    freeze(tmp_path, PLAN, MIXED, codes)
    (file,) = tmp_path.iterdir()
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(Unreadable, match="the run's rows are damaged"):
        thaw(tmp_path, PLAN, MIXED)


def test_on_a_full_disk_nothing_is_left_behind(tmp_path, monkeypatch):
    (codes,) = random_codes(MIXED, [5])

    def broken(_file):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(DiskFull, match="cannot be written \\(No space left on device\\); make room there"):
        freeze(tmp_path, PLAN, MIXED, codes)
    assert list(tmp_path.iterdir()) == []
