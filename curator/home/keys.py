"""The curator's own keys: the signing key, and the master key that seals the secrets of runs at rest.

It does not know runs: the caller names what a secret is sealed for.
"""

from dataclasses import dataclass, field
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from crypto.errors import MalformedKey
from crypto.randomness import KEY_BYTES, Stream, derive_key
from crypto.signing import SigningKey
from curator.errors import SettingsError
from curator.files import write_file

SIGNING_FILE, MASTER_FILE = "signing.key", "master.key"
METRICS_TOKEN = "metrics-token"  # noqa: S105 - the name of a file
_NONCE_BYTES = 12


@dataclass(frozen=True)
class CuratorKeys:
    signing: SigningKey = field(repr=False)
    master: bytes = field(repr=False)

    @classmethod
    def create(cls, home: Path, stream: Stream) -> "CuratorKeys":
        """Make new keys, in files that only their owner can read. Existing keys are kept."""
        directory = home / "keys"
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name, secret in ((MASTER_FILE, stream.take(KEY_BYTES)), (SIGNING_FILE, SigningKey.generate().to_bytes())):
            if not (directory / name).exists():
                _write_secret(directory / name, secret)
        return cls.load(home)

    @staticmethod
    def exist(home: Path) -> bool:
        """Whether `create` has come to its end in this home."""
        return (home / "keys" / SIGNING_FILE).exists()

    @classmethod
    def rotate(cls, home: Path) -> "CuratorKeys":
        """Replace and destroy the signing key. The master key stays."""
        cls.load(home)  # raises an error of its own for a home without keys
        _write_secret(home / "keys" / SIGNING_FILE, SigningKey.generate().to_bytes())
        return cls.load(home)

    @classmethod
    def load(cls, home: Path, master_key: str = "") -> "CuratorKeys":
        """Load the keys. A `master_key` in hexadecimal digits replaces the key in the file."""
        directory = home / "keys"
        try:
            signing = SigningKey.from_bytes(_read_secret(directory / SIGNING_FILE))
        except MalformedKey as error:
            raise SettingsError(f"{directory / SIGNING_FILE}: {error}") from None
        master = bytes.fromhex(master_key) if master_key else _read_secret(directory / MASTER_FILE)
        if len(master) != KEY_BYTES:
            raise SettingsError(
                f"the master key has {len(master)} bytes, but {KEY_BYTES} bytes are expected: restore the original key"
            )
        return cls(signing, master)

    @property
    def fingerprint(self) -> str:
        """A digest that identifies the master key without revealing it."""
        return derive_key(self.master, b"master key fingerprint").hex()

    def seal(self, secret: bytes, name: str, stream: Stream) -> bytes:
        nonce = stream.take(_NONCE_BYTES)
        return nonce + self._cipher().encrypt(nonce, secret, name.encode())

    def open(self, sealed: bytes, name: str) -> bytes:
        try:
            return self._cipher().decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], name.encode())
        except InvalidTag:
            raise SettingsError(
                f"the secret of {name} cannot be opened: the store was changed, or this is not its master key"
            ) from None

    def _cipher(self) -> AESGCM:
        return AESGCM(derive_key(self.master, b"secrets of runs"))


def metrics_token(home: Path) -> str:
    """Return the token that gives Prometheus the metrics and nothing else. Make it when it is first needed."""
    path = home / METRICS_TOKEN
    if not path.exists():
        _write_secret(path, Stream.system().take(KEY_BYTES))
    return _read_secret(path).hex()


def _write_secret(path: Path, secret: bytes) -> None:
    write_file(path, secret.hex() + "\n")


def _read_secret(path: Path) -> bytes:
    try:
        mode = path.stat().st_mode & 0o777
        if mode & 0o077:
            raise SettingsError(f"{path} is accessible to others (mode {mode:o}): run chmod 600 {path}")
        secret = bytes.fromhex(path.read_text(encoding="ascii").strip())
    except FileNotFoundError:
        raise SettingsError(f"{path} is missing: run `subn-curator init` first") from None
    except ValueError:
        secret = b""
    if len(secret) != KEY_BYTES:
        raise SettingsError(f"{path} does not hold {KEY_BYTES} bytes in hexadecimal digits")
    return secret
