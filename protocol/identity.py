"""The identity of a party: its private keys for signing and key exchange.

It does not know runs.
"""

from dataclasses import dataclass, field

from crypto.sealing import ExchangeKey
from crypto.signing import SigningKey


@dataclass(frozen=True)
class Identity:
    """A party's own keys; every plan's roster holds their public halves."""

    signing: SigningKey = field(repr=False)
    exchange: ExchangeKey = field(repr=False)
