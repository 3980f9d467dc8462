"""Both shells write files whole or not at all, in the same way."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest

import curator.files
import party.files

SHELLS = pytest.mark.parametrize("files", [curator.files, party.files], ids=["curator", "party"])


@SHELLS
def test_a_file_has_its_name_once_it_is_whole_and_is_its_owners_alone(tmp_path: Path, files: Any) -> None:
    path = tmp_path / "secret"
    with files.whole_file(path) as file:
        assert not path.exists()
        (draft,) = tmp_path.iterdir()
        assert stat.S_IMODE(draft.stat().st_mode) == 0o600
        file.write(b"whole")
    assert [*tmp_path.iterdir()] == [path]
    assert path.read_bytes() == b"whole"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@SHELLS
def test_an_error_leaves_what_was_there(tmp_path: Path, files: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "settings"
    files.write_file(path, "before")

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        files.write_file(path, "after")
    assert [*tmp_path.iterdir()] == [path]
    assert path.read_text() == "before"


@SHELLS
def test_the_bytes_are_on_disk_before_the_name_is_and_the_name_when_it_returns(
    tmp_path: Path, files: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    effects: list[str] = []
    sync, replace = os.fsync, os.replace

    def synced(handle: int) -> None:
        effects.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        sync(handle)

    def replaced(source: Path, target: Path) -> None:
        effects.append("name")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    files.write_file(tmp_path / "x", b"x")
    assert effects == ["file", "name", "folder"]


@SHELLS
def test_a_draft_that_a_kill_left_open_to_others_is_not_written_to(tmp_path: Path, files: Any) -> None:
    left = tmp_path / f"key{files.UNFINISHED}"
    left.write_text("half")
    left.chmod(0o666)
    with left.open() as watched:
        files.write_file(tmp_path / "key", "secret")
        assert watched.read() == "half"
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600


def test_published_files_may_be_read_by_others(tmp_path: Path) -> None:
    curator.files.write_file(tmp_path / "table.csv", "a,b\n", curator.files.PUBLIC)
    assert stat.S_IMODE((tmp_path / "table.csv").stat().st_mode) & 0o644 == 0o644
