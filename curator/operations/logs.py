"""Logs as JSON lines on standard error.

It does not know the events. Callers keep rows, keys and bodies out of the log.
"""

import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import Any

from protocol.errors import SubnError
from protocol.text import printable_json


class JsonLines(logging.Formatter):
    """A formatter that writes one JSON object per line. `extra={"fields": {...}}` become its members."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        line |= getattr(record, "fields", {})
        if record.exc_info and (error := record.exc_info[1]) is not None:
            # Privacy: the text of an unforeseen error might quote a value; its place in the code does not.
            line["error"] = str(error) if isinstance(error, SubnError | OSError) else type(error).__name__
            line["at"] = [f"{f.filename}:{f.lineno}" for f in reversed(traceback.extract_tb(error.__traceback__))]
        return printable_json(line)


def log_to_standard_error(level: int = logging.INFO) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for noisy in ("httpx", "httpcore", "asyncio"):
        logging.getLogger(noisy).setLevel(max(level, logging.WARNING))
    # Its warnings tell of requests that are no HTTP, one for each: strangers would fill the disk with them.
    logging.getLogger("uvicorn.error").setLevel(max(level, logging.ERROR))
