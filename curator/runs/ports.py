"""What tests and experiments replace in the curator: time, randomness, cryptography, the smallest key.

It does not know what is done with them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from time import time

from crypto.paillier.public import SMALLEST_BITS
from crypto.randomness import Stream
from curator.runs.run_crypto import PaillierCrypto, RunCrypto

Clock = Callable[[], int]  # milliseconds since 1970, UTC

Streams = Callable[[str], Stream]  # a stream for every purpose: "run", "curator", "synthesis", "seal", "reference"


def system_clock() -> int:
    return int(time() * 1000)


def system_streams(_purpose: str) -> Stream:
    return Stream.system()


@dataclass(frozen=True)
class Seams:
    clock: Clock = system_clock
    streams: Streams = system_streams
    crypto: RunCrypto = field(default_factory=PaillierCrypto)
    smallest_key: int = SMALLEST_BITS
