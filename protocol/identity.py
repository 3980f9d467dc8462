"""The identity of a party: its own keys.

It does not know runs.
"""

from dataclasses import dataclass, field

from crypto.sealing import ExchangeKey
from crypto.signing import SigningKey


@dataclass(frozen=True)
class Identity:
    """A party's own keys; their public halves stand in every plan's roster."""

    signing: SigningKey = field(repr=False)
    exchange: ExchangeKey = field(repr=False)
