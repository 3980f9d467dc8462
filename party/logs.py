"""The service's log: one JSON line per event on standard error.

It does not know what is logged: callers keep rows, counts and keys out.
"""

import logging
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from protocol.errors import SubnError
from protocol.text import printable_json

Log = Callable[..., None]  # called with an event and its fields


def silent(_event: str, **_fields: Any) -> None:
    """Log nothing."""


def json_log(event: str, **fields: Any) -> None:
    line = {"time": utc_now(), "event": event, **fields}
    with suppress(OSError):  # a full disk or a closed pipe must not end the service
        print(printable_json(line), file=sys.stderr, flush=True)


def places(error: BaseException) -> list[str]:
    """File and line of every frame of an error. Privacy: never its text, which might quote a value of a table."""
    return [f"{frame.filename}:{frame.lineno}" for frame in reversed(traceback.extract_tb(error.__traceback__))]


class JsonLines(logging.Handler):
    """Write what libraries log in the form of `json_log`."""

    def emit(self, record: logging.LogRecord) -> None:
        error = {}
        if record.exc_info and record.exc_info[1] is not None:
            found = record.exc_info[1]
            error = {"error": str(found) if isinstance(found, SubnError) else type(found).__name__, "at": places(found)}
        json_log(record.getMessage(), level=record.levelname.lower(), logger=record.name, **error)


def log_libraries(level: int = logging.WARNING) -> None:
    root = logging.getLogger()
    root.handlers[:] = [JsonLines()]
    root.setLevel(level)


def utc_now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
