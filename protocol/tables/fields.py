"""Fields of one column: text becomes a code or a class of bad value.

It does not know rows, sources or the rules for bad values (`protocol.tables.coding`), or how a kind reads a text
(`protocol.tables.kinds`).
"""

from collections.abc import Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from protocol.tables.attributes import AttributeBase
from protocol.tables.kinds.attribute import POINT

_REMEMBERED = 1 << 15  # distinct texts per column
_UNKNOWN = np.iinfo(np.int32).min  # no code and no class


class FieldReader:
    """Coder of the texts of one column; a negative code is a class of bad value."""

    def __init__(self, attribute: AttributeBase, decimal: str = POINT) -> None:
        self._known = dict(attribute.spelled)  # and other texts, because columns repeat their values
        self._read = attribute.reading(decimal)

    def codes(self, texts: Sequence[str]) -> NDArray[np.int32]:
        code_of = self._known.get
        found = np.array([code_of(text, _UNKNOWN) for text in texts], np.int32)
        unknown = np.flatnonzero(found == _UNKNOWN)
        if unknown.size:
            new = [texts[place] for place in unknown.tolist()]
            found[unknown] = read = self._read(new)
            room = max(0, _REMEMBERED - len(self._known))
            self._known.update(zip(islice(new, room), read[:room].tolist(), strict=False))
        return found
