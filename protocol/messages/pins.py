"""How a party learns whom it talks to: the curator's key and certificate authority, bound to the code of its enrolment.

It does not know connections. What comes over a line that nobody vouches for is believed only if the pin fits it, and
the pin reaches the data owner another way: as the second half of the one-time code, or by voice.
"""

import re
from hashlib import sha256

from protocol.errors import OperatorError

PIN_DIGITS = 32
_PIN = re.compile(r"[0-9a-f]{32}", re.ASCII)
_CONTEXT = b"dp-subn v1 introduction"


def pin_of(curator_key: bytes, ca: str) -> str:
    """128 bits of the hash of both: a second pair with this pin costs 2^128 trials.

    `ca` is the PEM text as it is sent; empty where the curator's certificate is one that every machine trusts.
    """
    digest = sha256(_CONTEXT + len(curator_key).to_bytes(4, "big") + curator_key + ca.encode())
    return digest.hexdigest()[:PIN_DIGITS]


def joined(secret: str, pin: str) -> str:
    """The code that an operator hands to a data owner."""
    return f"{secret}.{pin}"


def parted(code: str) -> tuple[str, str]:
    """The secret, which is for the curator, and the pin, which is for the party to check the curator with."""
    secret, _, pin = code.strip().rpartition(".")
    if not secret:
        raise OperatorError(
            "this is no enrolment code: it has two halves joined by a point, the second of which proves the curator; "
            "copy all of it, as `subn parties code` printed it"
        )
    return secret, checked_pin(pin)


def checked_pin(pin: str) -> str:
    """The pin without the blanks and hyphens that people put into it."""
    digits = re.sub(r"[\s-]", "", pin).lower()
    if not _PIN.fullmatch(digits):
        raise OperatorError(f"this is no curator's pin: {PIN_DIGITS} digits 0-9 and a-f are expected; copy all of it")
    return digits
