"""`subn-curator ready`: ask the service of this home, on this machine, whether it works; for health checks.

It does not know the causes of faults: it repeats the service's answer.
"""

import argparse
import ssl
import time
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any

from curator.errors import SettingsError
from curator.rendering.output import say
from curator.settings import Settings
from protocol.outside_json import read_json

_PATIENCE = 5.0  # seconds
_LOOK_SECONDS = 0.5
_LARGEST = 1 << 16  # bytes of an answer
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104 - where to ask, not where to listen


def ready(settings: Settings, chosen: argparse.Namespace) -> int:
    deadline = time.monotonic() + chosen.wait
    is_ready, found = ask(settings)
    while not is_ready and time.monotonic() < deadline:
        time.sleep(_LOOK_SECONDS)
        is_ready, found = ask(settings)
    say(chosen, found, ": ".join(found.values()))
    return 0 if is_ready else 1


def ask(settings: Settings) -> tuple[bool, dict[str, str]]:
    """Return whether the service is ready, and its answer, with a `reason` if it is not."""
    if not settings.port:
        raise SettingsError("port 0 means any free port: name the port that the service logged, with --port")
    host = _EVERYWHERE.get(settings.host, settings.host)
    line = _line(settings, host)
    try:
        line.request("GET", "/readyz")
        answer = line.getresponse()
        return answer.status == 200, _said(answer.status, read_json(answer.read(_LARGEST)))
    except (OSError, HTTPException, ValueError) as error:
        reason = (
            f"no curator serves {settings.home} at {host}:{settings.port} ({error}): start it with `subn-curator serve`"
        )
        return False, {"status": "not ready", "reason": reason}
    finally:
        line.close()


def _said(status: int, answer: Any) -> dict[str, str]:
    word = "status" if status == 200 else "detail"
    if not isinstance(answer, dict) or word not in answer:
        raise ValueError("it does not answer like a curator")
    return {"status": str(answer[word])} if status == 200 else {"status": "not ready", "reason": str(answer[word])}


def _line(settings: Settings, host: str) -> HTTPConnection:
    own = settings.home / "tls" / "server.pem"
    if not settings.speaks_tls or not own.exists():
        return HTTPConnection(host, settings.port, timeout=_PATIENCE)
    return HTTPSConnection(host, settings.port, timeout=_PATIENCE, context=_trusting(own))


def _trusting(certificate: Path) -> ssl.SSLContext:
    """Return a context that trusts exactly the certificate of this home, for any name."""
    context = ssl.create_default_context(cafile=str(certificate))
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context
