"""`subn-party serve`: taking part in runs until stopped.

It does not know how a party serves (`party.service`).
"""

from typing import Any

from party import service
from party.commands.result import Result
from party.home.layout import Home
from party.logs import json_log, log_libraries


def serve(home: Home, chosen: Any) -> Result:
    log_libraries()
    service.serve(home, json_log, **chosen.seams)
    return Result({"stopped": True})
