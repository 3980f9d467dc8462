"""Output of the curator's commands: JSON for programs, words for people.

It does not know any command.
"""

import argparse
from typing import Any

from protocol.text import printable, printable_json


def say(chosen: argparse.Namespace, found: Any, *lines: str, indent: int | None = None) -> int:
    """Print what was found, or its lines; whatever others wrote into them, each is printed as one line."""
    print(printable_json(found, indent) if chosen.json else "\n".join(map(printable, lines)), flush=True)
    return 0
