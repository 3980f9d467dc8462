"""Decoders of what comes over HTTP: requests at both interfaces, and answers at a party and at the operator's client.

It does not know files or the protocol's messages. A request is one line "METHOD PATH", lines of headers, an empty line
and the body; an answer is one line with its status, lines of headers, an empty line and the body.
"""

import asyncio
import re
from collections.abc import Callable, Coroutine
from functools import cache
from typing import Any
from urllib.parse import quote

import httpx
from fastapi import FastAPI

from crypto.randomness import Stream
from crypto.signing import SigningKey, sign
from curator.accounts.authentication import Authentication, SignedRequest
from curator.app import make_app as curator_app
from curator.errors import CuratorError, CuratorUnreachable
from curator.operator.client import CuratorClient
from curator.runs.receipts import accepted, promised
from curator.service import Service
from party.app import make_app as party_app
from party.curator_link.client import Curator
from party.curator_link.introduction import introduced
from party.errors import TalkError
from party.operations.health import Health
from protocol.errors import OperatorError
from protocol.exact import canonical_json, digest
from protocol.messages import signatures as a
from protocol.messages.pins import pin_of
from protocol.plan.terms import Terms
from tests.fuzz.files import folder
from tests.fuzz.target import Target, is_clear
from tests.support.curator import Desk
from tests.support.fake_curator import NOW, URL, FakeCurator
from tests.support.owner import TOKEN
from tests.support.party import Party, make_home, no_wait
from tests.support.signed_requests import asked_text
from tests.support.small_runs import identity

_METHOD = re.compile(rb"[A-Z]{1,10}")
_STATUS = re.compile(rb"[2-5][0-9]{2}")
_NAME = re.compile(rb"[-!#$%&'*+.^_`|~0-9A-Za-z]+")
_VALUE = re.compile(rb"[\x21-\x7e\x80-\xff]([\t \x21-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?")  # that h11 lets through
Headers = list[tuple[bytes, bytes]]


def parted(data: bytes) -> tuple[bytes, Headers, bytes]:
    """First line, headers and body; lines that no HTTP server would let through are left out."""
    head, _, body = data.partition(b"\n\n")
    first, *lines = head.split(b"\n")
    pairs = [(name.strip(), value.strip()) for name, _, value in (line.partition(b":") for line in lines)]
    return first, [pair for pair in pairs if _NAME.fullmatch(pair[0]) and _VALUE.fullmatch(pair[1])], body


async def asked(app: Any, data: bytes) -> tuple[int, Headers]:
    """Status and headers of an application's answer."""
    first, headers, body = parted(data)
    if b"content-length" not in {name.lower() for name, _ in headers}:
        headers.append((b"Content-Length", str(len(body)).encode()))
    method, _, target = first.partition(b" ")
    path, _, query = target.partition(b"?")
    answer: dict[str, Any] = {}

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        answer.update(message if message["type"] == "http.response.start" else {})

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method.decode() if _METHOD.fullmatch(method) else "GET",
        "scheme": "http",
        "path": httpx.URL("http://x").copy_with(raw_path=b"/").path if not path else unquoted(path),
        "raw_path": path or b"/",
        "query_string": query,
        "headers": [(name.lower(), value) for name, value in headers],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    await app(scope, receive, send)
    return answer["status"], answer["headers"]


def unquoted(path: bytes) -> str:
    from urllib.parse import unquote

    return "/" + unquote(path.decode("latin-1")).lstrip("/")


# The curator's interface


@cache
def desk() -> Desk:
    found = Desk(folder("desk"))
    found.run("waiting", noise="local")
    return found


@cache
def service() -> Service:
    return Service.of(desk().settings, desk().store, desk().keys, desk().orchestrator, desk().clock)


@cache
def curator() -> FastAPI:
    return curator_app(service())


def at_the_curator(data: bytes) -> None:
    status, headers = asyncio.run(asked(curator(), data))
    assert status < 500, status
    assert status < 400 or dict(headers)[b"content-type"].startswith((b"application/problem+json", b"text/html"))


def requests() -> list[bytes]:
    key = service().registry.new_operator_key("fuzz", Stream.system())
    made = [signed("GET", "/v1/inbox?wait=0"), signed("PUT", "/v1/offers/rows", b'{"schema": "{}", "rows": 5}')]
    made += [signed("PUT", "/v1/runs/x/outbox/joining", b"SUBN", {a.RECEIPT_HEADER: "ab" * 64})]
    made += [signed("POST", "/v1/enrolments", b'{"code": "x", "name": "party-1"}'), signed("GET", "/v1/receipts")]
    bearer = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    made += [lines(f"POST {path}", bearer, body) for path, body in OPERATORS]
    made += [
        lines(f"GET {path}", bearer) for path in ("/v1/runs?limit=5&after=x", "/v1/runs/waiting/events", "/metrics")
    ]
    return [*made, lines("GET /runs", {"Cookie": "subn_session=x; y=z"}), lines("POST /sign-in", {}, b"key=x&token=y")]


OPERATORS = (
    ("/v1/plans", b'{"schema": "00", "epsilon": "1"}'),
    ("/v1/schemas", b'{"attributes": []}'),
    ("/v1/runs/waiting/cancel", b'{"reason": "x"}'),
    ("/v1/parties/codes", b'{"name": "party-9"}'),
)


def lines(first: str, headers: dict[str, str], body: bytes = b"") -> bytes:
    return "\n".join([first, *(f"{name}: {value}" for name, value in headers.items())]).encode() + b"\n\n" + body


def signed(method: str, target: str, body: bytes = b"", more: dict[str, str] | None = None) -> bytes:
    party, nonce = desk().parties[0], Stream.system().take(16).hex()
    text = a.request_text(method, target, digest(body), party.name, desk().clock(), nonce, "1")
    headers = {
        a.PARTY_HEADER: quote(party.name),
        a.TIME_HEADER: str(desk().clock()),
        a.NONCE_HEADER: nonce,
        a.DIGEST_HEADER: digest(body),
        a.SIGNATURE_HEADER: sign(party.identity.signing, a.REQUEST, text).hex(),
        a.VERSION_HEADER: "1",
        "Content-Type": "application/json",
    }
    return lines(f"{method} {target}", headers | (more or {}), body)


def signed_headers(data: bytes) -> None:
    """The headers of a signed request, as text."""
    texts = [line.decode("latin-1") for line in (*data.split(b"\n"), b"", b"", b"", b"", b"")][:5]
    sender, time_ms, nonce, signature, version = texts
    request = SignedRequest("GET", "/v1/inbox", digest(b""), sender, time_ms, nonce, signature, version)
    gate = Authentication(desk().store, desk().clock)
    gate.admit(gate.sender(request), request)


def receipt(data: bytes) -> None:
    """An answer's bytes and its receipt."""
    signature, _, body = data.partition(b"\n")
    about = waiting(), 0, waiting().steps[1]
    promised(*about, digest(body), unhexed(signature), 0)
    accepted(*about, body, digest(body), unhexed(signature), 0)


def unhexed(text: bytes) -> bytes:
    try:
        return bytes.fromhex(text.decode("latin-1"))
    except ValueError:
        return text


@cache
def waiting() -> Terms:
    return desk().views.terms(desk().run("waiting", noise="local"))


def receipts() -> list[bytes]:
    step, body = waiting().steps[1], b"SUBN\x01"
    text = a.receipt_text(waiting().plan_hash, step.name, step.charge(0), body)
    return [sign(identity(0).signing, a.RECEIPT, text).hex().encode() + b"\n" + body, b"\n" + body]


# A party's interface


@cache
def owner() -> FastAPI:
    opened = Party(make_home(folder("owner"), 0, FakeCurator(), accept="ask"), 0, FakeCurator()).opened
    return party_app(opened, TOKEN, Health(opened, lambda: None))


def at_the_party(data: bytes) -> None:
    status, _ = asyncio.run(asked(owner(), data))
    assert status < 500, status


def owner_requests() -> list[bytes]:
    bearer = {"Host": "127.0.0.1", "Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    made = [lines(f"GET {path}", bearer) for path in ("/v1/requests", "/v1/ledger", "/v1/audit?search=x&limit=3")]
    made += [lines("POST /v1/requests/run-1/refuse", bearer, b'{"reason": "no"}'), lines("POST /v1/sign-in", bearer)]
    return [*made, lines("GET /sign-in?ticket=x", {"Host": "localhost"}), lines("GET /", {"Cookie": "subn_party=x"})]


# Answers

ANSWERS = (
    (200, b"[]"),
    (200, b'{"time_ms": 1}'),
    (200, b'[{"run": "r", "plan": "' + b"0" * 64 + b'", "state": "failed", "reason": null, "culprit": "x"}]'),
    (409, b'{"title": "x", "detail": "y", "culprit": "z"}'),
    (422, b"[" * 5000),
    (503, b"later"),
    (204, b""),
)


def answered(data: bytes) -> tuple[int, Headers, bytes]:
    first, headers, body = parted(data)
    status = int(first) if _STATUS.fullmatch(first) else 200
    return status, headers, body


def answers() -> list[bytes]:
    return [
        lines(str(status), {"Content-Type": "application/json", a.VERSION_HEADER: "1"}, body)
        for status, body in ANSWERS
    ]


CURATOR_KEY = SigningKey.from_bytes(b"\7" * 32)


class Answering:
    """A transport that gives one answer to every question; signed as the curator's, if that is asked for."""

    def __init__(self) -> None:
        self.data, self.is_signed = b"", True

    def __call__(self, request: httpx.Request) -> httpx.Response:
        status, headers, body = answered(self.data)
        if self.is_signed:
            said = httpx.Headers(headers)
            named = (said.get(name, "") for name in (a.VERSION_HEADER, a.RUN_HEADER, a.HELD_HEADER))
            text = a.response_text(status, body, asked_text(request), *named)
            headers.append((a.CURATOR_SIGNATURE_HEADER.encode(), sign(CURATOR_KEY, a.RESPONSE, text).hex().encode()))
        return httpx.Response(status, headers=headers, stream=httpx.ByteStream(body))


@cache
def line() -> tuple[Curator, Answering]:
    answering = Answering()
    seams: Any = {"transport": httpx.MockTransport(answering), "clock": lambda: NOW, "sleep": no_wait, "tries": 1}
    return Curator(URL, "party-1", identity(0).signing, CURATOR_KEY.public, **seams), answering


QUESTIONS: tuple[Callable[[Curator], Coroutine[Any, Any, object]], ...] = (
    lambda curator: curator.inbox(0),
    Curator.my_runs,
    Curator.receipts,
    Curator.roster,
    Curator.clock_difference,
)


def to_the_party(data: bytes) -> None:
    """A curator's answer with a valid signature, to each of the questions that a party asks."""
    curator, answering = line()
    answering.data, answering.is_signed = data, True
    for question in QUESTIONS:
        try:
            asyncio.run(question(curator))
        except TalkError as error:
            is_clear(error)


def unsigned_to_the_party(data: bytes) -> None:
    """An answer of somebody else: nothing but its refusal follows."""
    curator, answering = line()
    answering.data, answering.is_signed = data, False
    try:
        asyncio.run(curator.receipts())
    except TalkError as error:
        is_clear(error)
        return
    raise AssertionError("an answer without the curator's signature was believed")


def introduction(data: bytes) -> None:
    answering = Answering()
    answering.data, answering.is_signed = data, False
    introduced(URL, pin_of(CURATOR_KEY.public, ""), httpx.MockTransport(answering))  # type: ignore[arg-type]


@cache
def client() -> tuple[CuratorClient, Answering]:
    answering = Answering()
    answering.is_signed = False
    transport = httpx.MockTransport(answering)
    return CuratorClient(URL, "key", transport=transport, wait=waits_for_nothing), answering


def waits_for_nothing(_seconds: float) -> None:
    raise OperatorError("the run has not ended: look again later")


def to_the_operator(data: bytes) -> None:
    operator, answering = client()
    answering.data = data
    for question in (lambda: operator.run("x"), operator.runs, operator.schemas, lambda: list(operator.events("x"))):
        try:
            question()
        except (OperatorError, CuratorUnreachable) as error:
            is_clear(error)


def introductions() -> list[bytes]:
    known = {"curator_key": CURATOR_KEY.public.hex(), "ca": ""}
    return [lines("200", {}, canonical_json(known)), lines("200", {}, canonical_json(known | {"ca": "x"}))]


def headers_signed() -> list[bytes]:
    party, nonce = desk().parties[0], Stream.system().take(16).hex()
    text = a.request_text("GET", "/v1/inbox", digest(b""), party.name, desk().clock(), nonce, "1")
    signature = sign(party.identity.signing, a.REQUEST, text).hex()
    return ["\n".join([party.name, str(desk().clock()), nonce, signature, "1"]).encode()]


def pages() -> list[bytes]:
    bodies = [b'{"items": [], "next": null}', b'data: {"seq": 1}\n\n', b'{"items": 5, "next": null}']
    return [*answers(), *(lines("200", {}, body) for body in bodies)]


TARGETS = (
    Target("curator-request", at_the_curator, (), requests),
    Target("signed-headers", signed_headers, (CuratorError,), headers_signed),
    Target("receipt", receipt, (CuratorError,), receipts),
    Target("party-request", at_the_party, (), owner_requests),
    Target("answer-to-a-party", to_the_party, (), answers),
    Target("unsigned-answer-to-a-party", unsigned_to_the_party, (), answers),
    Target("introduction", introduction, (TalkError,), introductions),
    Target("answer-to-the-operator", to_the_operator, (), pages),
)
