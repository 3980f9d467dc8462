"""Seals: bytes that only one recipient can open, bound to the place where they belong (HPKE, RFC 9180, base mode).

It does not know who carries the sealed bytes. A seal does not say who made it, so messages whose author matters are
signed as well.
"""

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from crypto.errors import BrokenSeal, MalformedKey

KEY_BYTES = 32
SEAL_BYTES = KEY_BYTES + 16  # by which sealed bytes are longer: a key made for them, and the mark of authenticity
_SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.CHACHA20_POLY1305)


class ExchangeKey:
    """The secret half of a key that others seal to; it is never printed."""

    def __init__(self, key: X25519PrivateKey) -> None:
        self._key = key

    @classmethod
    def generate(cls) -> "ExchangeKey":
        return cls(X25519PrivateKey.generate())

    @classmethod
    def from_bytes(cls, secret: bytes) -> "ExchangeKey":
        _check_length(secret)
        return cls(X25519PrivateKey.from_private_bytes(secret))

    @property
    def public(self) -> bytes:
        return self._key.public_key().public_bytes_raw()

    def to_bytes(self) -> bytes:
        """Return the secret itself. Store it where nobody else can read it."""
        return self._key.private_bytes_raw()

    def agree(self, public: bytes) -> bytes:
        """Compute the X25519 secret of both keys' owners. Raises MalformedKey if it would be no secret."""
        _check_length(public)
        try:
            return self._key.exchange(X25519PublicKey.from_public_bytes(public))
        except ValueError:  # with a point of small order, every secret is zero
            raise MalformedKey(
                "the exchange key is a point of small order, with which nothing is secret: another is needed"
            ) from None


# Any secret shows whether a public key is proper.
_ANY_KEY = ExchangeKey(X25519PrivateKey.from_private_bytes(bytes(range(KEY_BYTES))))


def info_for(run: str, step: str, sender: str, recipient: str) -> bytes:
    """Encode the place where sealed bytes belong. No two places share an encoding: every part carries its length."""
    parts = [part.encode() for part in (run, step, sender, recipient)]
    return b"dp-subn v1 seal" + b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def seal(recipient_public: bytes, info: bytes, plaintext: bytes) -> bytes:
    _check_length(recipient_public)
    try:
        return _SUITE.encrypt(plaintext, X25519PublicKey.from_public_bytes(recipient_public), info)
    except ValueError:
        raise MalformedKey(
            "the recipient's exchange key is a point of small order, which keeps nothing secret; ask for another key"
        ) from None


def open_sealed(private: bytes, info: bytes, sealed: bytes) -> bytes:
    """Return the plaintext. Raises BrokenSeal if the bytes were altered, or sealed for another recipient or place."""
    _check_length(private)
    try:
        return _SUITE.decrypt(sealed, X25519PrivateKey.from_private_bytes(private), info)
    except InvalidTag:
        raise BrokenSeal("the sealed bytes were altered, or sealed for another recipient or place") from None


def check_sealed(sealed: bytes, size: int) -> None:
    """Refuse what cannot hold a plaintext of this size. Only the recipient can tell whether the rest opens."""
    if len(sealed) != size + SEAL_BYTES:
        raise BrokenSeal(f"{len(sealed)} bytes hold no sealed {size}: expected {size + SEAL_BYTES}")
    try:
        check_public(sealed[:KEY_BYTES])
    except MalformedKey as error:
        raise BrokenSeal(f"the seal does not open for anybody: {error}") from None


def check_public(public: bytes) -> None:
    """Refuse an exchange key with which nothing is secret: of another length, or a point of small order."""
    _ANY_KEY.agree(public)


def _check_length(key: bytes) -> None:
    if len(key) != KEY_BYTES:
        raise MalformedKey(f"an exchange key has {KEY_BYTES} bytes, but this key has {len(key)}")
