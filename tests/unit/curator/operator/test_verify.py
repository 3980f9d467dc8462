"""`subn verify`: what is genuine passes, what was changed does not, and the files at hand are the published ones."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from crypto.signing import fingerprint
from curator.results.publication import PUBLISHED
from curator.subn import main
from protocol.messages.fingerprint_words import spoken
from tests.support.curator import Desk


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A finished run's folder, and its curator's key."""
    desk = Desk(tmp_path_factory.mktemp("curator"))
    run = desk.run(noise="distributed", update="accumulate", key_bits=3072)
    desk.finish(run)
    return desk.orchestrator.folder(run), desk.keys.signing.public.hex()


@pytest.fixture
def result(published: tuple[Path, str], tmp_path: Path) -> Path:
    return Path(shutil.copytree(published[0], tmp_path / "result"))


def verify(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> str:
    assert main(["verify", *map(str, arguments)]) == code
    said = capsys.readouterr()
    return said.out if code == 0 else said.err


def test_a_genuine_result_is_verified_with_all_its_files(
    result: Path, published: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    said = verify(capsys, result / "manifest.json", "--curator-key", published[1])
    assert said.startswith("verified: run ")
    assert "party-1 spent 1 of 1" in said
    assert "signed by 3 parties, with 15 signed receipts" in said
    assert ", ".join(sorted(PUBLISHED)) in said
    assert f"{published[1]} (as you gave it)" in said
    found = json.loads(verify(capsys, result / "manifest.json", "--json"))
    assert (found["verified"], found["curator_key_was_given"], found["epsilon"]) == (True, False, "1")


def test_a_manifest_alone_is_verified_and_says_that_no_file_was_at_hand(
    result: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = tmp_path / "alone.json"
    shutil.copy(result / "manifest.json", alone)
    said = verify(capsys, alone)
    assert "none at hand" in said
    assert "compare it, or give --curator-key" in said


def test_the_table_may_have_another_name(result: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    renamed = tmp_path / "patients.csv"
    (result / "table.csv").rename(renamed)
    assert "table.csv" in verify(capsys, result / "manifest.json", "--table", renamed)
    renamed.write_bytes(renamed.read_bytes().replace(b"yes", b"no", 1))
    said = verify(capsys, result / "manifest.json", "--table", renamed, code=1)
    assert said.startswith("subn: not verified: table.csv is not the file that was published")


def change_file(name: str) -> Callable[[Path], None]:
    return lambda result: (result / name).write_bytes((result / name).read_bytes() + b" ")


def change_manifest(old: bytes, new: bytes) -> Callable[[Path], None]:
    def change(result: Path) -> None:
        path = result / "manifest.json"
        data = path.read_bytes()
        assert old in data
        path.write_bytes(data.replace(old, new, 1))

    return change


@pytest.mark.parametrize(
    ("tamper", "words"),
    [
        (change_file("table.csv"), "table.csv is not the file"),
        (change_file("tables.json"), "tables.json is not the file"),
        (change_file("network.json"), "network.json is not the file"),
        (change_file("report.json"), "report.json is not the file"),
        (change_file("report.html"), "report.html is not the file"),
        (change_manifest(b'"spent":"1"', b'"spent":"1/2"'), "signature is not valid"),
        (change_manifest(b'"epsilon":"1"', b'"epsilon":"9"'), "signature is not valid"),
        (change_manifest(b'{"manifest"', b'{"manifesto"'), "not a manifest of version 1"),
    ],
)
def test_what_was_changed_is_not_verified(
    result: Path, tamper: Callable[[Path], None], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tamper(result)
    assert words in verify(capsys, result / "manifest.json", code=1)


def test_another_curators_manifest_is_not_verified(result: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "another curator" in verify(capsys, result / "manifest.json", "--curator-key", "ab" * 32, code=1)
    assert "another one than you named" in verify(capsys, result / "manifest.json", "--curator-key", "ab" * 16, code=1)


def test_a_fingerprint_names_the_curator_too(
    result: Path, published: tuple[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    shown = fingerprint(bytes.fromhex(published[1]))
    for told in (shown, shown.replace(" ", ""), spoken(shown)):
        said = verify(capsys, result / "manifest.json", "--curator-key", told)
        assert f"{published[1]} (as you gave it)" in said


def test_what_cannot_be_read_is_a_usage_error(result: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "cannot be read" in verify(capsys, result / "nowhere.json", code=2)
    assert "no such file" in verify(capsys, result / "manifest.json", "--table", result / "nowhere.csv", code=2)
    for told in ("key", "ab" * 31, "7ae0 3781"):
        assert "64 hexadecimal digits" in verify(capsys, result / "manifest.json", "--curator-key", told, code=2)
    table = result / "table.parquet"
    table.touch()
    assert "the manifest does not list the file 'table.parquet'" in verify(
        capsys, result / "manifest.json", "--table", table, code=1
    )
