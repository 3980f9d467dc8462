"""Parts of the curator that are replaced: clock, randomness, cryptography and smallest key, where plans are made.

It does not know how they are used.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from crypto.paillier.public import SMALLEST_BITS
from crypto.randomness import Stream
from curator.clock import Clock, system_clock
from curator.runs.planning import WorkOut, work_out_here
from curator.runs.run_crypto import PaillierCrypto, RunCrypto

Streams = Callable[
    [str], Stream
]  # returns a stream for each purpose: "run", "curator", "synthesis", "seal", "reference"


def system_streams(_purpose: str) -> Stream:
    return Stream.system()


@dataclass(frozen=True)
class Seams:
    clock: Clock = system_clock
    streams: Streams = system_streams
    crypto: RunCrypto = field(default_factory=PaillierCrypto)
    smallest_key: int = SMALLEST_BITS
    work_out: WorkOut = work_out_here
