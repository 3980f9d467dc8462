"""`subn-party ready`: asks the service of this home, on this machine, whether it is ready; for health checks.

It does not know what keeps a service from working: it repeats what the service says.
"""

from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import urlsplit

from party.commands.result import Result
from party.home.layout import Home
from party.home.settings import load
from protocol.outside_json import read_json

_LOOPBACK = "127.0.0.1"
_PATIENCE = 5.0  # seconds
_LARGEST = 1 << 16  # bytes of an answer


def ready(home: Home, _chosen: Any) -> Result:
    port = load(home).local.port or _served_port(home)
    line = HTTPConnection(_LOOPBACK, port, timeout=_PATIENCE)
    try:
        line.request("GET", "/readyz")
        answer = line.getresponse()
        found = _said(read_json(answer.read(_LARGEST)))
    except (OSError, HTTPException, ValueError) as error:
        reason = f"the service does not answer at {_LOOPBACK}:{port} ({error}): start it with `subn-party serve`"
        return Result({"status": "not ready", "reason": reason}, [f"not ready: {reason}"], 1)
    finally:
        line.close()
    return Result(found, [": ".join(found.values())], 0 if answer.status == 200 else 1)


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
