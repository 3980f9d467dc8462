"""Complaints about a data owner's settings, in one sentence of the data owner's words.

It does not know in which file the settings are.
"""

from pydantic import ValidationError
from pydantic_core import ErrorDetails

_LONGEST_ECHO = 80
_SECRET = ("source", "query", "proxy")  # may hold passwords
_WHAT = {
    "missing": "is missing; add it",
    "extra_forbidden": "is not a setting; remove it or correct its spelling",
    "string_type": "expected a text in quotes",
    "int_type": "expected a whole number without quotes",
    "list_type": "expected a list in brackets",
    "tuple_type": "expected a list in brackets",
    "dict_type": "expected a section",
    "model_type": "expected a section",
    "model_attributes_type": "expected a section",
    "too_short": "is empty; expected at least one entry",
}
_LONGEST_PLACE = 200  # characters of the names that lead to a setting
_PATTERNS = {
    "url": "expected a URL that begins with http:// or https://",
    "key": "expected 64 hexadecimal digits",
    "names": "expected names such as 127.0.0.1 or subn.hospital.example:8470",
    "fingerprint": "expected 8 groups of 4 hexadecimal digits",
}


def sentence(error: ValidationError) -> str:
    """Return the weightiest complaint: the field, what was found, and what is expected."""
    first = min(error.errors(include_url=False), key=_rank)
    place = [str(part) for part in first["loc"] if not str(part).startswith(("literal[", "dict["))]
    return f"{'.'.join(place)[:_LONGEST_PLACE]}: {_found(first, place)}{_expected(first, place)}"


def _rank(complaint: ErrorDetails) -> int:
    """Rank a complaint: a misspelt name before the setting missing because of it, a mismatched form last."""
    if complaint["type"] == "extra_forbidden":
        return 0
    return 2 if complaint["type"] == "literal_error" and isinstance(complaint["input"], dict) else 1


def _found(complaint: ErrorDetails, place: list[str]) -> str:
    says_it_itself = complaint["type"] in ("missing", "extra_forbidden", "too_short", "value_error")
    if says_it_itself or isinstance(complaint["input"], dict) or place[-1] in _SECRET:
        return ""
    return f"found {repr(complaint['input'])[:_LONGEST_ECHO]}, "


def _expected(complaint: ErrorDetails, place: list[str]) -> str:
    if complaint["type"] == "string_pattern_mismatch":
        return next(_PATTERNS[name] for name in reversed(place) if name in _PATTERNS)
    text = _WHAT.get(complaint["type"], complaint["msg"])
    text = text.removeprefix("Value error, ").replace("Input should be", "expected")
    return text.replace("expected greater", "expected a number greater").replace(
        "expected less", "expected a number less"
    )
