"""Dependencies that give routes the name of the calling party or operator, or refuse the request.

It does not know how signatures and keys are checked (`curator.accounts.authentication`).
"""

import re
from typing import Annotated
from urllib.parse import unquote

from fastapi import Depends, Query, Request, Security
from fastapi.concurrency import run_in_threadpool
from fastapi.security import APIKeyHeader, HTTPAuthorizationCredentials, HTTPBearer

from curator.accounts.authentication import SignedRequest
from curator.errors import NotAuthenticated, WrongVersion
from curator.http.signed_requests import target_of
from curator.service import Service
from protocol.messages.http import Enrolment
from protocol.messages.signatures import (
    DIGEST_HEADER,
    NONCE_HEADER,
    PARTY_HEADER,
    SIGNATURE_HEADER,
    TIME_HEADER,
    VERSION_HEADER,
)
from protocol.messages.versions import SPOKEN, UNSAID, Versions, disagreement

NEWCOMER = "newcomer"  # in the state of a request whose sender has shown nothing but a key of its own
COOKIE = "subn_session"  # of an operator's browser
_SIGNED_HEADERS = PARTY_HEADER, TIME_HEADER, NONCE_HEADER, DIGEST_HEADER, SIGNATURE_HEADER
_AGENT = re.compile(r"dp-subn/([0-9A-Za-z.+-]{1,40})", re.ASCII)
_BEARER = HTTPBearer(auto_error=False, description="An operator's key: `subn-curator init` or `operator-key add`.")
_SIGNED = APIKeyHeader(
    name=SIGNATURE_HEADER,
    scheme_name="PartySignature",
    auto_error=False,
    description=(
        "A party's Ed25519 signature over method, target, digest of the body, name, time, nonce and version, with "
        f"{DIGEST_HEADER} (the body's SHA-256 in hexadecimal digits), {PARTY_HEADER}, {TIME_HEADER} (milliseconds "
        f"since 1970), {NONCE_HEADER} (16 to 64 letters, used once) and {VERSION_HEADER}."
    ),
)
_Signature = Annotated[str | None, Security(_SIGNED)]
Key = Annotated[HTTPAuthorizationCredentials | None, Security(_BEARER)]


def service_of(request: Request) -> Service:
    found: Service = request.app.state.service
    return found


async def admit_party(request: Request) -> str:
    """Return the name of the enrolled party that signed this request, and note it. The body is not read.

    A party with too many open requests is refused.
    """
    signed, requests = _signed_request(request), request.app.state.open_requests
    authentication = service_of(request).authentication
    async with requests.proving:
        sender = await run_in_threadpool(authentication.sender, signed)
    async with requests.admission(sender.name):
        await run_in_threadpool(authentication.admit, sender, signed)
        request.state.party = sender.name
        requests.enter(request.scope, sender.name)
    return sender.name


async def signed_party(request: Request, _signature: _Signature) -> str:
    """Return the name of the enrolled party that signed this request."""
    found: str | None = getattr(request.state, "party", None)
    return await admit_party(request) if found is None else found


async def newcomer(request: Request, _signature: _Signature, body: Enrolment) -> Enrolment:
    """Return an enrolment, after checking that it is signed with the key that it contains."""
    signed = _signed_request(request)
    if signed.sender != body.name:
        raise NotAuthenticated(f"{PARTY_HEADER} and the enrolment give different names: sign with the name that enrols")
    async with request.app.state.open_requests.proving:
        await run_in_threadpool(service_of(request).authentication.newcomer, signed, bytes.fromhex(body.signing_key))
    request.state.party, request.state.newcomer = body.name, True
    return body


async def admit_operator(request: Request) -> str:
    """Return the label of the operator's key, and note it. The body is not read.

    A browser's session may be used instead of the key, for reading only.
    """
    _check_version(request)
    credentials, token = await _BEARER(request), request.cookies.get(COOKIE)
    if credentials is not None:
        label: str = await run_in_threadpool(service_of(request).authentication.operator, credentials.credentials)
    elif token and request.method == "GET":
        label = (await run_in_threadpool(service_of(request).sessions.find, token)).label
    else:
        raise NotAuthenticated('an operator\'s key is needed: send "Authorization: Bearer KEY"')
    request.state.operator = label
    return label


async def operator(request: Request, _credentials: Key) -> str:
    """Return the label of the operator's key."""
    found: str | None = getattr(request.state, "operator", None)
    return await admit_operator(request) if found is None else found


async def anybody_of(request: Request, signature: _Signature, credentials: Key) -> str | None:
    """Return the calling party's name, or None for an operator."""
    if signature is not None:
        return await signed_party(request, signature)
    await operator(request, credentials)
    return None


def _signed_request(request: Request) -> SignedRequest:
    headers = request.headers
    _check_version(request)
    absent = [name for name in _SIGNED_HEADERS if not headers.get(name)]
    if absent:
        raise NotAuthenticated(f"the request is not signed: {', '.join(absent)} missing; parties sign every request")
    return SignedRequest(
        method=request.method,
        target=target_of(request.scope),
        body_digest=headers[DIGEST_HEADER],
        sender=_name(headers[PARTY_HEADER]),
        time_ms=headers[TIME_HEADER],
        nonce=headers[NONCE_HEADER],
        signature=headers[SIGNATURE_HEADER],
        version=headers.get(VERSION_HEADER, ""),
        software=_software(headers.get("User-Agent", "")),
    )


def _software(agent: str) -> str | None:
    found = _AGENT.match(agent)
    return found and found[1]


def _check_version(request: Request) -> None:
    """Refuse a request of another protocol version before it does harm: its messages would end a run."""
    said = request.headers.get(VERSION_HEADER)
    theirs = UNSAID if said is None else Versions.parse(said)
    if theirs is None:
        raise WrongVersion(f'{VERSION_HEADER}: expected a version of the protocol, "1", or a range of them, "1-2"')
    if SPOKEN.common(theirs) is None:
        raise WrongVersion(disagreement(theirs, SPOKEN))


def _name(header: str) -> str:
    """Decode a name. Headers hold ASCII, so names are sent percent-encoded."""
    try:
        name = unquote(header, errors="strict")
    except UnicodeDecodeError:
        name = ""
    if not name.isprintable() or not name:
        raise NotAuthenticated(f"{PARTY_HEADER} cannot be read: expected a name, percent-encoded in UTF-8")
    return name


Party = Annotated[str, Depends(signed_party)]
Operator = Annotated[str, Depends(operator)]
Newcomer = Annotated[Enrolment, Depends(newcomer)]
Anybody = Annotated[str | None, Depends(anybody_of)]
TheService = Annotated[Service, Depends(service_of)]

LARGEST_PAGE = 500
Limit = Annotated[int, Query(ge=1, le=LARGEST_PAGE)]
After = Annotated[str, Query(max_length=200, pattern=r"^[^\x00-\x1f]*$", description="`next` of the previous page")]
