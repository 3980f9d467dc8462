"""The service's log: one JSON line per event on standard error.

It does not know what is logged; whoever logs keeps rows, counts and keys out.
"""

import json
import logging
import sys
from contextlib import suppress
from typing import Any

from party.ledger import utc_now


def json_log(event: str, **fields: Any) -> None:
    line = {"time": utc_now(), "event": event, **fields}
    with suppress(OSError):  # a full disk, or a pipe that nobody reads any more, must not end the service
        print(json.dumps(line, ensure_ascii=False, default=str), file=sys.stderr, flush=True)


class JsonLines(logging.Handler):
    """What libraries log, in the same form."""

    def emit(self, record: logging.LogRecord) -> None:
        error = {"error": logging.Formatter().formatException(record.exc_info)} if record.exc_info else {}
        json_log(record.getMessage(), level=record.levelname.lower(), logger=record.name, **error)


def log_libraries(level: int = logging.WARNING) -> None:
    root = logging.getLogger()
    root.handlers[:] = [JsonLines()]
    root.setLevel(level)
