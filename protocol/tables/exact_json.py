"""Numbers and JSON as people write them, read without rounding and written in a canonical form.

It does not know what the numbers mean. Budgets have their own spelling (`protocol.exact`).
"""

import json
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

DECIMALS = 18
LARGEST = 10**18
_LONGEST_LITERAL = 100

# The exponent is limited so that nobody can write a number that fills the memory.
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,300}(?:\.[0-9]{0,300})?|\.[0-9]{1,300})(?:[eE][+-]?[0-9]{1,3})?")


def read_json(text: str | bytes) -> Any:
    """Parse JSON, keeping numbers exact (int or Decimal). Raises ValueError, also for a key that is given twice."""
    try:
        decoded = text.decode("utf-8-sig") if isinstance(text, bytes) else text
        return json.loads(
            decoded,
            parse_int=_short_number,
            parse_float=_short_number,
            parse_constant=_refuse_constant,
            object_pairs_hook=_without_duplicates,
        )
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start} is not UTF-8") from None
    except ArithmeticError:
        raise ValueError("the exponent of a number is too large") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def write_json(value: Any) -> str:
    """Write canonical JSON: sorted keys, no blanks, exact numbers. Equal values give equal text."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{write_json(key)}:{write_json(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(write_json, value)) + "]"
    if isinstance(value, Fraction):
        return decimal_text(value)
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def number_of(value: object) -> Fraction:
    """The number that a JSON text or a Python literal stands for. Raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ValueError("must be a number without quotes")
    number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not number.is_finite():
        raise ValueError("must be a finite number")
    # The exponent is checked first, because expanding 1e999999999 would fill the memory.
    if abs(number.adjusted()) <= 2 * DECIMALS:
        found = Fraction(number)
        if abs(found) <= LARGEST and (found * 10**DECIMALS).denominator == 1:
            return found
    raise ValueError(f"must lie between -10^{DECIMALS} and 10^{DECIMALS} and have at most {DECIMALS} decimals")


def is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None


def decimal_text(number: Fraction) -> str:
    """Write a number that `number_of` returned as the shortest decimal text."""
    scaled = number * 10**DECIMALS
    return fixed_point(scaled.numerator, DECIMALS).rstrip("0").rstrip(".")


def fixed_point(units: int, decimals: int) -> str:
    """Write `units` / 10^decimals with exactly `decimals` decimals."""
    if not decimals:
        return str(units)
    whole, rest = divmod(abs(units), 10**decimals)
    return f"{'-' if units < 0 else ''}{whole}.{rest:0{decimals}d}"


def _short_number(literal: str) -> int | Decimal:
    if len(literal) > _LONGEST_LITERAL:
        raise ValueError(f"a number is written with {len(literal)} characters, at most {_LONGEST_LITERAL} are read")
    return int(literal) if literal.lstrip("-").isdigit() else Decimal(literal)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number that can be used")


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {json.dumps(twice)} is given twice in one object")
    return found
