"""Words of others: made printable before a terminal or a log shows them, and names that could pass for another.

It does not know who says what.
"""

import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any
from unicodedata import category, normalize
from unicodedata import name as name_of

# Controls, invisible formatting (directions of writing, zero width), surrogates, private characters, line separators.
_UNSEEN = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
_FIRST_ASTRAL = 0x10000
_DIACRITICS = range(0x300, 0x370)
# Cyrillic and Greek letters and digits, above the Latin letters for which they can be taken; for the eye, not complete.
_LOOKS = str.maketrans(
    "АВЕЅІЈКМНОРСТУХӀаеорсухіјѕԁһӏԛԝкмтнвгьΑΒΕΖΗΙΚΜΝΟΡΤΥΧαβγεικνορτυχωη01258|ǀ",
    "ABESIJKMHOPCTYXlaeopcyxijsdhlqwkmthbrbABEZHIKMNOPTYXabyeiknoptuxwnolzsbll",
)
# What Unicode calls the Latin letters of phonetics and of other languages, beside the letter that each looks like.
_KINDS_OF_LETTERS = frozenset({"LATIN", "LETTER", "SMALL", "CAPITAL", "SCRIPT", "DOTLESS", "OPEN", "BARRED"}) | {
    *("INSULAR", "VISIGOTHIC", "BLACKLETTER", "LENIS", "LONG-LEGGED", "NEGATIVE", "SQUARED", "CIRCLED")
}
_LOOKS_OF_NAMES = {"ALPHA": "a", "IOTA": "i", "UPSILON": "u", "BETA": "b", "OMEGA": "w", "CHI": "x"}
_PAIRS = (("rn", "m"), ("vv", "w"), ("cl", "d"))  # of letters that pass for one


def printable(text: str, keep: str = "") -> str:
    """The text with each character that a terminal obeys or hides written as \\uXXXX, except those in `keep`."""
    if text.isprintable():
        return text
    return "".join(_escape(one) if is_unseen(one) and one not in keep else one for one in text)


def printable_json(value: Any, indent: int | None = None) -> str:
    """JSON that reads back as the same value, and is safe to show."""
    return printable(json.dumps(value, ensure_ascii=False, indent=indent, default=str), keep="\n")


def printable_lines(text: str) -> str:
    """Printable text of several lines; the further ones are indented, so that none passes for a line of its own."""
    return "\n  ".join(map(printable, text.splitlines()))


def is_unseen(character: str) -> bool:
    return category(character) in _UNSEEN


def checked_name(name: str) -> str:
    """The name, if all of it can be seen; raises ValueError."""
    if any(map(is_unseen, name)):
        raise ValueError("a name may hold no control characters and no invisible ones")
    return name


def alike(name: str, others: Iterable[str]) -> list[str]:
    """Those of the other names that a reader could take for this one: letters of another script, accents, marks."""
    return [other for other in others if other != name and _seen(other) == _seen(name)]


@lru_cache(maxsize=4096)
def _seen(name: str) -> str:
    """What is left of a name at a glance."""
    parts = "".join(map(_look, normalize("NFKD", name))).translate(_LOOKS).casefold()
    letters = (one for one in parts if category(one)[0] in "LMN" and ord(one) not in _DIACRITICS)
    seen = "".join(letters).replace("i", "l")
    for pair, letter in _PAIRS:
        seen = seen.replace(pair, letter)
    return seen


def _look(character: str) -> str:
    """The plain letter that a Latin letter looks like, by its name in Unicode; any other character as it is."""
    words = name_of(character, "").partition(" WITH ")[0].split()
    if character.isascii() or "LATIN" not in words:
        return character
    rest = [word for word in words if word not in _KINDS_OF_LETTERS]
    found = _LOOKS_OF_NAMES.get(rest[0], rest[0]) if len(rest) == 1 else ""
    return found if len(found) == 1 else character


def _escape(character: str) -> str:
    """The escape of JSON: two of four digits beyond the first 65,536 characters."""
    point = ord(character)
    if point < _FIRST_ASTRAL:
        return f"\\u{point:04x}"
    units = character.encode("utf-16-be")
    return f"\\u{units[:2].hex()}\\u{units[2:].hex()}"
