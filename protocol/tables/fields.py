"""Fields of one column: text becomes a code or a class of bad value.

It does not know rows, sources or the rules for bad values (`protocol.tables.coding`), or how a kind reads a text
(`protocol.tables.kinds`).
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from protocol.tables.attributes import AttributeBase
from protocol.tables.kinds.attribute import POINT, Reading

_REMEMBERED = 1 << 15  # distinct texts per column


class FieldReader:
    """Coder of the texts of one column; a negative code is a class of bad value."""

    def __init__(self, attribute: AttributeBase, decimal: str = POINT) -> None:
        self._codes = _Remembered(attribute.spelled, attribute.reading(decimal))

    def codes(self, texts: Sequence[str]) -> NDArray[np.int32]:
        return np.fromiter(map(self._codes.__getitem__, texts), dtype=np.int32, count=len(texts))


class _Remembered(dict[str, int]):
    """Cache of the codes of texts, because columns repeat their values."""

    def __init__(self, known: Mapping[str, int], read: Reading) -> None:
        super().__init__(known)
        self._read = read

    def __missing__(self, text: str) -> int:
        code = self._read(text)
        if len(self) < _REMEMBERED:
            self[text] = code
        return code
