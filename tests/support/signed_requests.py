"""A request as the curator's answer names it, as a test reads it from the request."""

from urllib.parse import unquote

import httpx

from protocol.messages import signatures as a


def asked_text(request: httpx.Request) -> bytes:
    headers = request.headers
    said = (headers.get(name, "") for name in (a.TIME_HEADER, a.NONCE_HEADER, a.VERSION_HEADER))
    target, name = request.url.raw_path.decode(), unquote(headers.get(a.PARTY_HEADER, ""))
    text = a.request_text(request.method, target, headers.get(a.DIGEST_HEADER, ""), name, *said)
    return a.answered_request(text, headers.get(a.SIGNATURE_HEADER, ""))
