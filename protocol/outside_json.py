"""JSON that others wrote: read in linear time, within limits of size, depth and number length, and every key once.

It does not know what the JSON says. Parties, curator, operators, browsers, backups and other programs on this machine
are read through this module alone (`tests/unit/both/test_outside_json.py` looks).
"""

import json
import re
from decimal import Decimal
from itertools import accumulate
from math import inf
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

LARGEST = 16 << 20  # characters or bytes, unless the caller allows more or less
LARGEST_FILE = 64 << 20  # of a run's published files
DEEPEST = 64
MOST_PARTS = 1 << 21  # values and keys; a parsed one takes up to some hundred bytes
MOST_KEYS = 1 << 18  # a complaint about one takes a thousand
LONGEST_NUMBER = 100  # characters
_LONGEST_COMPLAINT = 300  # characters
_MOST_MISTAKES = 1000

_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"?+', re.DOTALL)
_NO_BRACKETS = re.compile(r'"(?:[^"\\]++|\\.)*+"?+|[^\[\]{}"]++', re.DOTALL)
_LEVELS = {"[": 1, "{": 1, "]": -1, "}": -1}

Found = TypeVar("Found")


def read_json(text: str | bytes, largest: int = LARGEST, exact: bool = False, most_keys: int = MOST_KEYS) -> Any:
    """Read any JSON; with `exact` every number stays as it is written (int or Decimal). Raises ValueError."""
    decoded = _within_limits(text, largest, most_keys)
    number_of = _exact if exact else _plain
    try:
        return json.loads(
            decoded,
            parse_int=number_of,
            parse_float=number_of,
            parse_constant=_refuse_constant,
            object_pairs_hook=_without_duplicates,
        )
    except ArithmeticError:
        raise ValueError("a number has an exponent out of all proportion") from None


def read_as(kind: TypeAdapter[Found], text: str | bytes, largest: int = LARGEST, **choices: Any) -> Found:
    """Read JSON of one type. Raises ValueError, which pydantic's complaints are too.

    Pydantic reads numbers of up to 4,300 digits, and takes the last value of a key that is given twice.
    """
    return kind.validate_json(_within_limits(text, largest), **choices)


def complaint(error: ValueError, whole: str) -> str:
    """Say where the JSON is wrong, and how, without its values. `whole` names all of it."""
    if not isinstance(error, ValidationError):
        where, what = whole, str(error)
    elif error.error_count() > _MOST_MISTAKES:
        where, what = whole, f"{error.error_count():,} mistakes"
    else:
        first = error.errors(include_input=False, include_url=False)[0]
        where, what = ".".join(map(str, first["loc"])) or whole, first["msg"]
    return f"{where}: {what}"[:_LONGEST_COMPLAINT]


def _within_limits(text: str | bytes, largest: int, most_keys: int = MOST_KEYS) -> str:
    """Return the text, decoded, after checks that need no parsing."""
    if len(text) > largest:
        raise ValueError(f"it has {len(text):,} characters, and at most {largest:,} are read")
    try:
        decoded = text.decode("utf-8-sig") if isinstance(text, bytes) else text
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start} is not UTF-8") from None
    if sum(map(decoded.count, ",:[{")) > MOST_PARTS:
        raise ValueError(f"it has more than {MOST_PARTS:,} parts")
    if decoded.count(":") > most_keys and _STRING.sub("", decoded).count(":") > most_keys:
        raise ValueError(f"it has more than {most_keys:,} keys")
    if sum(map(decoded.count, "[{")) > DEEPEST:
        brackets = _NO_BRACKETS.sub("", decoded)
        if max(accumulate(map(_LEVELS.__getitem__, brackets)), default=0) > DEEPEST:
            raise ValueError("it is nested too deeply")
    return decoded


def _exact(literal: str) -> int | Decimal:
    return int(_short(literal)) if literal.lstrip("-").isdigit() else Decimal(_short(literal))


def _plain(literal: str) -> int | float:
    found = int(_short(literal)) if literal.lstrip("-").isdigit() else float(_short(literal))
    if abs(found) == inf:
        raise OverflowError
    return found


def _short(literal: str) -> str:
    if len(literal) > LONGEST_NUMBER:
        raise ValueError(f"a number is written with {len(literal)} characters, at most {LONGEST_NUMBER} are read")
    return literal


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number that can be used")


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"the key {json.dumps(key[:LONGEST_NUMBER])} is given twice in one object")
            seen.add(key)
    return found
