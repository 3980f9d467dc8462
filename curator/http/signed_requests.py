"""Parts of a request that its sender signs, read from the request as it came.

It does not know whether the signature fits (`curator.accounts.authentication`).
"""

from urllib.parse import unquote

from starlette.datastructures import Headers
from starlette.types import Scope

from protocol.messages.signatures import (
    DIGEST_HEADER,
    NONCE_HEADER,
    PARTY_HEADER,
    SIGNATURE_HEADER,
    TIME_HEADER,
    VERSION_HEADER,
    answered_request,
    request_text,
)

_TOLD = DIGEST_HEADER, PARTY_HEADER, TIME_HEADER, NONCE_HEADER, VERSION_HEADER


def target_of(scope: Scope) -> str:
    """Return path and query exactly as they were sent."""
    path, query = scope["raw_path"].decode("latin-1"), scope["query_string"].decode("latin-1")
    return f"{path}?{query}" if query else path


def asked_of(scope: Scope) -> bytes | None:
    """Return the request as the curator's answer names it (`answered_request`), or None if no nonce comes with it.

    An answer so signed answers this request and no other.
    """
    headers = Headers(scope=scope)
    if NONCE_HEADER not in headers:
        return None
    body_digest, name, time_ms, nonce, version = (headers.get(header, "") for header in _TOLD)
    text = request_text(scope["method"], target_of(scope), body_digest, unquote(name), time_ms, nonce, version)
    return answered_request(text, headers.get(SIGNATURE_HEADER, ""))
