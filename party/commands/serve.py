"""`subn-party serve`: taking part in runs until stopped.

It does not know how a party serves (`party.service`).
"""

from typing import Any

from party import service
from party.commands.line import line_options
from party.commands.result import Said
from party.home.settings import Home
from party.logs import json_log, log_libraries


def serve(home: Home, _chosen: Any) -> Said:
    log_libraries()
    service.serve(home, json_log, **line_options)
    return Said({"stopped": True})
