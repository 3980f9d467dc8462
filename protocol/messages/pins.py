"""Pins: short hashes by which a party recognises its curator's key and certificate authority.

It does not know connections. Whatever arrives over an unauthenticated connection is believed only if it matches the
pin. The pin reaches the data owner another way: as the second half of the one-time code, or over the telephone.
"""

import re
from hashlib import sha256

from protocol.errors import OperatorError

PIN_DIGITS = 32
_PIN = re.compile(r"[0-9a-f]{32}", re.ASCII)
_CONTEXT = b"dp-subn v1 introduction"


def pin_of(curator_key: bytes, ca: str) -> str:
    """The first 128 bits of the hash of key and CA: finding a second pair with this pin takes 2^128 trials.

    `ca` is the PEM text as it is sent. It is empty where a public CA, which every machine trusts, issued the curator's
    certificate.
    """
    digest = sha256(_CONTEXT + len(curator_key).to_bytes(4, "big") + curator_key + ca.encode())
    return digest.hexdigest()[:PIN_DIGITS]


def joined(secret: str, pin: str) -> str:
    """The enrolment code that an operator hands to a data owner."""
    return f"{secret}.{pin}"


def parted(code: str) -> tuple[str, str]:
    """The two halves of a code: the secret for the curator, and the pin by which the party checks the curator."""
    secret, _, pin = code.strip().rpartition(".")
    if not secret:
        raise OperatorError(
            "this is not a whole enrolment code: expected two halves joined by a full stop, the second of which proves "
            "the curator; copy all of the code that `subn parties code` printed"
        )
    return secret, checked_pin(pin)


def checked_pin(pin: str) -> str:
    """The pin without the spaces and hyphens that people type; `OperatorError` if it is malformed."""
    digits = re.sub(r"[\s-]", "", pin).lower()
    if not _PIN.fullmatch(digits):
        raise OperatorError(
            f"this is not a curator's pin: expected {PIN_DIGITS} digits from 0-9 and a-f; copy all of them"
        )
    return digits
