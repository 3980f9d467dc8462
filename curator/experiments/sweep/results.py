"""Results of a sweep: a file of JSON lines that only grows, so that a killed sweep can be resumed.

It does not know runs.
"""

import fcntl
import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any

from protocol.errors import OperatorError

RESULTS = "results.jsonl"


class Results:
    """An open results file, which one sweep at a time may use. `found` holds every line by its key."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("a+b")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise OperatorError(f"{path}: another sweep is writing this file: wait until it has ended") from None
        try:
            self.found = self._read()
        except BaseException:  # whatever stops the reading, also an interrupt, must not leave the file open
            self._file.close()
            raise

    def _read(self) -> dict[str, dict[str, Any]]:
        self._file.seek(0)
        data = self._file.read()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            self._file.truncate(len(whole))  # drop a line that a kill cut off; its run is made again
        found = {}
        for number, line in enumerate(whole.splitlines(), start=1):
            try:
                record = json.loads(line)
                found[record["key"]] = record
            except (ValueError, TypeError, KeyError):
                raise OperatorError(
                    f"{self._path}, line {number}: this line is not the result of a sweep; name another folder"
                ) from None
        return found

    def append(self, record: dict[str, Any]) -> None:
        """Add a result. It is on disk when this function returns."""
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
