"""Map errors to HTTP problems (RFC 9457): the only place that gives each class of errors its status.

It does not know when errors are raised.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from crypto import errors as crypto
from curator import errors as curator
from protocol import errors as protocol
from protocol.messages.http import OTHER_BYTES

MEDIA_TYPE = "application/problem+json"
_URN = "urn:dp-subn:problem:"
_LONGEST_PLACE, _MOST_COMPLAINTS = 100, 20
_log = logging.getLogger("curator.http")


@dataclass(frozen=True)
class Kind:
    status: int
    name: str
    title: str
    headers: Mapping[str, str] = field(default_factory=dict)


_AUTHENTICATE = {"WWW-Authenticate": "Bearer"}
LATER = {"Retry-After": "5"}

KINDS: dict[type[BaseException], Kind] = {
    protocol.SubnError: Kind(500, "internal", "The curator failed"),
    protocol.OperatorError: Kind(422, "cannot-work", "The request cannot work"),
    protocol.SchemaError: Kind(422, "schema", "The schema contradicts itself"),
    protocol.DataError: Kind(422, "data", "The data does not fit its schema"),
    protocol.PlanError: Kind(422, "plan", "The plan cannot be run, paid for or understood"),
    protocol.PriceError: Kind(422, "price", "The plan costs a party more than epsilon"),
    protocol.AdvisedAgainst: Kind(422, "advised-against", "The plan protects nobody, or its table would be useless"),
    protocol.ManifestError: Kind(422, "manifest", "The manifest does not prove what it claims"),
    protocol.PeerError: Kind(400, "refused-message", "The message was refused"),
    protocol.MalformedMessage: Kind(400, "malformed-message", "This is not a message of the protocol"),
    protocol.OutOfTurn: Kind(409, "out-of-turn", "The message is not expected now"),
    protocol.FailedCheck: Kind(422, "failed-check", "The message fails a check"),
    crypto.CryptoError: Kind(422, "cryptography", "A cryptographic check failed"),
    crypto.MalformedKey: Kind(422, "malformed-key", "The key fails a check"),
    crypto.MalformedCiphertext: Kind(422, "malformed-ciphertext", "The ciphertext fails a check"),
    crypto.WrongProof: Kind(422, "wrong-proof", "The proof does not hold"),
    crypto.BrokenSum: Kind(422, "broken-sum", "The contributions do not add up"),
    crypto.BrokenSeal: Kind(403, "broken-seal", "The signature or seal does not hold"),
    crypto.NoiseOutOfReach: Kind(422, "noise-out-of-reach", "The noise asked for is too wide"),
    crypto.Reused: Kind(500, "reused", "A one-time value was about to be used again"),
    curator.CuratorError: Kind(500, "internal", "The curator failed"),
    curator.NotAuthenticated: Kind(401, "not-authenticated", "The caller is not known", _AUTHENTICATE),
    curator.WrongClock: Kind(401, "wrong-clock", "The clocks differ too much", _AUTHENTICATE),
    curator.Replayed: Kind(401, "replayed", "The request has already been received", _AUTHENTICATE),
    curator.WrongVersion: Kind(400, "wrong-version", "The versions of the protocol differ"),
    curator.Forbidden: Kind(403, "forbidden", "The caller may not do this"),
    curator.NotFound: Kind(404, "not-found", "Not found"),
    curator.TooLarge: Kind(413, "too-large", "The body is too large"),
    curator.Conflict: Kind(409, "conflict", "The request contradicts the present state"),
    curator.OtherBytes: Kind(409, OTHER_BYTES, "Another answer to this step has been accepted"),
    curator.NotAsked: Kind(409, "not-asked", "The step does not wait for this party"),
    curator.RunEnded: Kind(409, "run-ended", "The run is over"),
    curator.Abandoned: Kind(408, "abandoned", "Nobody waited for the answer"),
    curator.Busy: Kind(503, "busy", "The curator is busy", LATER),
    curator.TooManyOpen: Kind(429, "too-many-open", "The party has too many requests open", LATER),
    curator.SettingsError: Kind(500, "settings", "The curator's settings cannot work"),
    curator.Displaced: Kind(503, "displaced", "Another curator serves the database now"),
    curator.StoreUnavailable: Kind(503, "store-unavailable", "The curator cannot store anything now", LATER),
    OSError: Kind(503, "disk-unavailable", "The curator's disk does not answer or is full", LATER),
}


def kind_of(error: BaseException) -> Kind:
    """Return the kind of the error's nearest class that has an entry in `KINDS`."""
    return next(KINDS[ancestor] for ancestor in type(error).__mro__ if ancestor in KINDS)


def problem(kind: Kind, detail: str, **more: Any) -> JSONResponse:
    content = {"type": _URN + kind.name, "title": kind.title, "status": kind.status, "detail": detail}
    known = {name: value for name, value in more.items() if value is not None}
    return JSONResponse(content | known, kind.status, dict(kind.headers), MEDIA_TYPE)


def handle_problems(app: FastAPI) -> None:
    """Turn every error that leaves a route into a problem."""
    for error in (protocol.SubnError, crypto.CryptoError, OSError):
        app.add_exception_handler(error, _known)
    app.add_exception_handler(RequestValidationError, _misread)
    app.add_exception_handler(HTTPException, _of_http)
    app.add_exception_handler(Exception, _unexpected)


async def _known(request: Request, error: Exception) -> JSONResponse:
    kind = kind_of(error)
    detail = f"{kind.title}: {error.strerror or error}" if isinstance(error, OSError) else str(error)
    if kind.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        _log.error("request failed", exc_info=error)
    path = request.path_params
    named = {name: getattr(error, name, None) for name in ("culprit", "problems")}
    return problem(kind, detail, **named, run=path.get("run"), step=path.get("step"))


async def _misread(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    found = error.errors()
    complaints = [_complaint(one) for one in found[:_MOST_COMPLAINTS]]
    more = [f"and {len(found) - _MOST_COMPLAINTS} more mistakes"] if len(found) > _MOST_COMPLAINTS else []
    return problem(Kind(422, "not-understood", "The request cannot be understood"), "; ".join(complaints + more))


def _complaint(found: Mapping[str, Any]) -> str:
    """Describe where the request is wrong and how. The value that was sent is not repeated."""
    place: Sequence[object] = found["loc"]
    named = ".".join(map(str, place))[:_LONGEST_PLACE]
    if found["type"] == "json_invalid":
        return f"body: this is not JSON that can be read: {found['ctx']['error']}"
    return f"{named}: {found['msg']}"


async def _of_http(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    phrase = HTTPStatus(error.status_code).phrase
    kind = Kind(error.status_code, phrase.lower().replace(" ", "-"), phrase, error.headers or {})
    return problem(kind, error.detail)


async def _unexpected(_request: Request, error: Exception) -> JSONResponse:
    _log.error("unexpected error", exc_info=error)
    return problem(KINDS[curator.CuratorError], "the curator failed unexpectedly: its log says where")
