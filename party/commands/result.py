"""The result that all commands share, and the error about a data set that does not exist.

It does not know any command.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from party.errors import SettingsError
from party.home.home import OpenHome


@dataclass(frozen=True)
class Result:
    """Findings of a command, as data for --json and as lines for people, and its exit code."""

    data: Any
    lines: Sequence[str] = ()
    code: int = 0


def unknown_dataset(opened: OpenHome, name: str) -> SettingsError:
    known = ", ".join(opened.settings.datasets)
    return SettingsError(f"{opened.home.settings}: there is no data set {name!r}; known are {known}")
