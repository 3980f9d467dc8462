"""The results of a sweep: a file of JSON lines that only grows, so that a killed sweep goes on where it was.

It does not know what a run is.
"""

import fcntl
import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any

from protocol.errors import OperatorError


class Results:
    """Open for one sweep at a time; `found` holds every line by its key."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("a+b")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise OperatorError(f"{path}: another sweep is writing it; wait for its end") from None
        try:
            self.found = self._read()
        except BaseException:
            self._file.close()
            raise

    def _read(self) -> dict[str, dict[str, Any]]:
        self._file.seek(0)
        data = self._file.read()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            self._file.truncate(len(whole))  # a line that a kill cut off; its run is made again
        found = {}
        for number, line in enumerate(whole.splitlines(), start=1):
            try:
                record = json.loads(line)
                found[record["key"]] = record
            except (ValueError, TypeError, KeyError):
                raise OperatorError(f"{self._path}, line {number}: no result of a sweep; name another folder") from None
        return found

    def append(self, record: dict[str, Any]) -> None:
        """In the file for good when this returns."""
        self._file.write(json.dumps(record, ensure_ascii=False).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self.found[record["key"]] = record

    def __enter__(self) -> "Results":
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._file.close()
