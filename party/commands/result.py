"""What all commands share: what they say, and what they say of a data set that is not there.

It does not know any command.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from party.errors import SettingsError
from party.home.home import House


@dataclass(frozen=True)
class Said:
    """What a command found: as data for --json, as lines for people, and its exit code."""

    data: Any
    lines: Sequence[str] = ()
    code: int = 0


def unknown_dataset(house: House, name: str) -> SettingsError:
    known = ", ".join(house.settings.datasets)
    return SettingsError(f"{house.home.settings}: there is no data set {name!r}; known are {known}")
