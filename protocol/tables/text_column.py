"""Columns of text in which few texts recur in very many rows.

It does not know what the texts mean, or how tables are written.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class TextColumn:
    """Texts, and for every row the place of its text among them: each text is then quoted or read once."""

    texts: Sequence[str]
    places: NDArray[Any]

    @classmethod
    def of_rows(cls, texts: Sequence[str]) -> "TextColumn":
        return cls(texts, np.arange(len(texts)))

    def __len__(self) -> int:
        return len(self.places)

    def __iter__(self) -> Iterator[str]:
        return map(self.texts.__getitem__, self.places.tolist())
