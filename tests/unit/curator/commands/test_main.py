"""Setting a curator up from the command line, and the words for what cannot be."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

import httpx
import pytest

from crypto.signing import fingerprint
from curator.accounts.authentication import Authentication
from curator.accounts.registry import Registry
from curator.clock import system_clock
from curator.commands.main import main
from curator.errors import NotAuthenticated, SettingsError
from curator.home.keys import CuratorKeys
from curator.home.tls import client_context
from curator.server import listening
from curator.settings import Settings
from curator.store.store import Store
from protocol.messages.pins import parted


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, str]:
    assert main([*arguments, "--json"]) == 0
    found: dict[str, str] = json.loads(capsys.readouterr().out)
    return found


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(list(arguments)) == 2
    return capsys.readouterr().err


def is_valid(home: Path, key: str) -> bool:
    store = Store.open(Settings(home=home).store_url)
    try:
        Authentication(store, system_clock).operator(key)
    except NotAuthenticated:
        return False
    return True


def test_init_makes_keys_that_only_the_owner_reads_and_a_first_operators_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    found = told(capsys, "init", "--home", str(home))
    keys = CuratorKeys.load(home)
    assert found["curator_key"] == keys.signing.public.hex()
    assert found["fingerprint"] == fingerprint(keys.signing.public)
    assert is_valid(home, found["operator_key"])
    for path in (home / "keys").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert "set up already" in complaint(capsys, "init", "--home", str(home))
    assert CuratorKeys.load(home).signing.public == keys.signing.public


def test_a_home_that_is_made_twice_at_once_has_one_pair_of_keys_and_one_operators_key(tmp_path: Path) -> None:
    home = tmp_path / "home"
    command = [Path(sys.executable).with_name("subn-curator"), "init", "--home", home, "--json"]
    made = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(4)]
    said = [one.communicate(timeout=60) for one in made]
    assert sorted(one.returncode for one in made) == [0, 2, 2, 2]
    (found,) = (json.loads(text) for text, _ in said if text)
    assert found["curator_key"] == CuratorKeys.load(home).signing.public.hex()
    assert is_valid(home, found["operator_key"])


@pytest.mark.parametrize("lost", [["signing.key"], ["signing.key", "master.key"]])
def test_a_home_whose_making_was_cut_short_is_completed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lost: list[str]
) -> None:
    told(capsys, "init", "--home", str(tmp_path))
    certificate = (tmp_path / "tls/ca.pem").read_bytes()
    for name in ("curator.db", *(f"keys/{one}" for one in lost)):  # what a kill in between leaves
        (tmp_path / name).unlink()
    found = told(capsys, "init", "--home", str(tmp_path))
    assert found["curator_key"] == CuratorKeys.load(tmp_path).signing.public.hex()
    assert is_valid(tmp_path, found["operator_key"])
    assert (tmp_path / "tls/ca.pem").read_bytes() == certificate


def test_init_shows_the_operators_key_in_its_last_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "--home", str(tmp_path / "home")]) == 0
    assert is_valid(tmp_path / "home", capsys.readouterr().out.splitlines()[-1])


def test_operators_keys_are_added_listed_and_revoked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = ["--home", str(tmp_path)]
    told(capsys, "init", *home)
    key = told(capsys, "operator-key", "add", "anna", *home)["operator_key"]
    assert main(["operator-key", "list", *home]) == 0
    listed = capsys.readouterr().out
    assert [line.split()[-1] for line in listed.splitlines()] == ["first", "anna"]
    assert key not in listed
    assert is_valid(tmp_path, key)
    assert main(["operator-key", "revoke", "anna", *home]) == 0
    assert "'anna' is invalid now" in capsys.readouterr().out
    assert not is_valid(tmp_path, key)
    assert "anna" in complaint(capsys, "operator-key", "revoke", "anna", *home)


def test_a_code_is_made_for_a_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = ["--home", str(tmp_path)]
    told(capsys, "init", *home)
    made = told(capsys, "code", "north", *home)
    Registry(Store.open(Settings(home=tmp_path).store_url), system_clock).enrol(
        parted(made["code"])[0], "north", b"\x01" * 32, b"\x02" * 32
    )
    assert "there is a party called 'north'" in complaint(capsys, "code", "north", *home)
    assert main(["code", "south", *home]) == 0
    assert "for south, until 20" in capsys.readouterr().out


@pytest.mark.parametrize("is_there", [True, False])
def test_an_emptied_database_is_not_served(capsys, tmp_path, is_there):
    home = ["--home", str(tmp_path / "home")]
    assert main(["init", *home]) == 0
    database = tmp_path / "home" / "curator.db"
    database.unlink()
    if is_there:
        database.write_bytes(b"")
    assert f"{database} is absent or empty: restore the newest backup" in complaint(
        capsys, "serve", "--port", "0", *home
    )
    assert database.exists() == is_there


@pytest.mark.parametrize("command", [["code", "north"], ["operator-key", "list"], ["serve", "--port", "0"]])
def test_a_home_that_was_never_set_up_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    text = complaint(capsys, *command, "--home", str(tmp_path / "nowhere"))
    assert "subn-curator init" in text
    assert not (tmp_path / "nowhere").exists()


def test_a_database_that_is_away_is_a_failure_that_may_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = ["--home", str(tmp_path)]
    assert main(["init", *home]) == 0
    capsys.readouterr()
    monkeypatch.setenv("SUBN_CURATOR_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    assert main(["code", "north", *home]) == 1
    assert "what was confirmed is stored" in capsys.readouterr().err


def test_a_setting_that_cannot_be_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "SUBN_CURATOR_PORT" in complaint(capsys, "serve", "--home", str(tmp_path), "--port", "70000")


def test_a_home_that_cannot_be_made_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main(["init", "--home", str(tmp_path / "file" / "home")]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_a_port_in_use_is_one_clear_sentence_and_a_usage_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told(capsys, "init", "--home", str(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        text = complaint(capsys, "serve", "--home", str(tmp_path), "--port", str(port))
    assert text == (f"subn-curator: 127.0.0.1:{port} is in use by another program: stop it, or choose another --port\n")


def test_a_place_that_is_not_here_cannot_be_listened_at() -> None:
    with pytest.raises(SettingsError, match=r"cannot listen at 192\.0\.2\.1:0"):
        listening("192.0.2.1", 0)


def test_small_packets_do_not_wait_for_each_other() -> None:
    with listening("127.0.0.1", 0) as listener:
        assert listener.proto == socket.IPPROTO_TCP  # what asyncio looks at before it sets TCP_NODELAY


def test_a_served_curator_answers_and_stops_when_it_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key = told(capsys, "init", "--home", str(tmp_path))["operator_key"]
    command = [sys.executable, "-m", "curator.commands.main", "serve", "--home", str(tmp_path), "--port", "0"]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, stderr=log)
    try:
        url = wait_for_url(tmp_path / "log")
        secure = client_context((tmp_path / "tls" / "ca.pem").read_text())
        assert httpx.get(f"{url}/readyz", verify=secure).json()["status"] == "ready"
        headers = {"Authorization": f"Bearer {key}"}
        answer = httpx.get(f"{url}/v1/parties", headers=headers, verify=secure)
        assert answer.json() == {"items": [], "next": None}
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) in (0, -signal.SIGTERM)
    finally:
        process.kill()
        process.wait()
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert [line["event"] for line in lines] == ["listening", "request", "request", "stopping", "stopped"]
    assert key not in (tmp_path / "log").read_text()


def wait_for_url(log: Path) -> str:
    deadline = monotonic() + 30
    while monotonic() < deadline:
        for line in log.read_text().splitlines():
            found = json.loads(line)
            if found["event"] == "listening":
                return str(found["url"])
        sleep(0.05)
    raise AssertionError(log.read_text())


def test_the_environment_names_the_home(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "SUBN_CURATOR_HOME", str(tmp_path / "elsewhere"))
    assert told(capsys, "init")["home"] == str(tmp_path / "elsewhere")
