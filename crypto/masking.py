"""Pairwise masks, which make every contribution look uniform and cancel in the sum of all contributions.

It does not know what is masked, nor anything about the peers but their numbers.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from gmpy2 import mpz
from numpy.typing import NDArray

from crypto.errors import BrokenSum
from crypto.paillier.public import STATISTICAL_BITS
from crypto.randomness import Stream, derive_key

TAG_BYTES = 16


def pair_key(secret: bytes, context: bytes) -> bytes:
    """Derive the key of one pair for one step; `context` names the run, the step and all that both must agree on."""
    return derive_key(secret, b"pair mask " + context)


def pair_tag(key: bytes) -> bytes:
    """Derive from a pair's key what both may show to see whether they hold the same; it tells nothing of the masks."""
    return derive_key(key, b"pair tag")[:TAG_BYTES]


def mask_words(pair_keys: Mapping[int, bytes], me: int, count: int) -> NDArray[np.uint64]:
    """Masks modulo 2^64. For each pair, the party with the smaller number adds the mask and the other subtracts it."""
    mask = np.zeros(count, dtype=np.uint64)
    for peer, key in pair_keys.items():
        words = Stream.keyed(key, b"words").words64(count)
        mask = mask + words if _adds(me, peer) else mask - words
    return mask


def mask_residues(pair_keys: Mapping[int, bytes], me: int, count: int, n: mpz) -> list[mpz]:
    """Masks modulo n, with the signs of `mask_words`."""
    mask = [mpz(0)] * count
    for peer, key in pair_keys.items():
        sign = 1 if _adds(me, peer) else -1
        residues = _residues(Stream.keyed(key, b"residues"), count, n)
        mask = [(total + sign * residue) % n for total, residue in zip(mask, residues, strict=True)]
    return mask


def hide(values: NDArray[np.int64], mask: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mask the values, modulo 2^64."""
    return values.astype(np.uint64) + mask


def reveal(contributions: Sequence[NDArray[np.uint64]], bound: int) -> NDArray[np.int64]:
    """Add up all masked contributions. Raises BrokenSum if a cell of the total exceeds `bound` in absolute value."""
    if len({len(contribution) for contribution in contributions}) != 1:
        lengths = [len(contribution) for contribution in contributions]
        raise BrokenSum(f"contributions have {lengths} cells and cannot be added; all must have the same number")
    words = np.zeros(len(contributions[0]), dtype=np.uint64)
    for contribution in contributions:
        words = words + contribution
    total = words.view(np.int64)
    if len(total) and not -bound <= int(total.min()) <= int(total.max()) <= bound:
        raise BrokenSum("the sum is out of bounds: a contribution is missing, repeated or was made for another step")
    return total


def _adds(me: int, peer: int) -> bool:
    if me == peer:
        raise ValueError(f"party {me} has no mask with itself")
    return me < peer


def _residues(stream: Stream, count: int, n: mpz) -> list[mpz]:
    length = (int(n.bit_length()) + STATISTICAL_BITS + 7) // 8
    data = stream.take(count * length)
    return [mpz.from_bytes(data[start : start + length], "big") % n for start in range(0, len(data), length)]
