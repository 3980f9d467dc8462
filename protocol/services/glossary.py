"""Glossary terms parsed from `glossary.md`, for the pages and for the test that the words are used.

It does not know where the file is, or where its words are used.
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
