"""The words of this system, as `glossary.md` lists them, for the pages and for the test that they are used.

It does not know where that file is read from or where the words stand.
"""

import re
from dataclasses import dataclass

_ENTRY = re.compile(r"^\*\*(?P<name>[^*]+)\*\*\n: (?P<meaning>.+)(?:\n: Not: (?P<others>.+))?$", re.M)


@dataclass(frozen=True)
class Term:
    name: str
    meaning: str
    others: tuple[str, ...]  # words that are not used for it

    @property
    def anchor(self) -> str:
        return re.sub(r"[^a-z]+", "-", self.name)


def terms_in(text: str) -> tuple[Term, ...]:
    return tuple(
        Term(found["name"], found["meaning"], tuple(filter(None, (found["others"] or "").split(", "))))
        for found in _ENTRY.finditer(text)
    )
