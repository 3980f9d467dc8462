"""Versions of the protocol that a side speaks, and how two sides agree on a common version.

It does not know what a version changes. Each side sends its whole range in the header Subn-Version ("1" or "1-3") of
every request and every response. Both use the newest version that they have in common, so no extra exchange is needed.
"""

import re
from dataclasses import dataclass

_RANGE = re.compile(r"(\d{1,4})(?:-(\d{1,4}))?", re.ASCII)


@dataclass(frozen=True)
class Versions:
    oldest: int
    newest: int

    def __str__(self) -> str:
        return str(self.newest) if self.oldest == self.newest else f"{self.oldest}-{self.newest}"

    @classmethod
    def parse(cls, text: str) -> "Versions | None":
        """The range that the text names, or None if the text is not a range of versions."""
        found = _RANGE.fullmatch(text.strip())
        if found is None:
            return None
        oldest, newest = int(found[1]), int(found[2] or found[1])
        return cls(oldest, newest) if 1 <= oldest <= newest else None

    def common(self, other: "Versions") -> int | None:
        """The newest version that both ranges contain, or None."""
        newest = min(self.newest, other.newest)
        return newest if newest >= max(self.oldest, other.oldest) else None

    def in_words(self) -> str:
        return f"version {self.newest}" if self.oldest == self.newest else f"versions {self.oldest} to {self.newest}"


SPOKEN = Versions(oldest=1, newest=1)  # by this release
UNSAID = Versions(1, 1)  # assumed for callers that send no version header (release 1 and hand-written tools)


def disagreement(party: Versions, curator: Versions) -> str:
    """A sentence that names both ranges, and the side to bring up to date."""
    behind = "this party or this operator's command" if party.newest < curator.oldest else "the curator"
    return (
        f"the curator speaks {curator.in_words()} of the protocol, the caller {party.in_words()}: bring {behind} up to "
        "date (a newer release of dp-subn); nothing was done"
    )
