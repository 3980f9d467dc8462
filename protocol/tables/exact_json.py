"""Numbers as people write them, read without rounding, and canonical JSON with them.

It does not know what the numbers mean, or how JSON is read (`protocol.outside_json`). Budgets have their own spelling
(`protocol.exact`).
"""

import json
import re
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

DECIMALS = 18
LARGEST = 10**18
_SHORT = 12  # characters

# The exponent is limited so that nobody can write a number that fills the memory.
_WRITTEN = r"[+-]?(?:[0-9]{1,300}(?:\.[0-9]{0,300})?|\.[0-9]{1,300})(?:[eE][+-]?[0-9]{1,3})?"
_NUMBER, _NUMBERS = re.compile(_WRITTEN), re.compile(f"(?:{_WRITTEN}\n)*+")


def write_json(value: Any) -> str:
    """Write canonical JSON: sorted keys, no blanks, exact numbers. Equal values give equal text."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{write_json(key)}:{write_json(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(write_json, value)) + "]"
    if isinstance(value, Fraction):
        return decimal_text(value)
    if isinstance(value, Decimal):
        return str(value)
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


def are_numbers(texts: Sequence[str]) -> bool:
    """Whether all texts are numbers; far quicker than one by one."""
    lines = "\n".join([*texts, ""])
    return lines.count("\n") == len(texts) and _NUMBERS.fullmatch(lines) is not None


def decimal_text(number: Fraction) -> str:
    """Write a number that `number_of` returned as the shortest decimal text."""
    scaled = number * 10**DECIMALS
    return fixed_point(scaled.numerator, DECIMALS).rstrip("0").rstrip(".")


def short_text(number: Fraction) -> str:
    """Write a number for people: exactly where that is short, else to six digits."""
    scaled = number * 10**DECIMALS
    text = decimal_text(number) if scaled.denominator == 1 else ""
    return text if 0 < len(text) <= _SHORT else f"{float(number):.6g}"


def fixed_point(units: int, decimals: int) -> str:
    """Write `units` / 10^decimals with exactly `decimals` decimals."""
    if not decimals:
        return str(units)
    whole, rest = divmod(abs(units), 10**decimals)
    return f"{'-' if units < 0 else ''}{whole}.{rest:0{decimals}d}"
