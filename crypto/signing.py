"""Signatures, which show who wrote a message and for which context (Ed25519).

It does not know runs, plans or parties.
"""

import hashlib

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from crypto.errors import BrokenSeal, MalformedKey

KEY_BYTES = 32
_PRIME = 2**255 - 19
_ORDER_8_HEIGHT = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
# The heights of the 8 points of small order.
_SMALL_ORDER_HEIGHTS = frozenset({0, 1, _PRIME - 1, _ORDER_8_HEIGHT, _PRIME - _ORDER_8_HEIGHT})


class SigningKey:
    """The secret half of an identity; it is never printed."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key

    @classmethod
    def generate(cls) -> "SigningKey":
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def from_bytes(cls, secret: bytes) -> "SigningKey":
        if len(secret) != KEY_BYTES:
            raise MalformedKey(f"a signing key has {KEY_BYTES} bytes, but this key has {len(secret)}")
        return cls(Ed25519PrivateKey.from_private_bytes(secret))

    @property
    def public(self) -> bytes:
        return self._key.public_key().public_bytes_raw()

    def to_bytes(self) -> bytes:
        """Return the secret itself. Store it where nobody else can read it."""
        return self._key.private_bytes_raw()


def sign(key: SigningKey, context: bytes, message: bytes) -> bytes:
    """Sign a message; the signature is invalid in any other context."""
    return key._key.sign(_framed(context, message))


def verify(public: bytes, context: bytes, message: bytes, signature: bytes) -> None:
    """Raise BrokenSeal unless the owner of `public` signed this message in this context."""
    if len(public) != KEY_BYTES:
        raise MalformedKey(f"a public signing key has {KEY_BYTES} bytes, but this key has {len(public)}")
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, _framed(context, message))
    except InvalidSignature:
        raise BrokenSeal("the signature was not made with this key for this message") from None


def check_public(public: bytes) -> None:
    """Refuse a key of small order: a single signature under such a key would verify for any message."""
    height = int.from_bytes(public, "little") & ((1 << 255) - 1)
    if height % _PRIME in _SMALL_ORDER_HEIGHTS:
        raise MalformedKey("the key is one of the few points whose signatures prove nothing")


def fingerprint(public: bytes) -> str:
    """Return 128 bits of the key's hash, in groups of four digits, for two people to compare on the phone."""
    digits = hashlib.sha256(b"dp-subn v1 fingerprint" + public).hexdigest()[:32]
    return " ".join(digits[start : start + 4] for start in range(0, len(digits), 4))


def _framed(context: bytes, message: bytes) -> bytes:
    # Without the length, two different pairs (context, message) could join to the same bytes.
    return b"dp-subn v1 signature" + len(context).to_bytes(4, "big") + context + message
