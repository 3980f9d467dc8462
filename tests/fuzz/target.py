"""A decoder of outside bytes as a target: what it may raise, and bytes to begin with.

It does not know which decoders there are (`tests.fuzz.catalogue`), or how bytes are made.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from protocol.errors import PeerError

CORPUS = Path(__file__).parent / "corpus"
_LONGEST = 1000  # characters of a refusal; whoever sends garbage decides no more about what is logged


def is_clear(error: Exception) -> None:
    """Fail unless a refusal says something, and not more than a reader takes in."""
    assert 0 < len(str(error)) <= _LONGEST, f"{type(error).__name__} of {len(str(error))} characters"


def blames(error: PeerError, culprit: str) -> None:
    """Fail unless a refused message is the fault of the side that sent it."""
    assert error.culprit == culprit, error


@dataclass(frozen=True)
class Target:
    """`read` takes any bytes. It may raise the named refusals, each in one clear sentence, and nothing else."""

    name: str
    read: Callable[[bytes], object]
    refusals: tuple[type[Exception], ...]
    seeds: Callable[[], Sequence[bytes]]  # bytes that are accepted, or nearly

    def feed(self, data: bytes) -> bool:
        """Whether the bytes are accepted; any error that is no clear refusal leaves this function."""
        try:
            self.read(data)
        except self.refusals as error:
            is_clear(error)
            return False
        return True

    def kept(self) -> list[bytes]:
        """Bytes that once failed, or that reach far."""
        return [file.read_bytes() for file in sorted((CORPUS / self.name).glob("*")) if file.is_file()]
