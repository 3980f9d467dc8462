"""Dependencies that give routes the name of the calling party or operator, or refuse the request.

It does not know how signatures and keys are checked (`curator.accounts.authentication`).
"""

import re
from typing import Annotated, Any
from urllib.parse import unquote

from fastapi import Depends, Query, Request, Security
from fastapi.concurrency import run_in_threadpool
from fastapi.security import APIKeyHeader, HTTPAuthorizationCredentials, HTTPBearer

from curator.accounts.authentication import SignedRequest
from curator.errors import NotAuthenticated, WrongVersion
from curator.service import Service
from protocol.messages.http import Enrolment
from protocol.messages.signatures import (
    NONCE_HEADER,
    PARTY_HEADER,
    SIGNATURE_HEADER,
    TIME_HEADER,
    VERSION_HEADER,
)
from protocol.messages.versions import SPOKEN, UNSAID, Versions, disagreement

COOKIE = "subn_session"  # of an operator's browser
_AGENT = re.compile(r"dp-subn/([0-9A-Za-z.+-]{1,40})", re.ASCII)
_BEARER = HTTPBearer(auto_error=False, description="An operator's key: `subn-curator init` or `operator-key add`.")
_SIGNED = APIKeyHeader(
    name=SIGNATURE_HEADER,
    scheme_name="PartySignature",
    auto_error=False,
    description=(
        f"A party's Ed25519 signature over method, target, body, name, time, nonce and version, with {PARTY_HEADER}, "
        f"{TIME_HEADER} (milliseconds since 1970), {NONCE_HEADER} (16 to 64 letters, used once) and {VERSION_HEADER}."
    ),
)
_Signature = Annotated[str | None, Security(_SIGNED)]
Key = Annotated[HTTPAuthorizationCredentials | None, Security(_BEARER)]


def service_of(request: Request) -> Service:
    found: Service = request.app.state.service
    return found


async def signed_party(request: Request, signature: _Signature) -> str:
    """Return the name of the enrolled party that signed this request."""
    signed = await _signed_request(request, signature)
    name = await run_in_threadpool(service_of(request).authentication.party, signed)
    request.state.party = name
    return name


async def newcomer(request: Request, signature: _Signature, body: Enrolment) -> Enrolment:
    """Return an enrolment, after checking that it is signed with the key that it contains."""
    signed = await _signed_request(request, signature)
    if signed.sender != body.name:
        raise NotAuthenticated(f"{PARTY_HEADER} and the enrolment give different names: sign with the name that enrols")
    await run_in_threadpool(service_of(request).authentication.newcomer, signed, bytes.fromhex(body.signing_key))
    request.state.party = body.name
    return body


async def operator(request: Request, credentials: Key) -> str:
    """Return the label of the operator's key. A browser's session may be used instead of the key, for reading only."""
    _check_version(request)
    token = request.cookies.get(COOKIE)
    if credentials is None and token and request.method == "GET":
        return (await run_in_threadpool(service_of(request).sessions.find, token)).label
    if credentials is None:
        raise NotAuthenticated('an operator\'s key is needed: send "Authorization: Bearer KEY"')
    label: str = await run_in_threadpool(service_of(request).authentication.operator, credentials.credentials)
    return label


async def anybody_of(request: Request, signature: _Signature, credentials: Key) -> str | None:
    """Return the calling party's name, or None for an operator."""
    if signature is not None:
        return await signed_party(request, signature)
    await operator(request, credentials)
    return None


async def _signed_request(request: Request, signature: str | None) -> SignedRequest:
    headers = request.headers
    _check_version(request)
    absent = [name for name in (PARTY_HEADER, TIME_HEADER, NONCE_HEADER, SIGNATURE_HEADER) if not headers.get(name)]
    if absent or signature is None:
        raise NotAuthenticated(f"the request is not signed: {', '.join(absent)} missing; parties sign every request")
    return SignedRequest(
        method=request.method,
        target=_target(request.scope),
        body=await request.body(),
        sender=_name(headers[PARTY_HEADER]),
        time_ms=headers[TIME_HEADER],
        nonce=headers[NONCE_HEADER],
        signature=signature,
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


def _target(scope: Any) -> str:
    """Return path and query exactly as they were sent."""
    path, query = scope["raw_path"].decode("latin-1"), scope["query_string"].decode("latin-1")
    return f"{path}?{query}" if query else path


Party = Annotated[str, Depends(signed_party)]
Operator = Annotated[str, Depends(operator)]
Newcomer = Annotated[Enrolment, Depends(newcomer)]
Anybody = Annotated[str | None, Depends(anybody_of)]
TheService = Annotated[Service, Depends(service_of)]

LARGEST_PAGE = 500
Limit = Annotated[int, Query(ge=1, le=LARGEST_PAGE)]
After = Annotated[str, Query(max_length=200, pattern=r"^[^\x00-\x1f]*$", description="`next` of the previous page")]
