"""Time in the curator: milliseconds since 1970, UTC.

It does not know events.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from time import time

Clock = Callable[[], int]


def system_clock() -> int:
    return int(time() * 1000)


def moment(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def moment_or_none(milliseconds: int | None) -> datetime | None:
    return None if milliseconds is None else moment(milliseconds)
