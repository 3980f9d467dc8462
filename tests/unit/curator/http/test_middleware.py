"""Size limits, headers, signatures and log lines of every exchange."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse

from crypto.signing import SigningKey, verify
from curator.errors import NotFound
from curator.http.middleware import BodyLimit, RequestLog, SecurityHeaders, SignedAnswers
from curator.http.problems import handle_problems
from curator.operations.logs import JsonLines
from protocol.messages.signatures import CURATOR_SIGNATURE_HEADER, NONCE_HEADER, RESPONSE, VERSION_HEADER, response_text

KEY = SigningKey.generate()
observed: list[tuple[str, str, int, float]] = []


def make() -> FastAPI:
    app = FastAPI()
    handle_problems(app)
    app.add_middleware(BodyLimit, largest=lambda method, path: 100 if path == "/small" else 1000)
    app.add_middleware(SignedAnswers, key=KEY)
    app.add_middleware(RequestLog, observe=lambda *what: observed.append(what))
    app.add_middleware(SecurityHeaders)

    @app.post("/{size}")
    async def take(request: Request) -> int:
        return len(await request.body())

    @app.get("/party/{pieces}")
    async def party(request: Request, pieces: int) -> StreamingResponse:
        request.state.party = "hospital-1"
        return StreamingResponse(_pieces(pieces))

    @app.get("/operator")
    async def operator() -> StreamingResponse:
        return StreamingResponse(_pieces(3))

    return app


async def _pieces(count: int) -> AsyncIterator[bytes]:
    for index in range(count):
        yield b"%d," % index


def ask(method: str, path: str, **request: Any) -> httpx.Response:
    async def run() -> httpx.Response:
        transport = httpx.ASGITransport(make(), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://curator") as client:
            return await client.request(method, path, **request)

    return asyncio.run(run())


@pytest.mark.parametrize(("size", "status"), [(0, 200), (100, 200), (101, 413), (5000, 413)])
def test_a_body_over_the_limit_of_its_path_is_refused_by_its_announced_length(size: int, status: int) -> None:
    assert ask("POST", "/small", content=b"x" * size).status_code == status


def test_a_body_without_announced_length_is_refused_while_it_is_read() -> None:
    """Spoken in ASGI itself, since a client of httpx collects a body before it sends it in process."""
    taken = 0

    async def receive() -> dict[str, Any]:
        nonlocal taken
        taken += 1
        return {"type": "http.request", "body": b"x" * 30, "more_body": True}

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http", "method": "POST", "path": "/small", "raw_path": b"/small", "query_string": b"",
        "headers": [], "http_version": "1.1", "scheme": "http", "server": ("curator", 80), "root_path": "",
    }  # fmt: skip
    asyncio.run(make()(scope, receive, send))
    assert sent[0]["status"] == 413
    assert taken == 4
    assert json.loads(sent[1]["body"])["detail"] == "the body is larger than 100 bytes: send at most that many"


def test_a_length_that_is_no_number_does_not_open_the_gate() -> None:
    assert ask("POST", "/small", content=b"x" * 200, headers={"Content-Length": "many"}).status_code == 413


def test_every_answer_tells_browsers_to_do_nothing_with_it() -> None:
    for answer in (ask("POST", "/small"), ask("GET", "/nowhere/at/all"), ask("POST", "/small", content=b"x" * 101)):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers[VERSION_HEADER] == "1"


@pytest.mark.parametrize(("path", "body"), [("/party/0", b""), ("/party/1", b"0,"), ("/party/3", b"0,1,2,")])
def test_a_partys_answer_is_signed_for_its_nonce(path: str, body: bytes) -> None:
    answer = ask("GET", path, headers={NONCE_HEADER: "n1"})
    assert answer.content == body
    signature = bytes.fromhex(answer.headers[CURATOR_SIGNATURE_HEADER])
    verify(KEY.public, RESPONSE, response_text(200, body, "n1", "1"), signature)


def test_a_refusal_is_signed_whoever_asked() -> None:
    answer = ask("GET", "/nowhere/at/all", headers={NONCE_HEADER: "n2"})
    signature = bytes.fromhex(answer.headers[CURATOR_SIGNATURE_HEADER])
    verify(KEY.public, RESPONSE, response_text(404, answer.content, "n2", "1"), signature)


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


@pytest.mark.parametrize(("error", "said"), [(ValueError("patient 4711"), "ValueError"), (NotFound("no x"), "no x")])
def test_a_logged_error_comes_with_its_place_and_only_with_words_that_were_meant(error: Exception, said: str) -> None:
    try:
        raise error
    except Exception as raised:
        found = (type(raised), raised, raised.__traceback__)
        record = logging.LogRecord("x", logging.ERROR, __file__, 1, "failed", (), found)
    line = json.loads(JsonLines().format(record))
    assert line["error"] == said
    assert __file__ in line["at"][0]
    assert "4711" not in str(line)
