"""Which versions of the protocol a side speaks, and what two sides do that speak different ones.

It does not know what a version changes. Each side names its whole range in the header Subn-Version ("1", or "1-3") of
every request and every answer; both take the newest version that they have in common, so that nobody has to ask first.
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
        """None for what is no range of versions."""
        found = _RANGE.fullmatch(text.strip())
        if found is None:
            return None
        oldest, newest = int(found[1]), int(found[2] or found[1])
        return cls(oldest, newest) if 1 <= oldest <= newest else None

    def common(self, other: "Versions") -> int | None:
        """The newest version of both."""
        newest = min(self.newest, other.newest)
        return newest if newest >= max(self.oldest, other.oldest) else None

    def in_words(self) -> str:
        return f"version {self.newest}" if self.oldest == self.newest else f"versions {self.oldest} to {self.newest}"


SPOKEN = Versions(oldest=1, newest=1)  # by this release
UNSAID = Versions(1, 1)  # of who says nothing: as the first release did, and as tools made by hand do


def disagreement(party: Versions, curator: Versions) -> str:
    """Both ranges, and which side has to be brought up to date."""
    behind = "this party or this operator's command" if party.newest < curator.oldest else "the curator"
    return (
        f"the curator speaks {curator.in_words()} of the protocol, the caller {party.in_words()}: bring {behind} up to "
        "date (a newer release of dp-subn); nothing was done"
    )
