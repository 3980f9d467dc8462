"""Exact numbers: budgets are fractions from the command line to the ledger.

It does not know the meaning of the numbers.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainSerializer

# Ratios may be longer, so that fractions computed from decimals (budgets, their parts) can be written and read again.
_EXACT = re.compile(r"[+-]?((\d{1,40}(\.\d{0,40})?|\.\d{1,40})([eE]-[0-4]?\d)?|\d{1,100}/\d{1,100})", re.ASCII)
_LARGEST = 10**100  # of an integer, as of a ratio's parts: longer ones cannot be written again
_LONGEST_ECHO = 60

Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]  # as `digest` writes it


def exact(value: object) -> Fraction:
    """A fraction from "0.8", "4/5", "1e-9", an integer or a fraction; `ValueError` for anything else, even a float."""
    if isinstance(value, Fraction):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < _LARGEST:
        return Fraction(value)
    if isinstance(value, str) and _EXACT.fullmatch(value.strip()):
        _, _, denominator = value.strip().partition("/")
        if not denominator or int(denominator):
            return Fraction(value.strip())
    raise ValueError(f'expected an exact number such as "0.8" or "4/5", found {repr(value)[:_LONGEST_ECHO]}')


Exact = Annotated[Fraction, BeforeValidator(exact), PlainSerializer(str, return_type=str)]


def allocate(amount: Fraction, weights: Sequence[int]) -> tuple[Fraction, ...]:
    """Shares of `amount` in proportion to `weights`, which add up to `amount` exactly."""
    total = sum(weights)
    shares = {weight: amount * weight / total for weight in set(weights)}
    return tuple(shares[weight] for weight in weights)


def proportional_counts(count: int, weights: Sequence[int]) -> tuple[int, ...]:
    """Numbers that add up to `count`, in proportion to `weights` (largest remainder, ties to the earlier)."""
    total = sum(weights)
    counts = [count * weight // total for weight in weights]
    by_remainder = sorted(range(len(weights)), key=lambda i: (-(count * weights[i] % total), i))
    for index in by_remainder[: count - sum(counts)]:
        counts[index] += 1
    return tuple(counts)


def canonical_json(value: Any) -> bytes:
    """The only spelling of a JSON value, so that equal values have equal hashes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
