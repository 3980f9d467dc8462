"""The interface to exact tables over one party's coded rows, wherever the rows lie.

It does not know rows (`protocol.tables.counting`), engines (`party.engines`) or noise. The tables are confidential
until a mechanism has been applied to them.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from protocol.tables.domain import Domain, FoundEdges, Variables

AT_ONCE = 64  # tables that an engine counts by one scan, at least
_REMEMBERED = 1 << 19  # scores, a few hundred bytes each


class AnyRows(ABC):
    """Rows over a domain, known by their number and by every table over them. All implementations count the same."""

    engine = ""  # the kind of engine that counts; empty: this program

    def __init__(self, domain: Domain, count: int) -> None:
        self.domain = domain
        self.count = count
        self._scores: dict[Hashable, int] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.count} rows of {self.domain.count} variables)"

    @abstractmethod
    def over(self, domain: Domain) -> "AnyRows":
        """These rows over a domain with more generalised variables."""

    @abstractmethod
    def divided(self, domain: Domain, edges: FoundEdges) -> "AnyRows":
        """These rows over a domain in which some variables' codes are bins of neighbouring codes of these rows."""

    @abstractmethod
    def tables(self, several: Sequence[Variables]) -> list[NDArray[np.int64]]:
        """Count one table for each entry; a table has one axis per variable."""

    def table(self, variables: Variables) -> NDArray[np.int64]:
        """Count the rows with each combination of codes."""
        return self.tables([variables])[0]

    def flat_tables(self, several: Sequence[Variables]) -> NDArray[np.int64]:
        """Count tables of equally many cells: one row of cells for each entry."""
        return np.array([table.ravel() for table in self.tables(several)])

    def expect(self, several: Sequence[Variables]) -> None:  # noqa: B027 - nothing to prepare where counting is cheap
        """Take note of tables that are going to be asked for, one after the other."""

    def remembered(self, key: Hashable) -> int | None:
        """The score that was stored under this key, if any. It stays valid, because rows never change."""
        return self._scores.get(key)

    def remember(self, key: Hashable, score: int) -> None:
        if len(self._scores) < _REMEMBERED:
            self._scores[key] = score
