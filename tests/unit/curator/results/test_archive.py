"""Archived runs: what goes, what stays and can be verified, and kills on the way."""

import tarfile
from pathlib import Path

import pytest

from curator.commands.main import main
from curator.errors import SettingsError
from curator.results import archive
from curator.results.archive import archive_runs
from curator.results.publication import MANIFEST, PUBLISHED, TABLE
from protocol.run.manifest import verify_manifest
from tests.support.curator import Clock, Desk
from tests.support.small_runs import SMALL_BITS

LONG_AGO = 1_600_000_000_000  # by the system's clock too


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    found = Desk(tmp_path / "home", clock=Clock(LONG_AGO))
    found.finish(found.run("old", noise="distributed"))
    return found


def archived(desk: Desk, target: Path, before: int | None = None) -> archive.Archived:
    return archive_runs(desk.store, desk.home, desk.clock() + 1 if before is None else before, target)


def only_run(desk: Desk) -> str:
    return desk.views.runs(10)[0].run


def at_home(desk: Desk) -> set[str]:
    return {file.name for file in (desk.home / "runs" / only_run(desk)).iterdir()}


def test_files_go_into_the_archive_and_the_signed_manifest_stays(desk: Desk, tmp_path: Path) -> None:
    run = only_run(desk)
    table = (desk.home / "runs" / run / TABLE).read_bytes()
    before = [desk.views.run(run), desk.views.events(run), desk.views.receipts("party-1")]
    done = archived(desk, tmp_path / "archive")
    assert done.runs == (run,)
    assert not done.damaged
    assert done.freed > len(table)
    assert at_home(desk) == {MANIFEST}
    manifest = verify_manifest((desk.home / "runs" / run / MANIFEST).read_bytes(), {}, smallest_key=SMALL_BITS)
    assert manifest.plan.run == run
    assert [desk.views.run(run), desk.views.events(run), desk.views.receipts("party-1")] == before
    with tarfile.open(tmp_path / "archive" / f"{run}.tar.gz") as packed:
        assert set(packed.getnames()) == {f"{run}/{name}" for name in (*PUBLISHED, MANIFEST)}
        packed.extractall(desk.home / "runs", filter="data")  # the way back
    assert (desk.home / "runs" / run / TABLE).read_bytes() == table


def test_young_runs_active_runs_and_archived_runs_are_left_alone(desk: Desk, tmp_path: Path) -> None:
    active = desk.run("active", noise="distributed")
    assert not archived(desk, tmp_path / "archive", before=0).runs
    assert archived(desk, tmp_path / "archive").runs
    assert archived(desk, tmp_path / "archive") == archive.Archived((), 0, ())
    assert desk.views.run(active).state == "joining"


class Killed(BaseException):
    pass


@pytest.mark.parametrize("place", ["whole_file", "file_digest", "sync_folder"])
def test_a_kill_anywhere_loses_nothing_and_the_next_call_goes_on(
    desk: Desk, tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_arguments: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(archive, place, killed)
        with pytest.raises(Killed):
            archived(desk, tmp_path / "archive")
    assert set(PUBLISHED) <= at_home(desk) or (tmp_path / "archive" / f"{only_run(desk)}.tar.gz").exists()
    archived(desk, tmp_path / "archive")
    assert at_home(desk) == {MANIFEST}


def test_a_kill_between_two_files_is_made_good(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, real = only_run(desk), Path.unlink

    def killed(file: Path, missing_ok: bool = False) -> None:
        if file.name == PUBLISHED[1]:
            raise Killed
        real(file, missing_ok)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", killed)
        with pytest.raises(Killed):
            archived(desk, tmp_path / "archive")
    assert TABLE not in at_home(desk)
    assert PUBLISHED[1] in at_home(desk)
    assert archived(desk, tmp_path / "archive").runs == (run,)
    assert at_home(desk) == {MANIFEST}


@pytest.mark.parametrize("change", ["changed", "removed"])
def test_files_that_are_not_those_published_stay_and_are_named(desk: Desk, tmp_path: Path, change: str) -> None:
    table = desk.home / "runs" / only_run(desk) / TABLE
    table.unlink() if change == "removed" else table.write_bytes(b"another table")
    done = archived(desk, tmp_path / "archive")
    assert done.damaged == (only_run(desk),)
    assert not done.runs
    assert at_home(desk) >= set(PUBLISHED) - {TABLE}
    assert not list((tmp_path / "archive").glob("*.gz"))


def test_a_damaged_archive_is_made_anew(desk: Desk, tmp_path: Path) -> None:
    target = tmp_path / "archive"
    target.mkdir()
    (target / f"{only_run(desk)}.tar.gz").write_bytes(b"\x1f\x8bcut off")
    assert archived(desk, target).runs == (only_run(desk),)


def test_an_archive_among_the_runs_is_refused(desk: Desk) -> None:
    with pytest.raises(SettingsError, match="name a folder"):
        archived(desk, desk.home / "runs" / "archive")


def test_the_command_says_what_it_did(desk: Desk, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["archive", "--home", str(desk.home), "--to", str(tmp_path / "archive"), "--older-than"]
    assert main([*words, "90d"]) == 0
    assert "1 runs archived" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main([*words, "soon"])
    assert "expected 90d" in capsys.readouterr().err
