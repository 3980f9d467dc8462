"""`subn-curator serve`: serve parties and operators until stopped.

It does not know how a curator serves (`curator.server`).
"""

import argparse

from curator.commands.home import require_database, require_home
from curator.operations.logs import log_to_standard_error
from curator.server import listening
from curator.server import serve as serve_until_stopped
from curator.settings import Settings


def serve(settings: Settings, _chosen: argparse.Namespace) -> int:
    require_home(settings)
    require_database(settings)
    with listening(settings.host, settings.port) as listener:
        log_to_standard_error()
        serve_until_stopped(settings, listener)
    return 0
