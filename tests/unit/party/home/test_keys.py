"""A party's own keys: made at the site, read by nobody else, changed in one step."""

import os

import pytest

from party.errors import SettingsError
from party.home import keys
from tests.support.small_runs import identity


def same(one: keys.OwnKeys, other: keys.OwnKeys) -> bool:
    return (one.identity.signing.to_bytes(), one.identity.exchange.to_bytes(), one.retired) == (
        other.identity.signing.to_bytes(),
        other.identity.exchange.to_bytes(),
        other.retired,
    )


def test_keys_are_kept_for_their_owner_alone(tmp_path):
    folder = tmp_path / "keys"
    made = keys.make(folder)
    assert same(keys.load(folder), made)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [(path.name, path.stat().st_mode & 0o777) for path in folder.iterdir()] == [("identity.json", 0o600)]


def test_keys_are_never_overwritten(tmp_path):
    made = keys.make(tmp_path)
    with pytest.raises(SettingsError, match="keys are never overwritten"):
        keys.make(tmp_path)
    assert same(keys.load(tmp_path), made)


def test_a_home_without_keys_says_how_to_make_them(tmp_path):
    with pytest.raises(SettingsError, match="`subn-party init`"):
        keys.load(tmp_path)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_keys_that_others_can_read_are_refused(tmp_path, mode):
    keys.make(tmp_path)
    os.chmod(tmp_path / "identity.json", mode)
    with pytest.raises(SettingsError, match=r"`chmod 600 .*identity\.json`"):
        keys.load(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"signing_key": "00ff", "exchange_key": "00", "retired": []}',
        '{"signing_key": 7, "exchange_key": "00", "retired": []}',
    ],
)
def test_a_damaged_file_is_refused_without_repeating_it(tmp_path, text):
    path = tmp_path / "identity.json"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(SettingsError, match="does not hold this party's keys") as refusal:
        keys.load(tmp_path)
    assert "00ff" not in str(refusal.value)


def test_a_rotation_can_be_broken_off_anywhere(tmp_path):
    first = keys.make(tmp_path)
    following = keys.successor(tmp_path)
    assert same(keys.successor(tmp_path), following)
    assert same(keys.load(tmp_path), first)
    assert keys.has_successor(tmp_path)
    keys.promote(tmp_path)
    assert same(keys.load(tmp_path), following)
    assert not keys.has_successor(tmp_path)


def test_old_receipts_stay_this_partys_own(tmp_path):
    signed_with = [keys.make(tmp_path).identity.signing.public]
    for _ in range(2):
        signed_with.insert(0, keys.successor(tmp_path).identity.signing.public)
        keys.promote(tmp_path)
    assert keys.load(tmp_path).signed_with == tuple(signed_with)


def test_keys_do_not_print(tmp_path):
    shown = repr(keys.OwnKeys(identity(0)))
    assert identity(0).signing.to_bytes().hex() not in shown
    assert identity(0).exchange.to_bytes().hex() not in shown
