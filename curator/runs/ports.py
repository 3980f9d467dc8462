"""What tests and experiments replace in the curator: time, randomness, cryptography, the smallest key.

It does not know what is done with them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from crypto.paillier.public import SMALLEST_BITS
from crypto.randomness import Stream
from curator.clock import Clock, system_clock
from curator.runs.run_crypto import PaillierCrypto, RunCrypto

Streams = Callable[[str], Stream]  # a stream for every purpose: "run", "curator", "synthesis", "seal", "reference"


def system_streams(_purpose: str) -> Stream:
    return Stream.system()


@dataclass(frozen=True)
class Seams:
    clock: Clock = system_clock
    streams: Streams = system_streams
    crypto: RunCrypto = field(default_factory=PaillierCrypto)
    smallest_key: int = SMALLEST_BITS
