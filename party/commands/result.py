"""Parts that all commands share: the result, the line shown while reading, and the error about an absent data set.

It does not know any command.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

from party.errors import SettingsError
from party.home.home import OpenHome
from protocol.services.reading_line import ReadingLine


@dataclass(frozen=True)
class Result:
    """Findings of a command, as data for --json and as lines for people, and its exit code."""

    data: Any
    lines: Sequence[str] = ()
    code: int = 0


def unknown_dataset(opened: OpenHome, name: str) -> SettingsError:
    known = ", ".join(opened.settings.datasets)
    return SettingsError(f"{opened.home.settings}: there is no data set {name!r}; known are {known}")


def reading_line() -> ReadingLine | None:
    """The line that shows how many rows have been read; None where standard error is no terminal."""
    return ReadingLine(sys.stderr.write, monotonic) if sys.stderr.isatty() else None
