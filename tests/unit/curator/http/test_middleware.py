"""Headers, signatures and log lines of every exchange."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.responses import StreamingResponse
from starlette.datastructures import Headers
from starlette.types import Message

from crypto.signing import SigningKey, verify
from curator.errors import NotFound
from curator.http import middleware
from curator.http.middleware import RequestLog, SecurityHeaders, SignedAnswers
from curator.http.problems import handle_problems
from curator.operations.logs import JsonLines
from protocol.exact import digest
from protocol.messages.signatures import (
    CURATOR_SIGNATURE_HEADER,
    NONCE_HEADER,
    RESPONSE,
    VERSION_HEADER,
    answered_request,
    request_text,
    response_text,
)
from tests.support.signed_requests import asked_text

KEY = SigningKey.generate()
TABLE = bytes(range(256)) * 1000
told: list[str] = []  # in which order pieces are read and sent
observed: list[tuple[str, str, int, float]] = []


def make() -> FastAPI:
    app = FastAPI()
    handle_problems(app)
    app.add_middleware(SignedAnswers, key=KEY)
    app.add_middleware(RequestLog, observe=lambda *what: observed.append(what))
    app.add_middleware(SecurityHeaders)

    @app.post("/small")
    async def take() -> int:
        return 0

    @app.get("/party/{pieces}")
    async def party(request: Request, pieces: int) -> StreamingResponse:
        request.state.party = "hospital-1"
        return StreamingResponse(_pieces(pieces))

    @app.get("/table")
    async def table(request: Request) -> StreamingResponse:
        request.state.party, request.state.body_digest = "hospital-1", digest(TABLE)
        return StreamingResponse(_noted(TABLE))

    @app.get("/task")
    async def task(request: Request) -> Response:
        request.state.party = "hospital-1"
        return Response(TABLE)

    @app.get("/operator")
    async def operator() -> StreamingResponse:
        return StreamingResponse(_pieces(3))

    return app


async def _pieces(count: int) -> AsyncIterator[bytes]:
    for index in range(count):
        yield b"%d," % index


async def _noted(content: bytes) -> AsyncIterator[bytes]:
    for index in range(0, len(content), 1000):
        told.append("read")
        yield content[index : index + 1000]


def ask(method: str, path: str, **request: Any) -> httpx.Response:
    async def run() -> httpx.Response:
        transport = httpx.ASGITransport(make(), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://curator") as client:
            return await client.request(method, path, **request)

    return asyncio.run(run())


def test_every_answer_tells_browsers_to_do_nothing_with_it() -> None:
    for answer in (ask("POST", "/small"), ask("GET", "/nowhere/at/all"), ask("POST", "/nowhere/at/all")):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers[VERSION_HEADER] == "1"


@pytest.mark.parametrize(("path", "body"), [("/party/0", b""), ("/party/1", b"0,"), ("/party/3", b"0,1,2,")])
def test_a_partys_answer_is_signed_for_its_nonce(path: str, body: bytes) -> None:
    answer = ask("GET", path, headers={NONCE_HEADER: "n1"})
    assert answer.content == body
    signature = bytes.fromhex(answer.headers[CURATOR_SIGNATURE_HEADER])
    verify(KEY.public, RESPONSE, response_text(200, body, asked_text(answer.request), "1"), signature)


def exchanged(path: str) -> list[Message]:
    """Everything that the application sends, which is noted in `told` too."""
    sent: list[Message] = []
    told.clear()

    async def receive() -> Message:
        await asyncio.Event().wait()  # the client stays
        raise AssertionError

    async def send(message: Message) -> None:
        sent.append(message)
        told.append("sent")

    headers = [(NONCE_HEADER.lower().encode(), b"n1")]
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": headers,
    }
    asyncio.run(make()(scope, receive, send))
    return sent


def is_signed(path: str, sent: list[Message]) -> bool:
    headers = Headers(raw=sent[0]["headers"])
    signature = bytes.fromhex(headers[CURATOR_SIGNATURE_HEADER])
    verify(
        KEY.public,
        RESPONSE,
        response_text(200, TABLE, answered_request(request_text("GET", path, "", "", "", "n1"), ""), "1"),
        signature,
    )
    return b"".join(one.get("body", b"") for one in sent) == TABLE


def test_an_answer_whose_digest_is_known_is_signed_before_it_is_read() -> None:
    assert is_signed("/table", exchanged("/table"))
    assert told[:4] == ["sent", "read", "sent", "read"]


def test_a_long_answer_is_sent_in_pieces_so_that_each_waits_for_the_one_before() -> None:
    sent = exchanged("/task")
    assert is_signed("/task", sent)
    assert max(len(one.get("body", b"")) for one in sent) == 1 << 16


def test_a_refusal_is_signed_whoever_asked() -> None:
    answer = ask("GET", "/nowhere/at/all", headers={NONCE_HEADER: "n2"})
    signature = bytes.fromhex(answer.headers[CURATOR_SIGNATURE_HEADER])
    verify(KEY.public, RESPONSE, response_text(404, answer.content, asked_text(answer.request), "1"), signature)


def test_what_no_party_asked_for_is_neither_signed_nor_held_back() -> None:
    for headers in ({}, {NONCE_HEADER: "n3"}):
        answer = ask("GET", "/operator", headers=headers)
        assert answer.content == b"0,1,2,"
        assert CURATOR_SIGNATURE_HEADER not in answer.headers


def test_one_line_is_logged_with_neither_query_nor_body(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "curator.http"):
        ask("GET", "/party/1?secret=s3cr3t", headers={NONCE_HEADER: "n"})
    (record,) = caplog.records
    line = json.loads(JsonLines().format(record))
    assert (line["method"], line["path"], line["status"], line["party"]) == ("GET", "/party/1", 200, "hospital-1")
    assert line["event"] == "request"
    assert line["level"] == "info"
    assert line["ms"] >= 0
    assert "s3cr3t" not in JsonLines().format(record)
    assert observed[-1][:3] == ("GET", "/party/{pieces}", 200)
    ask("BREW", "/no/such/place")
    assert observed[-1][:3] == ("BREW", "none", 404)


def lines_of(caplog: pytest.LogCaptureFixture, *asked: tuple[str, str, str]) -> list[dict[str, Any]]:
    """The lines that are logged of these requests to one application: method, path and sender."""
    app = FastAPI()

    @app.get("/{run}")
    async def route(request: Request, run: str) -> None:
        known = {"party": ["party"], "operator": ["operator"], "newcomer": ["party", "newcomer"]}
        for name in known.get(run, []):
            setattr(request.state, name, run)
        if "fails" in request.headers:
            raise HTTPException(403)

    app.add_middleware(RequestLog, observe=lambda *_what: None)

    async def run() -> None:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://curator") as client:
            for method, path, header in asked:
                await client.request(method, path, headers={header: "1"})

    with caplog.at_level(logging.INFO, "curator.http"):
        asyncio.run(run())
    return [json.loads(JsonLines().format(record)) for record in caplog.records]


def test_a_line_is_short_however_long_the_request_is(caplog: pytest.LogCaptureFixture) -> None:
    (line,) = lines_of(caplog, ("X" * 30_000, "/" + "%F3%A0%81%81" * 1300, "none"))
    assert (len(line["method"]), len(line["path"])) == (20, 200)
    caplog.clear()
    (line,) = lines_of(caplog, ("GET", "/" + "r" * 15_000, "none"))
    assert len(line["run"]) == 200


@pytest.mark.parametrize(
    ("path", "header", "told"),
    [
        ("/nobody", "none", 102),
        ("/nobody", "fails", 102),
        ("/newcomer", "fails", 102),
        ("/newcomer", "none", 450),
        ("/party", "fails", 450),
        ("/operator", "fails", 450),
    ],
)
def test_requests_of_unknown_senders_are_logged_sparsely(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, path: str, header: str, told: int
) -> None:
    monkeypatch.setattr(middleware, "perf_counter", lambda: 7200.0)
    found = lines_of(caplog, *[("GET", path, header)] * 450)
    assert len(found) == told
    numbers = [line["unknown_senders"] for line in found if "unknown_senders" in line]
    assert numbers == ([200, 400] if told == 102 else [])


def test_every_hour_begins_a_new_count_of_unknown_senders() -> None:
    strangers = middleware.Strangers()
    assert [strangers.count(seconds) for seconds in (1, 3599, 3600, 3601, 9000)] == [1, 2, 1, 2, 1]


@pytest.mark.parametrize(("error", "said"), [(ValueError("patient Quixote"), "ValueError"), (NotFound("no x"), "no x")])
def test_a_logged_error_comes_with_its_place_and_only_with_words_that_were_meant(error: Exception, said: str) -> None:
    try:
        raise error
    except Exception as raised:
        found = (type(raised), raised, raised.__traceback__)
        record = logging.LogRecord("x", logging.ERROR, __file__, 1, "failed", (), found)
    line = json.loads(JsonLines().format(record))
    assert line["error"] == said
    assert __file__ in line["at"][0]
    assert "Quixote" not in str(line)
