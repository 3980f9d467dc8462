"""Tables over binary variables, counted from bit-packed columns by AND, popcount and Moebius transform.

It does not know domains, families or scores.

Cost: a set of s variables takes one AND and one popcount of n / 64 words for each of its non-empty subsets. Subsets
that several sets share are counted once. No operation depends on the values in the columns. At n = 10^8 rows a column
takes 12.5 MB, and one distinct subset takes about a millisecond.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

LARGEST_SET = 6  # beyond it 2^s popcounts of n / 64 words cost more than adding up n codes
_WORDS_AT_ONCE = 1 << 16  # 512 KB: words that are ANDed together stay in the cache
_LARGEST_KEY = 1 << 62


class BitColumns:
    """Columns of zeros and ones, 64 rows to a word. The columns are private data and are never printed."""

    def __init__(self, columns: Sequence[NDArray[np.unsignedinteger]], rows: int) -> None:
        self._rows = rows
        self._words = np.zeros((len(columns), -(-rows // 64)), dtype=np.uint64)
        as_bytes = self._words.view(np.uint8)
        for packed, column in zip(as_bytes, columns, strict=True):
            packed[: -(-rows // 8)] = np.packbits(column)

    def __repr__(self) -> str:
        return f"BitColumns({len(self._words)} columns of {self._rows} rows)"

    def handles(self, size: int) -> bool:
        # Overflow safety: a set's key is below columns^size and must fit into 63 bits.
        return size <= LARGEST_SET and len(self._words) ** size < _LARGEST_KEY

    def tables(self, sets: NDArray[np.intp]) -> NDArray[np.int64]:
        """Count the table over the columns of every row of `sets` (m sets of s columns): shape (m, 2, ..., 2)."""
        many, size = sets.shape
        all_ones = np.empty((many, 1 << size), dtype=np.int64)
        all_ones[:, 0] = self._rows
        for some in range(1, size + 1):
            places = list(combinations(range(size), some))
            bits = [sum(1 << (size - 1 - place) for place in chosen) for chosen in places]
            all_ones[:, bits] = self._count_all_ones(sets[:, np.array(places)])
        return _cells_from_all_ones(all_ones.reshape(many, *[2] * size))

    def _count_all_ones(self, subsets: NDArray[np.intp]) -> NDArray[np.int64]:
        """Count the rows that are one in all columns of a subset (last axis); each distinct subset is counted once."""
        base = len(self._words)
        keys = subsets[..., 0]
        for place in range(1, subsets.shape[-1]):
            keys = keys * base + subsets[..., place]
        distinct, where = np.unique(keys, return_inverse=True)
        prefixes, lasts = np.divmod(distinct, base)
        ends, blocks = np.unique(lasts, return_inverse=True)
        counts = np.zeros(distinct.size, dtype=np.int64)
        groups = list(_groups(prefixes, subsets.shape[-1] - 1, base))
        step = max(1, _WORDS_AT_ONCE // ends.size)
        for start in range(0, self._words.shape[1], step):
            words = self._words[:, start : start + step]
            _add_popcounts(words, words[ends], groups, blocks, counts)
        return counts[where].reshape(keys.shape)


def _groups(prefixes: NDArray[np.intp], size: int, base: int) -> Iterator[tuple[list[int], int, int]]:
    """Runs of neighbours with the same prefix: the columns of the prefix, and where the run starts and stops."""
    starts = np.flatnonzero(np.diff(prefixes, prepend=-1))
    for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), prefixes.size], strict=True):
        key = int(prefixes[start])
        yield [key // base**place % base for place in range(size)], start, stop


def _add_popcounts(
    words: NDArray[np.uint64],
    lasts: NDArray[np.uint64],
    groups: Sequence[tuple[list[int], int, int]],
    blocks: NDArray[np.intp],
    counts: NDArray[np.int64],
) -> None:
    both, ones = np.empty_like(lasts), np.empty(lasts.shape, dtype=np.uint8)
    for prefix, start, stop in groups:
        chosen = blocks[start:stop]
        first, many = int(chosen[0]), stop - start
        neighbours = int(chosen[-1]) - first + 1 == many  # blocks rise, so these are consecutive and need no copy
        ends = lasts[first : first + many] if neighbours else lasts[chosen]
        if prefix:
            common = np.bitwise_and.reduce(words[prefix], axis=0)
            ends = np.bitwise_and(ends, common, out=both[:many])
        # Overflow safety: 2^16 words at a time hold at most 2^22 ones.
        counts[start:stop] += np.bitwise_count(ends, out=ones[:many]).sum(axis=1, dtype=np.uint32)


def _cells_from_all_ones(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Apply the Moebius transform in place: along every axis, "zero or one" minus "one" leaves "zero"."""
    for axis in range(1, counts.ndim):
        either, one = np.moveaxis(counts, axis, 0)
        either -= one
    return counts
