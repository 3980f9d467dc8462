"""The persons behind the rows of a source: repeated keys, rows without a key, and a bound on the rows of a person.

It does not know what rows hold besides the key, or how sources are read. The argument is in
`protocol/privacy/people.md`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from party.home.settings import Dataset
from protocol.errors import DataError
from protocol.tables.attributes import quoted
from protocol.tables.batches import Batch
from protocol.tables.coding import Problem
from protocol.tables.domain import Codes

TWICE = "a person who has a row already"
UNNAMED = "a row without its person's key"
_TO_DO = {
    TWICE: "correct it, or set rows_per_person in party.toml",
    UNNAMED: "correct it",
}
_KEY_BYTES = 16
_HASH = np.dtype(f"V{_KEY_BYTES}")


@dataclass(frozen=True)
class PersonsFound:
    """What the person keys of a table say: how many persons it has, and how many of its rows take part."""

    persons: int
    bound: int  # rows of a person that take part at most
    rows: int  # that take part


class Persons:
    """The person keys of all rows, kept as 128-bit hashes, which suffice to find repeated keys."""

    def __init__(self, header: Sequence[str], dataset: Dataset, source: str) -> None:
        self.column, self._bound = dataset.person_key or "", dataset.rows_per_person
        if dataset.person_key is not None and list(header).count(self.column) != 1:
            raise DataError(f"{source}: the person key {quoted(self.column)} names no single column; correct its name")
        self._place = None if dataset.person_key is None else list(header).index(self.column)
        self._hashes = bytearray()
        self._empty: list[int] = []

    def noting(self, batches: Iterable[Batch]) -> Iterable[Batch]:
        """Pass the batches on, and note the key of each row."""
        return batches if self._place is None else self._noted(batches, self._place)

    def _noted(self, batches: Iterable[Batch], place: int) -> Iterator[Batch]:
        before = 0
        for batch in batches:
            column, hashes = batch.columns[place], np.empty(batch.rows, _HASH)
            hashes[batch.fitting] = column.spread(np.frombuffer(b"".join(map(_hash, column.texts)), _HASH))
            empty = batch.fitting[column.spread(np.array([not text for text in column.texts], np.bool_))].tolist()
            for row, fields in batch.misfits.items():
                key = fields[place] if place < len(fields) else ""
                hashes[row] = np.frombuffer(_hash(key), _HASH)[0]
                empty += [] if key else [row]
            # A row without a key gets a key of its own (its number), so that two such rows do not count as one person.
            for row in sorted(empty):
                self._empty.append(before + row + 1)
                hashes[row] = np.frombuffer(_hash(f"\0{before + row + 1}"), _HASH)[0]
            self._hashes += hashes.tobytes()
            before += batch.rows
            yield batch

    def first_bad(self) -> tuple[int, str] | None:
        """The first row that cannot take part, and what to do about it."""
        found = [(int(row) + 1, TWICE) for row in self._repeated[:1]] + [(row, UNNAMED) for row in self._empty[:1]]
        first = min(found, default=None)
        return None if first is None else (first[0], f"{first[1]}; {_TO_DO[first[1]]}")

    def problems(self) -> list[Problem]:
        found = [Problem(self.column, TWICE, len(self._repeated)), Problem(self.column, UNNAMED, len(self._empty))]
        return [problem for problem in found if problem.count]

    def found(self) -> PersonsFound | None:
        """The numbers of persons and of rows that take part; None without a person key, or if no row can take part."""
        if self._place is None or self.first_bad() is not None:
            return None
        bound = self._bound or 1
        return PersonsFound(self._rows_of.size, bound, int(np.minimum(self._rows_of, bound).sum()))

    def bounded(self, codes: Sequence[Codes], secret: bytes) -> list[Codes]:
        """The columns without the rows of a person beyond the settings' bound.

        Privacy: which rows of a person stay follows from the secret, the person's key and the number of the person's
        rows, never from what the rows hold. How many rows stay depends on no value either.
        """
        if self._place is None or self._bound is None:
            return list(codes)
        kept = np.ones(self._persons.size, dtype=np.bool_)
        in_order = np.argsort(self._persons, kind="stable")
        ends = np.cumsum(self._rows_of)
        for person in np.flatnonzero(self._rows_of > self._bound):
            own = in_order[ends[person] - self._rows_of[person] : ends[person]]
            kept[own[self._order(own, secret)[self._bound :]]] = False
        return [column[kept] for column in codes]

    def _order(self, own: NDArray[np.intp], secret: bytes) -> NDArray[np.intp]:
        """The places of a person's rows in the order in which they are chosen."""
        key = self._keys[own[0]].tobytes()
        ranks = [
            blake2b(key + place.to_bytes(8, "big"), key=secret, digest_size=16).digest() for place in range(own.size)
        ]
        return np.array(sorted(range(own.size), key=ranks.__getitem__), dtype=np.intp)

    @cached_property
    def _keys(self) -> NDArray[np.void]:
        return np.frombuffer(bytes(self._hashes), _HASH)

    @cached_property
    def _unique(self) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
        """The first row of each person, the person of each row, and the number of each person's rows."""
        _, first, persons, rows = np.unique(self._keys, return_index=True, return_inverse=True, return_counts=True)
        return first, persons, rows

    @property
    def _persons(self) -> NDArray[np.intp]:
        return self._unique[1]

    @property
    def _rows_of(self) -> NDArray[np.intp]:
        return self._unique[2]

    @cached_property
    def _repeated(self) -> NDArray[np.intp]:
        """The rows whose key occurs in an earlier row, where the settings allow a person only one."""
        again = np.ones(self._keys.size, dtype=np.bool_)
        again[self._unique[0]] = False
        return np.flatnonzero(again & (self._bound is None))


def _hash(key: str) -> bytes:
    return blake2b(key.encode(), digest_size=_KEY_BYTES).digest()
