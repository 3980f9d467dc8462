"""`subn-party start`: makes a home, enrols, offers its rows and serves; for containers, which have one command.

It does not know how these steps work. What fails is tried again until it succeeds, so that a mistake can be corrected
without a restart. The reason stands in the home meanwhile, where `subn-party ready` finds it.
"""

import json
import signal
import sys
import time
from argparse import Namespace
from typing import Any

from party.commands import setup
from party.commands.exit_codes import exit_code, words
from party.commands.result import Result
from party.commands.serve import serve
from party.files import write_file
from party.home import settings
from party.home.layout import Home
from party.logs import json_log
from protocol.errors import SubnError

RETRY_SECONDS = 5.0


def start(home: Home, chosen: Any) -> Result:
    while True:
        _end_on_signals()
        try:
            return _started(home, chosen)
        except (SubnError, OSError) as error:
            _note(home, error)
            json_log("cannot start", reason=words(error), seconds=RETRY_SECONDS)
        time.sleep(RETRY_SECONDS)


def _started(home: Home, chosen: Any) -> Result:
    unset = Namespace(name=None, curator=None, code=None, datasets=[], seams=chosen.seams)
    for step in (setup.init, setup.enrol, setup.offer):
        if step is not setup.enrol or settings.load(home).curator is None:
            json_log("set up", said=list(step(home, unset).lines))
    home.hindrance.unlink(missing_ok=True)
    return serve(home, chosen)


def _note(home: Home, error: Exception) -> None:
    """Keep the reason in the home. A home that cannot be written to has it in the log alone."""
    try:
        write_file(home.hindrance, json.dumps({"reason": words(error), "code": exit_code(error)}))
    except OSError as failure:
        json_log("cannot note the reason", reason=words(failure))


def _end_on_signals() -> None:
    """End between two attempts too: the first process of a container ignores signals that nobody handles."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
