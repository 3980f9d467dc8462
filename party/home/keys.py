"""The party's own keys: made on its own disk, readable by nobody else, and changed in one step.

It does not know the curator or the messages that the keys sign.
"""

import json
import stat
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from crypto.errors import MalformedKey
from crypto.sealing import ExchangeKey
from crypto.signing import SigningKey, fingerprint
from party.errors import SettingsError
from party.files import move, write_file
from protocol.identity import Identity

CURRENT = "identity.json"
NEXT = "next-identity.json"  # announced to the curator, not yet confirmed by it


@dataclass(frozen=True)
class OwnKeys:
    identity: Identity
    retired: tuple[bytes, ...] = ()  # former public signing keys: old receipts carry their signatures

    @property
    def choosing(self) -> bytes:
        """The secret by which rows of a person are chosen (`party.persons`): it tells nothing of the signing key."""
        return blake2b(key=self.identity.signing.to_bytes(), person=b"rows of persons", digest_size=32).digest()

    @property
    def signed_with(self) -> tuple[bytes, ...]:
        """Every key that this party ever signed a receipt with."""
        return (self.identity.signing.public, *self.retired)


def make(folder: Path) -> OwnKeys:
    """Make the first keys of a party. Existing keys are never overwritten."""
    if (folder / CURRENT).exists():
        raise SettingsError(
            f"{folder / CURRENT} exists: keys are never overwritten; change them with `subn-party rotate`"
        )
    keys = OwnKeys(Identity(SigningKey.generate(), ExchangeKey.generate()))
    _write(folder, CURRENT, keys)
    return keys


def load(folder: Path) -> OwnKeys:
    return _read(folder / CURRENT)


def successor(folder: Path) -> OwnKeys:
    """The next keys, made once and kept until they are in force, so that a broken rotation can go on."""
    if not (folder / NEXT).exists():
        current = load(folder)
        following = OwnKeys(Identity(SigningKey.generate(), ExchangeKey.generate()), current.signed_with)
        _write(folder, NEXT, following)
    return _read(folder / NEXT)


def promote(folder: Path) -> None:
    """Put the announced keys in force."""
    move(folder / NEXT, folder / CURRENT)


def has_successor(folder: Path) -> bool:
    return (folder / NEXT).exists()


def _write(folder: Path, name: str, keys: OwnKeys) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    content = {
        "signing_key": keys.identity.signing.to_bytes().hex(),
        "exchange_key": keys.identity.exchange.to_bytes().hex(),
        "retired": [key.hex() for key in keys.retired],
    }
    write_file(folder / name, json.dumps(content))


def _read(path: Path) -> OwnKeys:
    if not path.exists():
        raise SettingsError(f"{path} is absent: make this party's keys with `subn-party init`")
    if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise SettingsError(f"{path} can be read by others: correct that with `chmod 600 {path}`")
    try:
        content = json.loads(path.read_text())
        identity = Identity(
            SigningKey.from_bytes(bytes.fromhex(content["signing_key"])),
            ExchangeKey.from_bytes(bytes.fromhex(content["exchange_key"])),
        )
        return OwnKeys(identity, tuple(bytes.fromhex(key) for key in content["retired"]))
    except (ValueError, KeyError, TypeError, RecursionError, MalformedKey):
        # The file's content is secret: the error repeats none of it.
        raise SettingsError(f"{path} does not hold this party's keys: restore it from your backup") from None


def peer_fingerprint(signing_key: bytes, exchange_key: bytes) -> str:
    """The fingerprint that two data owners compare, of both keys.

    Privacy: a false exchange key under a true signing key would open every mask.
    """
    return fingerprint(signing_key + exchange_key)


def own_fingerprint(own: OwnKeys) -> str:
    return peer_fingerprint(own.identity.signing.public, own.identity.exchange.public)
