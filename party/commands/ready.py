"""`subn-party ready`: asks the service of this home, on this machine, whether it is ready; for health checks.

It does not know what keeps a service from working: it repeats what the service says, or the reason for which
`subn-party start` could not start it.
"""

import time
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from ssl import SSLContext
from typing import Any
from urllib.parse import urlsplit

from party.commands.exit_codes import DONE, FAILED
from party.commands.result import Result
from party.home.layout import Home
from party.home.settings import load
from protocol.outside_json import read_json

_PATIENCE = 5.0  # seconds
_LARGEST = 1 << 16  # bytes of an answer
_LOOK_SECONDS = 0.5


def ready(home: Home, chosen: Any) -> Result:
    """Ask once, or until the service is ready, cannot start without somebody's help, or the time is over."""
    began = time.time()
    while True:
        found = _asked(home, since=began if chosen.wait else 0.0)
        if found.code != FAILED or time.time() - began >= chosen.wait:
            return found
        time.sleep(_LOOK_SECONDS)


def _asked(home: Home, since: float) -> Result:
    line = _line(home)
    try:
        line.request("GET", "/readyz")
        answer = line.getresponse()
        found = _said(read_json(answer.read(_LARGEST)))
    except (OSError, HTTPException, ValueError) as error:
        where = f"the service does not answer at {line.host}:{line.port} ({error}): start it with `subn-party serve`"
        reason, code = hindrance(home, since) or (where, FAILED)
        return Result({"status": "not ready", "reason": reason}, [f"not ready: {reason}"], code)
    finally:
        line.close()
    return Result(found, [": ".join(found.values())], DONE if answer.status == 200 else FAILED)


def _line(home: Home) -> HTTPConnection:
    local = load(home).local
    there = urlsplit(local.asked_at(local.port or _served_port(home)))
    secure = local.client_context(home.path)
    if isinstance(secure, SSLContext):
        return HTTPSConnection(there.hostname or "", there.port, timeout=_PATIENCE, context=secure)
    return HTTPConnection(there.hostname or "", there.port, timeout=_PATIENCE)


def hindrance(home: Home, since: float) -> tuple[str, int] | None:
    """Why the last attempt to start failed, if it was made after `since`: an older reason may be mended by now."""
    try:
        if home.hindrance.stat().st_mtime < since:
            return None
        found = read_json(home.hindrance.read_bytes()[:_LARGEST])
        return str(found["reason"]), int(found["code"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _served_port(home: Home) -> int:
    """The port that a service with `port = 0` was given, which it notes while it serves; 0 if none serves."""
    try:
        return urlsplit(home.address.read_text(encoding="ascii").strip()).port or 0
    except (OSError, ValueError):
        return 0


def _said(answer: Any) -> dict[str, str]:
    if not isinstance(answer, dict) or not isinstance(answer.get("status"), str):
        raise ValueError("the answer is not that of a party")
    return {name: str(answer[name]) for name in ("status", "reason") if name in answer}
