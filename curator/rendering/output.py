"""Output of the curator's commands: JSON for programs, words for people.

It does not know any command.
"""

import argparse
import json
from typing import Any


def say(chosen: argparse.Namespace, found: Any, words: str) -> int:
    print(json.dumps(found, ensure_ascii=False) if chosen.json else words, flush=True)
    return 0
