"""The curator's keys at rest, and its settings."""

import pytest

from crypto.randomness import Stream
from curator.clock import system_clock
from curator.errors import SettingsError
from curator.home.keys import CuratorKeys, metrics_token
from curator.settings import Settings

STREAM = Stream.keyed(b"test", "keys")


@pytest.fixture
def keys(tmp_path) -> CuratorKeys:
    return CuratorKeys.create(tmp_path, STREAM)


def test_keys_are_for_their_owner_only(tmp_path, keys):
    files = sorted((tmp_path / "keys").iterdir())
    assert [path.name for path in files] == ["master.key", "signing.key"]
    assert [path.stat().st_mode & 0o777 for path in files] == [0o600, 0o600]
    assert (tmp_path / "keys").stat().st_mode & 0o777 == 0o700


def test_keys_that_are_there_are_kept(tmp_path, keys):
    again = CuratorKeys.create(tmp_path, STREAM)
    assert again.signing.public == keys.signing.public
    assert again.fingerprint == keys.fingerprint


def test_a_key_that_others_can_read_is_refused(tmp_path, keys):
    (tmp_path / "keys" / "master.key").chmod(0o640)
    with pytest.raises(SettingsError, match=r"accessible to others \(mode 640\): run chmod 600"):
        CuratorKeys.load(tmp_path)


def test_missing_keys_say_what_to_do(tmp_path):
    with pytest.raises(SettingsError, match=r"signing.key is missing: run `subn-curator init` first"):
        CuratorKeys.load(tmp_path)


@pytest.mark.parametrize(("name", "text"), [("signing.key", "ab" * 31), ("master.key", "cd" * 31), ("master.key", "x")])
def test_broken_keys_are_refused(tmp_path, keys, name, text):
    (tmp_path / "keys" / name).write_text(text)
    with pytest.raises(SettingsError, match="key"):
        CuratorKeys.load(tmp_path)


@pytest.mark.parametrize("text", ["", "ab" * 31, "x" * 64, "é"])
def test_a_metrics_token_that_is_not_as_written_is_refused(tmp_path, text):
    token = metrics_token(tmp_path)
    assert metrics_token(tmp_path) == token
    (tmp_path / "metrics-token").write_text(text)
    with pytest.raises(SettingsError, match=r"metrics-token does not hold 32 bytes in hexadecimal digits"):
        metrics_token(tmp_path)


def test_the_master_key_may_come_from_the_environment(tmp_path, keys):
    (tmp_path / "keys" / "master.key").unlink()
    other = CuratorKeys.load(tmp_path, "ab" * 32)
    assert other.master == b"\xab" * 32
    assert other.fingerprint != keys.fingerprint


def test_a_sealed_secret_opens_under_its_name_only(keys):
    sealed = keys.seal(b"p and q", "run-1", STREAM)
    assert b"p and q" not in sealed
    assert keys.open(sealed, "run-1") == b"p and q"
    for wrong, name in ((sealed, "run-2"), (sealed[:-1] + b"\0", "run-1"), (b"\0" + sealed[1:], "run-1")):
        with pytest.raises(SettingsError, match=f"the secret of {name} cannot be opened"):
            keys.open(wrong, name)


def test_no_two_seals_are_alike(keys):
    assert keys.seal(b"s", "run", STREAM) != keys.seal(b"s", "run", STREAM)


def test_another_master_key_does_not_open(keys):
    sealed = keys.seal(b"s", "run", STREAM)
    with pytest.raises(SettingsError, match="or this is not its master key"):
        CuratorKeys(keys.signing, bytes(32)).open(sealed, "run")


def test_keys_do_not_print(keys):
    assert keys.master.hex() not in repr(keys)
    assert repr(keys) == "CuratorKeys()"


# Settings


def test_settings_come_from_the_environment(tmp_path):
    found = Settings.read({"SUBN_CURATOR_HOME": str(tmp_path), "SUBN_CURATOR_STEP_SECONDS": "60", "HOME": "/nowhere"})
    assert (found.home, found.step_seconds, found.join_seconds) == (tmp_path, 60, 7 * 24 * 3600)
    assert found.store_url == f"sqlite:///{tmp_path}/curator.db"


def test_the_command_line_overrides_what_it_names(tmp_path):
    found = Settings.read({"SUBN_CURATOR_PORT": "1"}, port=2, host=None, database_url="postgresql://x/y")
    assert (found.port, found.host, found.store_url) == (2, "127.0.0.1", "postgresql://x/y")


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("SUBN_CURATOR_STEP_SECOND", "60", "SUBN_CURATOR_STEP_SECOND: Extra inputs are not permitted"),
        ("SUBN_CURATOR_STEP_SECONDS", "0", "SUBN_CURATOR_STEP_SECONDS: Input should be greater than or equal to 1"),
        ("SUBN_CURATOR_MASTER_KEY", "hunter2", "SUBN_CURATOR_MASTER_KEY: String should match pattern"),
    ],
)
def test_wrong_settings_are_named_and_not_repeated(name, value, complaint):
    with pytest.raises(SettingsError, match=complaint) as error:
        Settings.read({name: value})
    assert "hunter2" not in str(error.value)


def test_the_master_key_does_not_print():
    assert "ab" * 32 not in repr(Settings(master_key="ab" * 32))


def test_the_clock_counts_milliseconds_since_1970():
    assert 1_700_000_000_000 < system_clock() < 4_000_000_000_000
